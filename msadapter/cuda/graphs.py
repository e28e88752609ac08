"""CUDA graphs are not supported. Creating one raises NotImplementedError."""

from .._errors import unsupported

_WHY = "capturing graphs is not supported"


def is_current_stream_capturing() -> bool:
    """Returns False, because nothing is captured."""
    return False


def graph_pool_handle():
    """A handle of a memory pool for graphs."""
    raise unsupported("torch.cuda.graph_pool_handle", _WHY)


class CUDAGraph:
    """Not supported: a captured graph."""

    def __new__(cls, *args, **kwargs):
        raise unsupported("torch.cuda.CUDAGraph", _WHY)


class graph:
    """Not supported: a context manager that captures the work of a block."""

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.cuda.graph", _WHY)


def make_graphed_callables(*args, **kwargs):
    """Not supported: converts functions to captured graphs."""
    raise unsupported("torch.cuda.make_graphed_callables", _WHY)
