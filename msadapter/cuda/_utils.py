"""Device indices as torch.cuda's functions take them."""

from .._utils import _get_device_index as _general


def _get_device_index(device, optional=False, allow_cpu=False) -> int:
    """Index of a cuda or npu device."""
    return _general(device, optional, allow_cpu)
