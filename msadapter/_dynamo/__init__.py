"""torch._dynamo: the compiler's front end. Nothing is traced; its switches are remembered."""

from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from ..compiler import compile as _compile
from . import config, eval_frame

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "eval_frame",
    "explain",
    "forbid_in_graph",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
    "run",
]


def optimize(backend="inductor", *args, **kwargs):
    """A decorator that returns its function (said once)."""
    return lambda fn: _compile(fn, backend=backend)


def graph_break(msg="") -> None:
    """No graph to break."""


def disallow_in_graph(fn):
    """The function itself."""
    return fn


forbid_in_graph = disallow_in_graph


def run(fn=None):
    """The function itself."""
    return fn if fn is not None else (lambda f: f)


def mark_dynamic(t, index, **kwargs) -> None:
    """Sizes are always dynamic here."""


maybe_mark_dynamic = mark_static = mark_dynamic


def mark_static_address(t, guard: bool = True) -> None:
    """A hint to a compiler that captures addresses: nothing is captured here."""
    from ..tensor import Tensor

    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t).__name__}")


def explain(f, *args, **kwargs):
    """A report on tracing."""
    raise NotImplementedError("torch._dynamo.explain is not supported (docs/coverage.md)")


def is_dynamo_supported() -> bool:
    """False."""
    return False
