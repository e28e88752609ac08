"""CUDA graphs are not supported. Creating one raises NotImplementedError."""


def _refuse(what):
    raise NotImplementedError(f"torch.cuda.{what}: capturing graphs is not supported (docs/coverage.md)")


def is_current_stream_capturing() -> bool:
    """Returns False, because nothing is captured."""
    return False


def graph_pool_handle():
    """A handle of a memory pool for graphs."""
    _refuse("graph_pool_handle")


class CUDAGraph:
    """Not supported: a captured graph."""

    def __new__(cls, *args, **kwargs):
        _refuse("CUDAGraph")


class graph:
    """Not supported: a context manager that captures the work of a block."""

    def __init__(self, *args, **kwargs):
        _refuse("graph")


def make_graphed_callables(*args, **kwargs):
    """Not supported: converts functions to captured graphs."""
    _refuse("make_graphed_callables")
