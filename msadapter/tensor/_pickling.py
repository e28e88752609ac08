"""Plain pickling of tensors (multiprocessing, copy.copy). Files go through serialization, which has torch's format."""

from __future__ import annotations

from .._values.base import _C
from .storage import UntypedStorage


def reduce_tensor(tensor, protocol):
    """(rebuild, arguments): the used bytes of the storage, the geometry, the flags."""
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
    """The tensor that ``reduce_tensor`` described."""
    tensor = _C.raw_view(storage._holder, size, stride, offset, dtype)
    _C.set_device_tag(tensor, tag)
    tensor.__class__ = cls
    if requires_grad:
        tensor.requires_grad = True
    tensor.__dict__.update(state)
    return tensor
