"""Pickling of tensors in memory (multiprocessing, copy.copy), and deep copies. Files use torch.serialization instead."""

from __future__ import annotations

import copy

from .._values.base import _C
from .storage import UntypedStorage

# Attributes in which this package stores its own facts about a tensor. All others are the user's, whatever their names.
OWN_ATTRIBUTES = frozenset(
    ["_backward_hooks", "_grad_dtype", "_retained_grad", "_retains", "_wrapper_device"]
)


def user_attributes(tensor) -> dict:
    """Return the attributes that user code has set on a tensor.

    Tensors of another layout keep their parts in attributes that start with an underscore.
    """
    parts = tensor.is_nested or tensor.layout._name != "strided"
    return {
        name: value
        for name, value in tensor.__dict__.items()
        if name not in OWN_ATTRIBUTES and not (parts and name.startswith("_"))
    }


def is_wrapper(tensor) -> bool:
    """Return whether a tensor was made by ``Tensor._make_wrapper_subclass``: it has a shape, but no memory."""
    return "_wrapper_device" in tensor.__dict__


def wrapper_facts(tensor) -> tuple:
    """Return what makes such a tensor again: the arguments of ``torch._utils._rebuild_wrapper_subclass``."""
    sizes = tuple(tensor.size()), tuple(tensor.stride()), tensor.storage_offset()
    return type(tensor), tensor.dtype, *sizes, tensor.layout, tensor.device, tensor.requires_grad


def rebuild_wrapper(cls, dtype, size, stride, storage_offset, layout, device, requires_grad, state):
    """Return the tensor without memory that ``wrapper_facts`` has described, with its attributes."""
    options = {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}
    made = cls._make_wrapper_subclass(cls, size, stride, storage_offset, **options)
    made.__dict__.update(state)
    return made


def reduce_tensor(tensor, protocol):
    """Return (rebuild function, arguments): the used bytes of the storage, sizes and strides, and flags.

    The result of an operator comes back as a leaf. Only a transfer to another process refuses it.
    """
    if is_wrapper(tensor):
        return rebuild_wrapper, (*wrapper_facts(tensor), user_attributes(tensor))
    state = {k: v for k, v in tensor.__dict__.items() if not k.startswith("_retain")}
    # An object of its own, because a pickle writes the same object once: in PyTorch each tensor of a pickle has its storage.
    storage = UntypedStorage(_holder=tensor.untyped_storage()._holder)
    return rebuild_tensor, (
        type(tensor),
        storage,
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


def deepcopy_tensor(self, memo):
    """Return a leaf with copied storage, gradient and attributes. Tensors that share a storage still share it.

    Raises:
        RuntimeError: the tensor is not a leaf.
    """
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
            "moment.  If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm "
            "usage, see https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    copied = copy.deepcopy(self.untyped_storage(), memo)
    new = _C.raw_view(copied._holder, self.shape, self.stride(), self.storage_offset(), self.dtype)
    new = _C.placed(new, _C.device_tag(self))
    new.__class__ = type(self)
    new.requires_grad = self.requires_grad
    memo[id(self)] = new
    if self.is_leaf and self.grad is not None:
        new.grad = copy.deepcopy(self.grad, memo)
    for key, value in self.__dict__.items():
        new.__dict__[key] = copy.deepcopy(value, memo)
    return new
