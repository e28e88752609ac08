"""torch.asarray: a tensor that shares the memory of an object where that is possible."""

from __future__ import annotations

import numpy as np

from .._values import device as devices
from .._values.base import _C, Base
from ._construct import _FROM_NUMPY, _is_storage, from_numpy, frombuffer, tensor
from ._dlpack import from_dlpack


def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """Return an object as a tensor: one that shares its memory where that is possible, unless ``copy`` is True.

    Objects are taken in this order: tensors, arrays of NumPy, capsules and objects of DLPack, buffers of Python, and numbers or
    sequences, which are always copied. A buffer has the default dtype, unless another is given.

    Args:
        requires_grad: None leaves it to a tensor whether it requires grad.

    Raises:
        ValueError: ``copy`` is False, and the object must be copied.
    """
    if copy is False and isinstance(obj, np.generic):
        raise RuntimeError(
            "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
        )
    shared = _aliasing(obj, dtype)
    if shared is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        made = tensor(obj, dtype=dtype, device=device)
    else:
        if copy is False:
            _check_shares(shared, dtype, device)
        made = shared
        if copy or _differs(shared, dtype, device):
            made = shared.to(dtype=dtype, device=device, copy=True)
    if requires_grad is False and made.requires_grad:
        return (
            made.requires_grad_(False) if made.is_leaf else made.detach()
        )  # PyTorch changes the given leaf too
    if requires_grad and not made.requires_grad:
        if not (made.dtype.is_floating_point or made.dtype.is_complex):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return made.requires_grad_()
    return made


def _aliasing(obj, dtype):
    """Return a tensor that shares the memory of an object, or None if there is no such tensor."""
    if isinstance(obj, Base):
        return obj
    if isinstance(obj, np.ndarray) and obj.dtype in _FROM_NUMPY and not any(s < 0 for s in obj.strides):
        return from_numpy(obj)
    if type(obj).__name__ == "PyCapsule" or hasattr(obj, "__dlpack__"):
        return from_dlpack(obj)
    if isinstance(obj, np.generic | np.ndarray) or _is_storage(obj):
        return None
    try:
        memoryview(obj)
    except TypeError:
        return None
    return frombuffer(obj, dtype=dtype or _C.default_dtype())


def _differs(found, dtype, device) -> bool:
    other = device is not None and devices.resolve(device) != found.device
    return other or dtype not in (None, found.dtype)


def _check_shares(found, dtype, device) -> None:
    if device is not None and devices.resolve(device) != found.device:
        raise ValueError(f"can't alias tensor from device '{found.device}' to '{devices.resolve(device)}'.")
    if dtype not in (None, found.dtype):
        name, wanted = (d.storage_name.removesuffix("Storage") for d in (found.dtype, dtype))
        raise ValueError(f"can't alias tensor with dtype '{name}' into dtype '{wanted}'.")
