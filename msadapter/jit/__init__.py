"""torch.jit: TorchScript does not exist here; scripted functions and modules run as the Python they are."""

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

from typing import Final  # noqa: E402


class ScriptModule:
    """For isinstance checks: no module is ever scripted."""


class ScriptFunction:
    """For isinstance checks: no function is ever scripted."""


RecursiveScriptModule = TopLevelTracedModule = TracedModule = ScriptModule


def _note():
    say_once(
        "jit",
        "torch.jit.script fuses functions of element-wise operators; everything else, and what torch.jit.trace is given, "
        "stays as it is (docs/coverage.md)",
    )


def script(obj=None, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """The function, class or module itself (said once); a function of element-wise operators is fused."""
    if obj is None:
        return script
    _note()
    from ..compiler._fusion import fused

    return fused(obj)


def trace(func=None, example_inputs=None, *args, **kwargs):
    """The function or module itself (said once): it is not specialised to the example."""
    if func is None:
        return lambda f: trace(f, example_inputs, *args, **kwargs)
    _note()
    return func


def trace_module(mod, inputs, *args, **kwargs):
    """The module itself (said once)."""
    _note()
    return mod


def script_if_tracing(fn):
    """The function itself."""
    return fn


script_method = export = unused = script_if_tracing


def ignore(drop=False, **kwargs):
    """The function itself; or a decorator that returns it."""
    return drop if callable(drop) else (lambda fn: fn)


def is_scripting() -> bool:
    """False."""
    return False


is_tracing = is_scripting


def annotate(the_type, the_value):
    """The value."""
    return the_value


def Attribute(value, type=None):
    """The value."""
    return value


def interface(obj):
    """The class itself."""
    return obj


def isinstance(obj, target_type) -> bool:
    """Python's isinstance, also for parametrised containers (their parameters are not looked at)."""
    import builtins
    from typing import get_origin

    targets = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return builtins.isinstance(obj, tuple(get_origin(t) or t for t in targets))


def freeze(mod, preserved_attrs=None, optimize_numerics=True):
    """The module itself."""
    return mod


def optimize_for_inference(mod, other_methods=None):
    """The module itself."""
    return mod


def fork(func, *args, **kwargs):
    """A future of func(*args, **kwargs), which is computed at once."""
    from ..futures import Future

    future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future):
    """The value of a future."""
    return future.wait()


def save(m, f, _extra_files=None):
    """Write a TorchScript archive."""
    raise NotImplementedError("torch.jit.save: TorchScript archives are not supported (docs/coverage.md)")


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Read a TorchScript archive."""
    raise NotImplementedError("torch.jit.load: TorchScript archives are not supported (docs/coverage.md)")


def export_opnames(m) -> list:
    """Operators of a scripted module."""
    raise NotImplementedError("torch.jit.export_opnames is not supported (docs/coverage.md)")


def set_fusion_strategy(strategy) -> list:
    """No fuser to steer: the strategy before, which is empty."""
    return []


def enable_onednn_fusion(enabled: bool) -> None:
    """No fuser to steer."""


def onednn_fusion_enabled() -> bool:
    """False."""
    return False


@contextmanager
def fuser(name):
    """A block with a fuser: there is none."""
    yield


@contextmanager
def optimized_execution(should_optimize):
    """A block with optimisation: there is none."""
    yield


class strict_fusion:
    """A block that must fuse completely: accepted."""

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False


def _keep_options() -> None:
    """torch._C's switches of TorchScript's executor: each keeps what it is given and answers what it had."""
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
