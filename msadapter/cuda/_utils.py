"""Converts the device arguments of torch.cuda's functions to device indices."""

from .._utils import _get_device_index as _general


def _get_device_index(device, optional=False, allow_cpu=False) -> int:
    """The index of a cuda or npu device."""
    return _general(device, optional, allow_cpu)
