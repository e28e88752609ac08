"""torch.backends.mps: there is no Apple GPU."""


def is_available() -> bool:
    """Return False, because there is no Apple GPU."""
    return False


def is_built() -> bool:
    """Return False, because there is no Apple GPU."""
    return False
