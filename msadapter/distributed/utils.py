"""Helpers that libraries import from torch.distributed.utils."""

from __future__ import annotations

import copy
import dataclasses
import math
import traceback

from ..autograd import no_grad
from ..tensor import Tensor
from . import collectives
from .objects import all_gather_object
from .setup import get_world_size


def _verify_param_shape_across_processes(process_group, tensors, logger=None) -> None:
    """Raises ValueError if the shapes of the parameters differ between processes."""
    shapes = [tuple(t.shape) for t in tensors]
    everyone = [None] * get_world_size(process_group)
    all_gather_object(everyone, shapes, process_group)
    if any(other != shapes for other in everyone):
        raise ValueError("the parameters have different shapes on the processes")


def _sync_module_states(
    module, process_group, broadcast_bucket_size, src, params_and_buffers_to_ignore=(), broadcast_buffers=True
) -> None:
    """Broadcasts the parameters and buffers of `src` to all processes."""
    with no_grad():
        named = list(module.named_parameters()) + (list(module.named_buffers()) if broadcast_buffers else [])
        for name, tensor in named:
            if name not in params_and_buffers_to_ignore:
                collectives.broadcast(tensor.detach(), src, process_group)


def _p_assert(cond, s: str, raise_assertion_error: bool = True) -> None:
    """An assertion that also prints its message, because backward passes may hide errors."""
    if not cond:
        print(s)
        traceback.print_stack()
        if raise_assertion_error:
            raise AssertionError(s)


def _alloc_storage(tensor, size) -> bool:
    """Reallocates a tensor's freed storage for ``size`` elements. Returns True if it did something."""
    wanted = math.prod(size) * tensor.itemsize
    storage = tensor.untyped_storage()
    if storage.nbytes() == wanted:
        return False
    _p_assert(
        storage.nbytes() == 0, "Tensor storage should have been resized to be 0 before it is given room again"
    )
    storage.resize_(wanted)
    return True


def _free_storage(tensor) -> None:
    """Frees the memory of a tensor that does not share its storage."""
    storage = tensor.untyped_storage()
    if storage.nbytes() > 0:
        _p_assert(
            tensor.storage_offset() == 0,
            "Freeing a tensor's storage is unsafe when it is not the sole occupant\n"
            f"storage offset: {tensor.storage_offset()}\nstorage size: {storage.nbytes()}\ntensor shape: {tensor.shape}",
        )
        storage.resize_(0)


def _apply_to_tensors(fn, container):
    """Applies fn to every tensor in a container of nested lists, tuples, dicts, sets and dataclasses."""
    if isinstance(container, Tensor):
        return fn(container)
    if dataclasses.is_dataclass(container) and not isinstance(container, type):
        names = [field.name for field in dataclasses.fields(container) if field.init]
        return dataclasses.replace(
            container, **{name: _apply_to_tensors(fn, getattr(container, name)) for name in names}
        )
    if isinstance(container, dict):
        made = copy.copy(container)
        made.update({key: _apply_to_tensors(fn, value) for key, value in container.items()})
        return made
    if isinstance(container, tuple) and hasattr(container, "_fields"):
        return type(container)(*(_apply_to_tensors(fn, value) for value in container))
    if isinstance(container, (list, tuple, set)):
        return type(container)(_apply_to_tensors(fn, value) for value in container)
    return container


def _cast_forward_inputs(dtype, *args, **kwargs):
    """Returns (args, kwargs) with floating point tensors cast to another dtype."""
    if dtype is None:
        return args, kwargs

    def cast(x):
        return x.to(dtype) if x.is_floating_point() and x.dtype is not dtype else x

    return _apply_to_tensors(cast, args), _apply_to_tensors(cast, kwargs)


def _pack_kwargs(*args, **kwargs) -> tuple:
    """(all values, names of the last ones)."""
    return (*args, *kwargs.values()), tuple(kwargs)


def _unpack_kwargs(flat_args, kwarg_keys) -> tuple:
    """The inverse of `_pack_kwargs`."""
    if len(kwarg_keys) > len(flat_args):
        raise AssertionError(f"too many keys {len(kwarg_keys)} vs. {len(flat_args)}")
    count = len(flat_args) - len(kwarg_keys)
    return tuple(flat_args[:count]), dict(zip(kwarg_keys, flat_args[count:], strict=True))


def _recursive_to(inputs, target_device, use_side_stream_for_tensor_copies=False) -> list:
    """[inputs], their tensors on a device."""
    return [_apply_to_tensors(lambda x: x.to(target_device), inputs)]


def _to_kwargs(inputs, kwargs, target_device, use_side_stream_for_tensor_copies=False) -> tuple:
    """((inputs,), (kwargs,)) with tensors on a device."""
    moved, named = _recursive_to(inputs, target_device), _recursive_to(kwargs or {}, target_device)
    return tuple(moved), tuple(named)


def _replace_by_prefix(state_dict: dict, old_prefix: str, new_prefix: str) -> None:
    """Replaces the prefix of the names of a state dict, in place."""
    if old_prefix == new_prefix:
        raise ValueError("old_prefix and new_prefix must be distinct")
    for key in list(state_dict):
        if key.startswith(old_prefix):
            state_dict[new_prefix + key[len(old_prefix) :]] = state_dict.pop(key)
