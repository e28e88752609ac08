"""torch.compiler: chains of element-wise operators are fused; everything else runs as it is."""

import functools

from ._once import say_once

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "cudagraph_mark_step_begin",
    "disable",
    "is_compiling",
    "is_dynamo_compiling",
    "is_exporting",
    "list_backends",
    "reset",
    "set_stance",
    "substitute_in_graph",
]


def compile(
    model=None, *, fullgraph=False, dynamic=None, backend="inductor", mode=None, options=None, disable=False
):
    """The function or module, fused where it is a chain of element-wise operators; without one, a decorator."""
    if mode is not None and options is not None:
        raise RuntimeError(
            "Either mode or options can be specified, but both can't be specified at the same time."
        )
    if model is None:
        return functools.partial(
            compile,
            fullgraph=fullgraph,
            dynamic=dynamic,
            backend=backend,
            mode=mode,
            options=options,
            disable=disable,
        )
    if not callable(model):
        raise RuntimeError(f"torch.compile: expected a callable, but got {type(model)}")
    if not disable:
        say_once(
            "compile",
            "torch.compile fuses functions of element-wise operators and runs everything else as it is (docs/coverage.md)",
        )
        from ._fusion import fused

        return fused(model)
    return model


def disable(fn=None, recursive=True, *, reason=None):
    """The function itself."""
    return fn if fn is not None else (lambda f: f)


def allow_in_graph(fn):
    """The function itself."""
    return fn


def assume_constant_result(fn):
    """The function itself."""
    return fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """A decorator that returns its function."""
    return lambda fn: fn


def reset() -> None:
    """No caches to drop."""


def list_backends(exclude_tags=("debug", "experimental")) -> list:
    """Names of compiler backends: none."""
    return []


def is_compiling() -> bool:
    """False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def cudagraph_mark_step_begin() -> None:
    """No graphs to tell."""


class set_stance:
    """Context manager, decorator and function that would steer the compiler."""

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        self.stance = stance

    def __call__(self, fn):
        return fn

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False
