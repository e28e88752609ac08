"""torch.utils._contextlib: context managers that are decorators of functions and generators too."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ..autograd.grad_mode import _Mode

__all__ = ["context_decorator"]


class _DecoratorContextManager(_Mode):
    """Base class of a context manager that is a decorator too. Each call runs in what ``clone`` returns."""

    def __enter__(self):
        raise NotImplementedError(f"{type(self).__name__} has no __enter__")

    def __exit__(self, exc_type, exc_value, traceback):
        raise NotImplementedError(f"{type(self).__name__} has no __exit__")


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """The same for a context manager without arguments: as a decorator it may stand without parentheses."""

    def __new__(cls, orig_func: Callable | None = None):
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)


class _Each(_DecoratorContextManager):
    def __init__(self, make: Callable):
        self.clone = make  # type: ignore[method-assign]


def context_decorator(ctx, func: Callable) -> Callable:
    """Return a function that runs ``func`` inside a context manager. Each step of a generator runs inside one.

    Args:
        ctx: a context manager that may be entered several times, or a function without arguments that returns one.

    Raises:
        AssertionError: ``ctx`` is both.
        RuntimeError: ``func`` is a class.
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), making it ambiguous "
            "which interface to use.  If you intended to pass a context manager factory, rewrite your call as "
            "context_decorator(lambda: ctx()); if you intended to pass a context manager directly, rewrite your call "
            "as context_decorator(lambda: ctx)"
        )
    if inspect.isclass(func):
        raise RuntimeError(
            "Cannot decorate classes; it is ambiguous whether or not only the constructor or all methods should have "
            "the context manager applied: decorate each of the methods"
        )
    return _Each(ctx if callable(ctx) else lambda: ctx)(func)
