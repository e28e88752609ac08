"""torch.distributed.rpc as in a PyTorch that was built without it: it can be imported, and says that it is not available."""

__all__ = ["is_available"]


def is_available() -> bool:
    """Return False, because remote procedure calls are not supported (docs/coverage.md)."""
    return False
