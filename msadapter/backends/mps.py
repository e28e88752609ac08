"""torch.backends.mps: there is no Apple GPU."""


def is_available() -> bool:
    """False: there is no Apple GPU."""
    return False


def is_built() -> bool:
    """False: there is no Apple GPU."""
    return False
