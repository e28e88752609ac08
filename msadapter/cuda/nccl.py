"""torch.cuda.nccl: information about the collective library."""

from .._errors import unsupported

# The NCCL version of torch 2.7's API. The collectives themselves run over MPI or HCCL.
_VERSION = (2, 26, 2)


def version() -> tuple:
    """The (major, minor, patch) version of NCCL whose API is provided."""
    return _VERSION


def is_available(tensors=None) -> bool:
    """Returns False, because NCCL itself cannot be called."""
    return False


def unique_id():
    """Not supported: NCCL's unique id."""
    raise unsupported("torch.cuda.nccl.unique_id")
