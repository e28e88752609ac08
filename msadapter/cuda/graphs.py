"""CUDA graphs do not exist here: making one says so."""


def _refuse(what):
    raise NotImplementedError(f"torch.cuda.{what}: capturing graphs is not supported (docs/coverage.md)")


def is_current_stream_capturing() -> bool:
    """False: nothing is ever captured."""
    return False


def graph_pool_handle():
    """A handle for memory that graphs would share."""
    _refuse("graph_pool_handle")


class CUDAGraph:
    """A captured graph."""

    def __new__(cls, *args, **kwargs):
        _refuse("CUDAGraph")


class graph:
    """Context manager that would capture the work of a block."""

    def __init__(self, *args, **kwargs):
        _refuse("graph")


def make_graphed_callables(*args, **kwargs):
    """Functions as captured graphs."""
    _refuse("make_graphed_callables")
