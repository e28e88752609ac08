"""Exchange of tensors by DLPack."""

from __future__ import annotations

import ctypes

import numpy as np

from .._values.device import device as Device
from ._construct import from_numpy

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int


class _Given:
    """An object with the methods of the DLPack protocol that returns a given capsule."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **options):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0  # kDLCPU: capsules of other devices are not made here


def to_dlpack(tensor):
    """Return a DLPack capsule that shares the tensor's memory. It can be consumed once."""
    return tensor.detach().__dlpack__()


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """Return a tensor that shares memory with an object that has ``__dlpack__``, or with a capsule.

    device: where the tensor is to be; None leaves it where it is. copy: True copies the memory, and None does so only if the
    device requires it.

    Raises:
        RuntimeError: the capsule was consumed before.
        ValueError: copy is False, and the device requires a copy.
        AssertionError: device or copy is given with a capsule, or device is neither a device nor its name.
    """
    if hasattr(ext_tensor, "__dlpack__"):
        return _placed(from_numpy(np.from_dlpack(ext_tensor)), device, copy)
    if device is not None or copy is not None:
        raise AssertionError(
            "device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
        )
    if not _is_valid(ext_tensor, b"dltensor"):
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    return from_numpy(np.from_dlpack(_Given(ext_tensor)))


def _placed(tensor, device, copy):
    """Return a tensor of the host on another device, or a copy of it, if these are wanted."""
    if device is None:
        return tensor.clone() if copy else tensor
    device = Device(device) if isinstance(device, str) else device
    if not isinstance(device, Device):
        raise AssertionError(f"from_dlpack: unsupported device type: {type(device)}")
    if device.type == "cpu":
        return tensor.clone() if copy else tensor
    if copy is False:
        raise ValueError(
            f"cannot move DLPack tensor from device {tensor.device} to {device} without copying. Set copy=None or copy=True."
        )
    return tensor.to(device)


for _function in (from_dlpack, to_dlpack):  # in PyTorch they belong to this module, also in pickles
    _function.__module__ = "torch.utils.dlpack"
