"""Facts about the collective library as programs ask for them."""

# The level of the API that torch 2.7 documents; collectives here run over MPI or HCCL.
_VERSION = (2, 26, 2)


def version() -> tuple:
    """(major, minor, patch) of the NCCL whose interface is offered."""
    return _VERSION


def is_available(tensors=None) -> bool:
    """Whether NCCL itself can be called: never."""
    return False


def unique_id():
    """NCCL's rendezvous id."""
    raise NotImplementedError("torch.cuda.nccl.unique_id is not supported (docs/coverage.md)")
