"""The loggers of torch: components, which have a level, and artifacts, which are on or off.

A component is a set of loggers of Python's ``logging``. An artifact is a logger below one of a module, whose name ends with
``.__ARTIFACT``; it shows its messages if it is switched on, or if the logger above it shows debug messages. Programs and
libraries use both for their own messages. The environment variable TORCH_LOGS has precedence over ``set_logs``, as in PyTorch.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import warnings

_COMPONENTS = {
    "all": ("torch",),
    "dynamo": ("torch._dynamo", "torch.fx.experimental.symbolic_shapes", "torch.fx.experimental.sym_node"),
    "aot": ("torch._functorch.aot_autograd", "torch._functorch._aot_autograd"),
    "autograd": ("torch.autograd",),
    "dynamic": ("torch.fx.experimental.symbolic_shapes", "torch.fx.experimental.sym_node"),
    "inductor": ("torch._inductor",),
    "distributed": ("torch.distributed", "torch.nn.parallel.distributed"),
    "c10d": ("torch.distributed.distributed_c10d", "torch.distributed.rendezvous"),
    "ddp": ("torch.nn.parallel.distributed",),
    "fsdp": ("torch.distributed.fsdp", "torch.distributed._composable.fsdp"),
    "dtensor": ("torch.distributed._tensor", "torch.distributed.tensor"),
    "onnx": ("torch.onnx",),
    "export": ("torch.export",),
}
_ARTIFACTS = frozenset(
    """annotation aot_graphs aot_graphs_effects aot_joint_graph autotuning benchmarking bytecode caching compiled_autograd
    compiled_autograd_verbose compute_dependencies cudagraph_static_inputs cudagraphs ddp_graphs fusion graph
    graph_breaks graph_code
    graph_code_verbose graph_region_expansion graph_sizes guards hierarchical_compile incremental
    inductor_metrics ir_post_fusion
    ir_pre_fusion kernel_code loop_ordering node_runtime_estimation not_implemented onnx_diagnostics output_code
    overlap perf_hints
    post_grad_graphs pre_grad_graphs recompiles recompiles_verbose schedule side_effects sym_node trace_bytecode trace_call
    trace_shape_events trace_source verbose_guards""".split()  # noqa: SIM905 (a list literal would be a page of quotes)
)
DEFAULT_LOGGING = {
    "dynamo": logging.INFO,
    "aot": logging.INFO,
    "inductor": logging.INFO,
    "fsdp": logging.INFO,
    "ddp_graphs": True,
    "graph_breaks": True,
    "guards": True,
    "recompiles": True,
    "dynamic": logging.INFO,
}
_set: dict[str, int | bool] = {}  # what set_logs has last been given
_artifacts: dict[str, list[logging.Logger]] = {}  # by artifact


def getArtifactLogger(module_qname: str, artifact_name: str) -> logging.Logger:
    """Return the logger of an artifact in a module. ValueError if there is no such artifact."""
    if artifact_name not in _ARTIFACTS:
        raise ValueError(
            f"Artifact name: {artifact_name!r} not registered,please call register_artifact({artifact_name!r}) in "
            "torch._logging.registrations."
        )
    logger = logging.getLogger(f"{module_qname}.__{artifact_name}")
    known = _artifacts.setdefault(artifact_name, [])
    if logger not in known:
        known.append(logger)
        _apply_to(logger, artifact_name)
    return logger


def _apply_to(logger: logging.Logger, artifact: str) -> None:
    logger.setLevel(logging.DEBUG if _set.get(artifact) else logging.NOTSET)


def set_logs(*, modules: dict[str, int | bool] | None = None, **settings: int | bool | None) -> None:
    """Set the levels of components, and switch artifacts on. What is not named gets its default again.

    ``modules`` maps further names of loggers to levels. Without effect, but a warning, if TORCH_LOGS is set.

    Raises:
        ValueError: a component's level is not a level of ``logging``, an artifact's value is not a bool, or there is no such name.
    """
    if "TORCH_LOGS" in os.environ:
        warnings.warn(
            "Using TORCH_LOGS environment variable for log settings, ignoring call to set_logs", stacklevel=2
        )
        return
    _set_logs({**settings, **(modules or {})}, frozenset(modules or ()))


def _set_logs(settings: dict[str, int | bool | None], modules: frozenset[str]) -> None:
    levels: dict[str, int | bool] = {}
    for name, value in settings.items():
        if value is None:
            continue
        if name in _ARTIFACTS and name not in modules:
            if not isinstance(value, bool):
                raise ValueError(f"Expected bool to enable artifact {name}, received {value}")
        elif name in _COMPONENTS or name in modules:
            if value not in logging._levelToName:
                raise ValueError(
                    f"Unrecognized log level for log {name}: {value}, valid level values are: "
                    + ",".join(str(level) for level in logging._levelToName)
                )
        else:
            raise ValueError(
                f"Unrecognized log or artifact name passed to set_logs: {name} (valid are components, artifacts, and modules=...)"
            )
        levels[name] = value
    levels.setdefault("all", logging.WARNING)
    for name in set(_set) - set(levels) - _ARTIFACTS:
        for logger in _COMPONENTS.get(name, (name,)):
            logging.getLogger(logger).setLevel(logging.NOTSET)
    _set.clear()
    _set.update(levels)
    for name in ("torch", *modules):
        _show(logging.getLogger(name))
    # Of components with common loggers, the last one of the list has precedence.
    order = [*_COMPONENTS, *sorted(modules)]
    for name in sorted(set(levels) - _ARTIFACTS, key=order.index):
        for logger in _COMPONENTS.get(name, (name,)):
            logging.getLogger(logger).setLevel(int(levels[name]))
    for name, loggers in _artifacts.items():
        for logger in loggers:
            _apply_to(logger, name)


def _show(logger: logging.Logger) -> None:
    """Let a logger write to the standard error by itself, as PyTorch's do. Its messages go to no logger above it then."""
    if logger.name.startswith("torch.") or any(isinstance(h, _Shown) for h in logger.handlers):
        return
    logger.addHandler(_Shown())
    logger.propagate = False


class _Shown(logging.StreamHandler):
    """The handler of torch's loggers."""

    def __init__(self):
        super().__init__()
        text = "%(levelname).1s%(asctime)s.%(msecs)03d %(process)d %(pathname)s:%(lineno)d] %(message)s"
        self.setFormatter(logging.Formatter(text, "%m%d %H:%M:%S"))


def _init_logs(log_file_name: str | None = None) -> None:
    """Apply TORCH_LOGS, a list of names; "+" before a component's name is for debug messages, and "-" for errors only."""
    wanted: dict[str, int | bool | None] = {}
    modules = set()
    for part in filter(None, (p.strip() for p in os.environ.get("TORCH_LOGS", "").split(","))):
        name = part.lstrip("+-")
        if name in _ARTIFACTS:
            wanted[name] = True
            continue
        if name not in _COMPONENTS:
            modules.add(name)
        wanted[name] = {"+": logging.DEBUG, "-": logging.ERROR}.get(part[0], logging.INFO)
    if wanted:
        _set_logs(wanted, frozenset(modules))
    if log_file_name is not None:
        logging.getLogger("torch").addHandler(logging.FileHandler(log_file_name))


@functools.cache
def warning_once(logger_obj, *args, **kwargs) -> None:
    """Warn, if there was no warning with the same arguments before."""
    logger_obj.warning(*args, **kwargs)


class LazyString:
    """A text that a function makes when it is needed."""

    def __init__(self, func, *args, **kwargs):
        self.func, self.args, self.kwargs = func, args, kwargs

    def __str__(self) -> str:
        return self.func(*self.args, **self.kwargs)


def trace_structured(name, metadata_fn=dict, *, payload_fn=lambda: None, **options) -> None:
    """Of a compiler's trace, which PyTorch writes if TORCH_TRACE is set. Nothing is compiled here, so nothing is written."""


def dtrace_structured(name, metadata_fn=dict, *, payload_fn=lambda: None, **options) -> None:
    """Like ``trace_structured``, for the trace of PyTorch's developers."""


def get_structured_logging_overhead() -> float | None:
    """Return None: no trace has been written."""


@contextlib.contextmanager
def hide_warnings(filter_fn=lambda *args, **kwargs: True):
    """Show only the warnings inside of this block for which ``filter_fn(message, category, filename, lineno, ...)`` is true."""
    show = warnings.showwarning

    def chosen(*args, **kwargs):
        if filter_fn(*args, **kwargs):
            show(*args, **kwargs)

    warnings.showwarning = chosen
    try:
        yield
    finally:
        warnings.showwarning = show


logging.getLogger("torch").setLevel(logging.WARNING)
_set["all"] = logging.WARNING
_init_logs()
