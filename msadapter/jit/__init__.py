"""torch.jit: there is no TorchScript. Scripted functions and modules run as ordinary Python."""

import warnings
from contextlib import contextmanager

from ..compiler._once import say_once

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

from ._isinstance import is_instance as isinstance  # noqa: E402


class TracerWarning(Warning):
    """The warnings of PyTorch's tracer, so that programs can filter them. Nothing here shows one."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Ignore those that come from torch itself."""
        warnings.filterwarnings("ignore", category=TracerWarning, module="torch.(?!jit)")


class ScriptModule:
    """A class for isinstance checks. There are no instances."""


class ScriptFunction:
    """A class for isinstance checks. There are no instances."""


RecursiveScriptModule = TopLevelTracedModule = TracedModule = ScriptModule


def _note():
    say_once(
        "jit",
        "torch.jit.script fuses functions of element-wise operators; everything else, and what torch.jit.trace is given, "
        "stays as it is (docs/coverage.md)",
    )


def script(obj=None, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Return the object itself, with one warning. A function of elementwise operators is fused."""
    if obj is None:
        return script
    _note()
    from ..compiler._fusion import fused

    _check_initialized(obj)
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


def trace(func=None, example_inputs=None, *args, **kwargs):
    """Return the function or module itself, with one warning. It is not specialised to the example inputs."""
    if func is None:
        return lambda f: trace(f, example_inputs, *args, **kwargs)
    _note()
    return func


def trace_module(mod, inputs, *args, **kwargs):
    """Return the module itself, with one warning."""
    _note()
    return mod


def script_if_tracing(fn):
    """Return the function unchanged."""
    return fn


def _script_if_tracing(fn):
    """Return the function unchanged. Packages call this older name."""
    return fn


script_method = export = unused = script_if_tracing


def ignore(drop=False, **kwargs):
    """Return the function unchanged, or a decorator that does so."""
    return drop if callable(drop) else (lambda fn: fn)


def is_scripting() -> bool:
    """Return False."""
    return False


is_tracing = is_scripting


def _overload(func):
    """Return the function unchanged. Its body is empty: it declares types for TorchScript."""
    return func


def _overload_method(func):
    """Return the method unchanged, as ``_overload`` does."""
    return func


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
    from ..futures import Future

    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """Return the value of a future."""
    return future.wait()


_fork, _wait = fork, wait  # older names


def save(m, f, _extra_files=None):
    """Not supported: raises NotImplementedError."""
    raise NotImplementedError("torch.jit.save: TorchScript archives are not supported (docs/coverage.md)")


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Not supported: raises NotImplementedError."""
    raise NotImplementedError("torch.jit.load: TorchScript archives are not supported (docs/coverage.md)")


def export_opnames(m) -> list:
    """Not supported: raises NotImplementedError."""
    raise NotImplementedError("torch.jit.export_opnames is not supported (docs/coverage.md)")


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
    from .._host.native import load

    native = load()
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


_keep_options()
