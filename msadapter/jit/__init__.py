"""torch.jit: there is no TorchScript. What is scripted runs as ordinary Python; what is traced becomes a graph of torch.fx."""

import builtins
import warnings
import weakref
from contextlib import contextmanager

from .._errors import unsupported
from .._host import extensions
from .._host.native import load as _native
from ..compiler._once import say_once
from ..futures import Future as _Future

__all__ = [
    "Attribute",
    "Final",
    "ScriptFunction",
    "ScriptModule",
    "annotate",
    "enable_onednn_fusion",
    "export",
    "export_opnames",
    "fork",
    "freeze",
    "fuser",
    "ignore",
    "interface",
    "is_scripting",
    "is_tracing",
    "isinstance",
    "load",
    "onednn_fusion_enabled",
    "optimize_for_inference",
    "optimized_execution",
    "save",
    "script",
    "script_if_tracing",
    "script_method",
    "set_fusion_strategy",
    "strict_fusion",
    "trace",
    "trace_module",
    "unused",
    "wait",
]


from typing import Final, NamedTuple  # noqa: E402

from ._internal import _overload, _overload_method, export, ignore, is_scripting, unused  # noqa: E402, F401
from ._isinstance import is_instance as isinstance  # noqa: E402


class TracerWarning(Warning):
    """Warns that a trace may not hold for other inputs."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Ignore those that come from torch itself."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


_scripted: weakref.WeakSet = weakref.WeakSet()  # the modules that script has given back


class _ScriptModuleMeta(type):
    def __instancecheck__(cls, instance) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        # a module that is compiled in PyTorch is the module itself here
        return cls is ScriptModule and hasattr(type(instance), "named_modules") and instance in _scripted


class ScriptModule(metaclass=_ScriptModuleMeta):
    """The class of traced and of scripted modules, for isinstance checks."""


class ScriptFunction:
    """The class of traced functions, for isinstance checks."""


RecursiveScriptModule = TopLevelTracedModule = TracedModule = ScriptModule


def _note():
    say_once(
        "jit",
        "torch.jit.script fuses functions of element-wise operators; everything else stays as it is (docs/coverage.md)",
    )


def script(obj=None, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Return the object itself, with one warning. A function of elementwise operators is fused."""
    if obj is None:
        return script
    _note()
    from ..compiler._fusion import fused  # here: few programs fuse

    _check_initialized(obj)
    if hasattr(type(obj), "named_modules"):
        _scripted.add(obj)
    return fused(obj)


def _check_initialized(obj) -> None:
    """RuntimeError for a module with parameters or buffers whose shape is not known yet."""
    has_uninitialized = getattr(obj, "has_uninitialized_params", None)
    if isinstance(obj, type) or has_uninitialized is None or not has_uninitialized():
        return
    name = next(n for n, v in [*obj._parameters.items(), *obj._buffers.items()] if hasattr(v, "materialize"))
    place = type(obj).__module__.replace("msadapter.", "torch.")
    raise RuntimeError(
        f"'{place}.{type(obj).__qualname__}' has uninitialized parameters {name}. Did you forget to run a forward pass?"
    )


def trace(
    func=None, example_inputs=None, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True,
    _force_outplace=False, _module_class=None, _compilation_unit=None, example_kwarg_inputs=None, _store_inputs=True,
):  # fmt: skip
    """Run a function or module on examples, and return a graph of what it did, which can be called in its place.

    The graph has the operators and the calls of torch.nn's modules, not TorchScript. Sizes may differ in later calls; a value that
    decided a branch may not, and a TracerWarning says so. With ``check_trace``, the graph is compared with the program.
    """
    if func is None:
        return lambda f: trace(
            f, example_inputs, optimize, check_trace, check_inputs, check_tolerance, strict
        )
    if builtins.isinstance(func, (ScriptModule, ScriptFunction)):
        return func
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("torch.jit.trace needs example_inputs or example_kwarg_inputs")
    options = {
        "check": check_trace,
        "check_inputs": check_inputs,
        "tolerance": check_tolerance,
        "strict": strict,
    }
    with _while_tracing():
        return extensions.jit_tracer.value(func, example_inputs, example_kwarg_inputs, **options)


def trace_module(
    mod, inputs, optimize=None, check_trace=True, check_inputs=None, check_tolerance=1e-5, strict=True,
    _force_outplace=False, _module_class=None, _compilation_unit=None, example_inputs_is_kwarg=False, _store_inputs=True,
):  # fmt: skip
    """Do what ``trace`` does, with a dict of the examples of each method. Only ``forward`` is supported."""
    if set(inputs) != {"forward"}:
        raise unsupported(
            "torch.jit.trace_module", f"only forward can be traced, not {sorted(set(inputs) - {'forward'})}"
        )
    own, named = (None, inputs["forward"]) if example_inputs_is_kwarg else (inputs["forward"], None)
    if check_inputs is not None:
        check_inputs = [one["forward"] for one in check_inputs]
    return trace(
        mod, own, optimize, check_trace, check_inputs, check_tolerance, strict, example_kwarg_inputs=named
    )


def script_if_tracing(fn):
    """Return the function unchanged."""
    return fn


def _script_if_tracing(fn):
    """Return the function unchanged. Packages call this older name."""
    return fn


script_method = script_if_tracing


_tracing = [0]


def is_tracing() -> bool:
    """Return whether torch.jit.trace is running a program."""
    return _tracing[0] > 0


@contextmanager
def _while_tracing():
    _tracing[0] += 1
    try:
        yield
    finally:
        _tracing[0] -= 1


def annotate(the_type, the_value):
    """Return the value."""
    return the_value


class Attribute(NamedTuple):
    """A value of a module together with its type."""

    value: object
    type: object


def interface(obj):
    """Return the class unchanged."""
    return obj


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """Return the module unchanged."""
    return mod


def optimize_for_inference(mod, other_methods=None):
    """Return the module unchanged."""
    return mod


def fork(func, *args, **kwargs):
    """Call func(*args, **kwargs) now and return a future with the result."""
    future = _Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """Return the value of a future."""
    return future.wait()


_fork, _wait = fork, wait  # older names


def save(m, f, _extra_files=None):
    """Not supported: raises NotImplementedError."""
    raise unsupported("torch.jit.save", "TorchScript archives are not supported")


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Not supported: raises NotImplementedError."""
    raise unsupported("torch.jit.load", "TorchScript archives are not supported")


def export_opnames(m) -> list:
    """Not supported: raises NotImplementedError."""
    raise unsupported("torch.jit.export_opnames")


def set_fusion_strategy(strategy) -> list:
    """Accepted without effect. Returns the former strategy, which is an empty list."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """Accepted without effect."""


def onednn_fusion_enabled() -> bool:
    """Return False."""
    return False


@contextmanager
def fuser(name):
    """A block without effect. In PyTorch it selects a fuser."""
    yield


@contextmanager
def optimized_execution(should_optimize):
    """A block without effect. In PyTorch it controls optimisation."""
    yield


class strict_fusion:
    """A block without effect. In PyTorch everything inside must be fused."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


def _keep_options() -> None:
    """Add torch._C's options of TorchScript's executor.

    Each function stores its value and returns the last one.
    """
    native = _native()
    names = (
        "_jit_set_profiling_executor",
        "_jit_set_profiling_mode",
        "_jit_override_can_fuse_on_cpu",
        "_jit_override_can_fuse_on_gpu",
        "_jit_set_texpr_fuser_enabled",
        "_jit_set_nvfuser_enabled",
        "_debug_set_autodiff_subgraph_inlining",
        "_debug_set_fusion_group_inlining",
    )
    kept = dict.fromkeys(names, False)

    def option(name):
        def switch(enabled=True):
            before, kept[name] = kept[name], bool(enabled)
            return before

        switch.__name__ = name
        return switch

    for name in names:
        setattr(native, name, option(name))
    # What PyTorch calls with compiled functions and modules, of which there are none here.
    hooks = (None, None)

    def set_hooks(function, module) -> None:
        nonlocal hooks
        hooks = function, module

    native._jit_set_emit_hooks, native._jit_get_emit_hooks = set_hooks, lambda: hooks


_keep_options()
