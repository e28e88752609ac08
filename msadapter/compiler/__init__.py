"""torch.compiler: chains of elementwise operators are fused. Everything else runs without compilation."""

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
    """Return a function or module whose chains of elementwise operators run as one kernel.

    Without ``model``, return a decorator.
    """
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
        from ._fusion import fused  # here: few programs fuse

        return fused(model)
    return model


def disable(fn=None, recursive=True, *, reason=None):
    """Return the function unchanged."""
    return fn if fn is not None else (lambda f: f)


def allow_in_graph(fn):
    """Return the function unchanged."""
    return fn


def assume_constant_result(fn):
    """Return the function unchanged."""
    return fn


def substitute_in_graph(original_fn, *, can_constant_fold_through=False, skip_signature_check=False):
    """Return a decorator that returns its function."""
    return lambda fn: fn


def reset() -> None:
    """Does nothing, because there are no caches."""


def list_backends(exclude_tags=("debug", "experimental")) -> list:
    """Return an empty list, because there are no compiler backends."""
    return []


def is_compiling() -> bool:
    """Return False."""
    return False


is_dynamo_compiling = is_exporting = is_compiling


def cudagraph_mark_step_begin() -> None:
    """Does nothing, because there are no CUDA graphs."""


class set_stance:
    """Accepted without effect.

    In PyTorch it controls the compiler, as context manager, decorator or function.
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        self.stance = stance

    def __call__(self, fn):
        return fn

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return False
