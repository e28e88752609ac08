"""torch.asarray: a tensor that shares the memory of an object where that is possible."""

from __future__ import annotations

import numpy as np

from .._values import device as devices
from .._values.base import _C, Base, as_leaf
from ..ops.creation import check_differentiable
from ._construct import _is_storage, from_numpy, frombuffer, shares_memory, tensor
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
        device = shared.device if device is None else devices.resolve(device)
        dtype = dtype or shared.dtype
        if copy is False:
            _check_shares(shared, dtype, device)
        same = device == shared.device and dtype is shared.dtype
        made = shared if same and not copy else shared.to(dtype=dtype, device=device, copy=True)
    if requires_grad is False and made.requires_grad:
        # PyTorch changes the given leaf too.
        return made.requires_grad_(False) if made.is_leaf else made.detach()
    if requires_grad and not made.requires_grad:
        check_differentiable(made.dtype)
        return as_leaf(made)
    return made


def _aliasing(obj, dtype):
    """Return a tensor that shares the memory of an object, or None if there is no such tensor."""
    if isinstance(obj, Base):
        return obj
    if shares_memory(obj):
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


def _check_shares(found, dtype, device) -> None:
    if device != found.device:
        raise ValueError(f"can't alias tensor from device '{found.device}' to '{device}'.")
    if dtype is not found.dtype:
        name, wanted = (d.scalar_name for d in (found.dtype, dtype))
        raise ValueError(f"can't alias tensor with dtype '{name}' into dtype '{wanted}'.")
