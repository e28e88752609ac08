"""torch.backends.xeon: its launcher is not supported."""


def is_available() -> bool:
    """Return False, because the launcher is not supported."""
    return False


def is_built() -> bool:
    """Return False, because the launcher is not supported."""
    return False
