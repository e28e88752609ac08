"""Pickling of tensors in memory (multiprocessing, copy.copy). Files use torch.serialization instead."""

from __future__ import annotations

from .._values.base import _C
from .storage import UntypedStorage


def reduce_tensor(tensor, protocol):
    """Return (rebuild function, arguments): the used bytes of the storage, sizes and strides, and flags."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing "
            "process boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing "
            "(e.g., putting it on the queue)."
        )
    state = {k: v for k, v in tensor.__dict__.items() if not k.startswith("_retain")}
    return rebuild_tensor, (
        type(tensor),
        tensor.untyped_storage(),
        tensor.dtype,
        tensor.storage_offset(),
        tuple(tensor.shape),
        tuple(tensor.stride()),
        tensor.requires_grad,
        _C.device_tag(tensor),
        state,
    )


def rebuild_tensor(cls, storage: UntypedStorage, dtype, offset, size, stride, requires_grad, tag, state):
    """Return the tensor that ``reduce_tensor`` has described."""
    tensor = _C.raw_view(storage._holder, size, stride, offset, dtype)
    _C.set_device_tag(tensor, tag)
    tensor.__class__ = cls
    if requires_grad:
        tensor.requires_grad = True
    tensor.__dict__.update(state)
    return tensor
