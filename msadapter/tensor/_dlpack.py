"""Exchange of tensors by DLPack."""

from __future__ import annotations

import ctypes

import numpy as np

from .._values import dtype as dtypes
from .._values.base import Base
from .._values.device import device as Device
from ._construct import as_numpy, shared_with

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int
_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.argtypes, _pointer_of.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_void_p

# A capsule points to a DLTensor: memory (8 bytes), device (8), number of dims (4), and then the code of the dtype (1).
# numpy has no bfloat16, so that its capsules are made and read as those of int16, under another code.
_CODE_AT, _INT, _BFLOAT = 20, 0, 4


class _Given:
    """An object with the methods of the DLPack protocol that returns a given capsule."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **options):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0  # kDLCPU: capsules of other devices are not made here


def _code_of(capsule) -> ctypes.c_uint8:
    """Return the code of the dtype in a capsule, which may be written."""
    return ctypes.c_uint8.from_address(_pointer_of(capsule, b"dltensor") + _CODE_AT)


def capsule_of(tensor):
    """Return a DLPack capsule that shares the memory of a tensor without history. It can be consumed once."""
    if tensor.dtype is not dtypes.bfloat16:
        return as_numpy(tensor).__dlpack__()
    capsule = as_numpy(tensor.view(dtypes.int16)).__dlpack__()
    _code_of(capsule).value = _BFLOAT
    return capsule


def check_stream(stream) -> None:
    """Refuse the stream of another device: a host has none, and -1 stands for none."""
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")


def to_dlpack(tensor):
    """Return a DLPack capsule that shares the tensor's memory. It can be consumed once."""
    return tensor.detach().__dlpack__()


def _of_capsule(capsule):
    code = _code_of(capsule)
    wide = code.value == _BFLOAT  # MindSpore and PyTorch have no other type of that code
    if wide:
        code.value = _INT
    tensor = shared_with(np.from_dlpack(_Given(capsule)))
    return tensor.view(dtypes.bfloat16) if wide else tensor


def _of_object(ext_tensor):
    """Return a tensor on the memory of an object that has ``__dlpack__``."""
    if isinstance(ext_tensor, Base):
        return _of_capsule(ext_tensor.__dlpack__())
    try:
        return shared_with(np.from_dlpack(ext_tensor))
    except BufferError:  # numpy does not have the dtype
        return _of_capsule(ext_tensor.__dlpack__())


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
        return _placed(_of_object(ext_tensor), device, copy)
    if device is not None or copy is not None:
        raise AssertionError(
            "device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
        )
    if not _is_valid(ext_tensor, b"dltensor"):
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
            "might have already constructed a tensor from it once."
        )
    return _of_capsule(ext_tensor)


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
