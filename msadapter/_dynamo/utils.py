"""torch._dynamo.utils: the helper that packages ask before they compile a function."""

from . import is_dynamo_supported

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type) -> bool:
    """Return whether functions are compiled for a device type. They are not, as ``is_dynamo_supported`` says."""
    return is_dynamo_supported()
