"""torch.backends.xeon: the launcher of torch.backends.xeon is not offered."""


def is_available() -> bool:
    """False: the launcher of torch.backends.xeon is not offered."""
    return False


def is_built() -> bool:
    """False: the launcher of torch.backends.xeon is not offered."""
    return False
