"""Kinds of devices that do not exist here (torch.mps, torch.xpu, torch.mtia): what their modules say."""


def absent(name: str) -> dict:
    """The functions of ``torch.<name>``: nothing is available, whatever needs the device raises RuntimeError."""

    def is_available() -> bool:
        """False."""
        return False

    def device_count() -> int:
        """0."""
        return 0

    def current_device() -> int:
        """RuntimeError: there is no such device."""
        raise RuntimeError(f"torch.{name} is not available: there is no such device")

    def synchronize(device=None) -> None:
        """RuntimeError: there is no such device."""
        current_device()

    def empty_cache() -> None:
        """Nothing is cached."""

    def manual_seed(seed: int) -> None:
        """Nothing to seed."""

    return {
        "is_available": is_available,
        "is_initialized": is_available,
        "_is_in_bad_fork": is_available,
        "device_count": device_count,
        "current_device": current_device,
        "synchronize": synchronize,
        "empty_cache": empty_cache,
        "manual_seed": manual_seed,
        "manual_seed_all": manual_seed,
    }
