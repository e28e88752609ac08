"""torch._dynamo, the front end of PyTorch's compiler. Nothing is traced here; options are only stored."""

from .._errors import unsupported
from ..compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset
from ..compiler import compile as _compile
from ..tensor import Tensor
from . import config, eval_frame
from .eval_frame import OptimizedModule

__all__ = [
    "OptimizedModule",
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
    """Return a decorator that returns its function. The first call gives a warning."""
    return lambda fn: _compile(fn, backend=backend)


def graph_break(msg="") -> None:
    """Does nothing, because no graph is traced."""


def disallow_in_graph(fn):
    """Return the function unchanged."""
    return fn


forbid_in_graph = disallow_in_graph


def run(fn=None):
    """Return the function unchanged."""
    return fn if fn is not None else (lambda f: f)


def mark_dynamic(t, index, **kwargs) -> None:
    """Does nothing, because sizes may always vary."""


maybe_mark_dynamic = mark_static = mark_dynamic


def mark_static_address(t, guard: bool = False) -> None:
    """Does nothing. In PyTorch it is a hint for a compiler that records memory addresses."""
    if not isinstance(t, Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t).__name__}")


def explain(f, *args, **kwargs):
    """Not supported: raises NotImplementedError, because nothing is traced."""
    raise unsupported("torch._dynamo.explain")


def is_dynamo_supported() -> bool:
    """Return False."""
    return False
