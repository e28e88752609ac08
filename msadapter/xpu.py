"""torch.xpu: a kind of device that does not exist here."""


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def is_initialized() -> bool:
    """False."""
    return False


def current_device() -> int:
    """RuntimeError: there is no such device."""
    raise RuntimeError("torch.xpu is not available: there is no such device")


def synchronize(device=None) -> None:
    """RuntimeError: there is no such device."""
    raise RuntimeError("torch.xpu is not available: there is no such device")


def empty_cache() -> None:
    """Nothing is cached."""


def manual_seed(seed: int) -> None:
    """Nothing to seed."""


def manual_seed_all(seed: int) -> None:
    """Nothing to seed."""


def _is_in_bad_fork() -> bool:
    return False
