"""Combines samples to batches."""

import collections.abc
import copy
import re

import numpy as np

from .... import ops
from ...._values.dtype import float64
from ....tensor import Tensor
from ....tensor import _tensor as factory

__all__ = ["collate", "default_collate", "default_collate_fn_map", "default_convert"]

_NOT_NUMBERS = re.compile(r"[SaUO]")
_MESSAGE = "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"


def _from_numpy(array):
    return factory.from_numpy(array) if array.flags.writeable else factory.from_numpy(array.copy())


def default_convert(data):
    """Return `data` with its numpy arrays converted to tensors."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)):
        if isinstance(data, np.ndarray) and _NOT_NUMBERS.search(data.dtype.str):
            return data
        return factory.as_tensor(data)
    return _rebuild(data, default_convert)


def pinned(data):
    """Return `data` with the tensors in its containers in pinned memory. Other objects may have a method for it."""
    return data.pin_memory() if hasattr(data, "pin_memory") else _rebuild(data, pinned)


def _rebuild(data, function):
    """Return a container of the same type, with `function` applied to its members."""
    if isinstance(data, collections.abc.Mapping):
        return _like(data, {key: function(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(function(value) for value in data))
    if isinstance(data, tuple):
        return [function(value) for value in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like(data, [function(value) for value in data])
    return data


def _like(original, items):
    """Return `items` in a container of original's type, or unchanged if that type cannot be created from them."""
    try:
        if isinstance(original, collections.abc.MutableMapping):
            clone = copy.copy(original)
            clone.update(items)
            return clone
        if isinstance(original, collections.abc.MutableSequence):
            clone = copy.copy(original)
            for i, value in enumerate(items):
                clone[i] = value
            return clone
        return type(original)(items)
    except TypeError:
        return items


def collate(batch, *, collate_fn_map=None):
    """Combine a list of samples to a batch. collate_fn_map has functions for the types of members."""
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        if kind in collate_fn_map:
            return collate_fn_map[kind](batch, collate_fn_map=collate_fn_map)
        for known, function in collate_fn_map.items():
            if isinstance(first, known):
                return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, collections.abc.Mapping):
        return _like(
            first, {key: collate([s[key] for s in batch], collate_fn_map=collate_fn_map) for key in first}
        )
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)))
    if isinstance(first, collections.abc.Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch, strict=True)]
        return columns if isinstance(first, tuple) else _like(first, columns)
    raise TypeError(_MESSAGE.format(kind))


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Stack tensors along a new dimension 0."""
    return ops.stack(list(batch), 0)


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Convert numpy arrays to tensors and stack them along a new dimension 0."""
    if _NOT_NUMBERS.search(batch[0].dtype.str) is not None:
        raise TypeError(_MESSAGE.format(batch[0].dtype))
    return ops.stack([_from_numpy(array) for array in batch], 0)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    """Combine numpy numbers to one tensor."""
    return factory.as_tensor(np.asarray(batch))


def collate_float_fn(batch, *, collate_fn_map=None):
    """Combine Python floats to a float64 tensor."""
    return factory.tensor(batch, dtype=float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Combine Python ints to a tensor."""
    return factory.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Return the list of texts unchanged."""
    return batch


default_collate_fn_map = {
    Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def default_collate(batch):
    """Combine a list of samples to a batch: stack tensors, make tensors of numbers, and combine containers member by member."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
