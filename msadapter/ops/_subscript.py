"""`Tensor.__getitem__` and `__setitem__`. Every index becomes at most one view and one gather or write."""

from __future__ import annotations

import operator
import warnings

from .._values.dtype import int64
from ._declare import t
from .slicing import slice_bounds
from .view import beside, is_tensor, make_tensor


def _bound(x, default):
    if x is None:
        return default
    try:
        return operator.index(x)
    except TypeError:
        if is_tensor(x):
            return int(x.item())
        raise TypeError("slice indices must be integers or None or have an __index__ method") from None


def _as_index_tensor(item):
    """Convert a list, range or numpy array to a tensor. IndexError if it cannot be an index."""
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(item, (list, tuple, range)) or type(item).__module__ == "numpy":
        made = make_tensor(list(item) if isinstance(item, range) else item)
        if made.numel() == 0 and made.dtype.is_floating_point:
            return made.to(int64)
        return made
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
        f"(got {type(item).__name__})"
    )


def _is_number(item) -> bool:
    """Return whether the item is an integer of another library. Arrays of several numbers are not."""
    return hasattr(item, "__index__") and not getattr(item, "ndim", 0)


def _as_tuple(index):
    """Return the items of an index.

    Like PyTorch, treat a list of other things than plain numbers as a tuple.
    """
    if isinstance(index, tuple):
        return index
    if type(index) is list and len(index) < 32:
        for item in index:
            if item is None or item is Ellipsis or isinstance(item, (slice, list, tuple)) or is_tensor(item):
                return tuple(index)
    return (index,)


def _consumed(item) -> int:
    """Return how many dims of the tensor one item covers."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if is_tensor(item) and _is_mask(item):
        return item.ndim
    return 1


def _is_mask(item) -> bool:
    """Return whether a tensor selects by true elements. Bytes do so too, as in the past of PyTorch."""
    return item.dtype.is_bool or _of_bytes(item)


def _position(index, dim, size):
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")
    return index + size if index < 0 else index


def _slice_item(item, size):
    """Return (start, step, length) of a slice."""
    step = _bound(item.step, 1)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    start, length = slice_bounds(_bound(item.start, 0), _bound(item.stop, size), size)
    return start, step, (length + step - 1) // step


def _counted(items, rank):
    """Return the items of an index, with sequences converted to tensors, and the number of dims that they cover.

    Raises:
        IndexError: they cover more dims than the tensor has.
    """
    used = 0
    for i, item in enumerate(items):
        kind = type(item)
        if kind is int or kind is slice:
            used += 1
        elif item is not None and item is not Ellipsis:
            if not (is_tensor(item) or isinstance(item, (bool, int)) or _is_number(item)):
                items = (*items[:i], _as_index_tensor(item), *items[i + 1 :])
                item = items[i]
            used += _consumed(item)
    if used > rank:
        if not rank and len(items) == 1 and isinstance(items[0], slice):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {rank}")
    return items, used


def _gathers(item) -> bool:
    """Return whether an item gathers elements, as index tensors and masks do."""
    return is_tensor(item) and (
        item.ndim > 0
        # under vmap a scalar tensor has a value for each element
        or getattr(item, "_level", None) is not None
        or item.dtype.is_floating_point
        or item.dtype.is_complex
        or _of_bytes(item)
    )


def lower(shape, items):
    """Split an index into (spec, tensors).

    `spec` describes the basic part as a region (see slicing.py), or is None if that is the whole tensor.
    `tensors` holds (dim of the region, index tensor) pairs.
    """
    rank = len(shape)
    items, used = _counted(items, rank)
    spec, tensors, dim, out, changed = [], [], 0, 0, False

    def whole(n):
        nonlocal dim, out
        for _ in range(n):
            spec.extend((1, 0, 1, shape[dim]))
            dim += 1
            out += 1

    def new_dim():
        nonlocal out, changed
        spec.extend((2, 0, 0, 0))
        out += 1
        changed = True

    for item in items:
        kind = type(item)
        if kind is slice:
            start, step, length = _slice_item(item, shape[dim])
            spec.extend((1, start, step, length))
            changed = changed or length != shape[dim] or step != 1
            dim += 1
            out += 1
        elif item is None:
            new_dim()
        elif item is Ellipsis:
            whole(rank - used)
            used = rank  # further ellipses cover no dims
        elif isinstance(item, bool) or (is_tensor(item) and item.ndim == 0 and _is_mask(item)):
            tensors.append((out, make_tensor([0] if bool(item) else [], dtype=int64)))
            new_dim()
        elif _gathers(item):
            tensors.append((out, item))
            whole(_consumed(item))
        else:
            index = int(item.item()) if is_tensor(item) else operator.index(item)
            spec.extend((0, _position(index, dim, shape[dim]), 0, 0))
            dim += 1
            changed = True
    return (spec if changed else None), tensors


def _index_list(tensors, indexed):
    """Return the index tensors in the order of dims, with None for dims without one.

    A boolean mask covers as many dims as it has itself. Index tensors on the host are copied to the device of the
    indexed tensor, as in PyTorch.
    """
    out, dim = [], 0
    for at, x in tensors:
        if _of_bytes(x):
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                stacklevel=3,
            )
        out.extend([None] * (at - dim))
        out.append(beside(x, indexed))
        dim = at + (_consumed(x) if x.ndim else 1)
    return out


_NOT_INDEXABLE = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor "
    "to a number"
)


def getitem(x, index):
    """Return `x[index]`: a view for a basic index, a copy if the index contains tensors."""
    if type(index) is int:
        shape = x.shape
        if not shape:
            raise IndexError(_NOT_INDEXABLE)
        return t._region(x, (0, _position(index, 0, shape[0]), 0, 0))
    if type(index) is slice and not x.shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    spec, tensors = lower(x.shape, _as_tuple(index))
    if not tensors:
        return t._region(x, spec or ())
    return t._index(t._region(x, spec) if spec else x, _index_list(tensors, x))


t._getitem = getitem  # the subscript in C++ calls this for indices that it does not handle itself


def setitem(x, index, value):
    """Do `x[index] = value` in place."""
    if type(index) is int:
        if not x.shape:
            raise IndexError(_NOT_INDEXABLE)
        spec, tensors = (0, _position(index, 0, x.shape[0]), 0, 0), ()
    else:
        spec, tensors = lower(x.shape, _as_tuple(index))
    value = _assignable(x, value)
    part = t._region(x, spec) if spec else x
    number = isinstance(value, (bool, int, float, complex))
    if not tensors and number:
        t.fill_(part, value)
    elif not tensors:
        t.copy_(part, _fitting(value if is_tensor(value) else make_tensor(value, dtype=x.dtype), part.shape))
    elif (
        len(tensors) == 1
        and (
            number or is_tensor(value) and (not value.ndim or value.numel() == 1 and _of_bytes(tensors[0][1]))
        )
        and _is_full_mask(tensors[0], part)
    ):
        t.masked_fill_(part, tensors[0][1], t.reshape(value, []) if is_tensor(value) else value)
    else:
        t.index_put_(
            part,
            _index_list(tensors, part),
            value if is_tensor(value) else make_tensor(value, dtype=x.dtype, device=x.device),
        )


_INTEGERS = {
    "uint8": (-255, 255),
    "int8": (-128, 127),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
_INFINITE_FROM = {"float16": 65504, "bfloat16": 3.3895313892515355e38}
_C_NAMES = {
    "int32": "int",
    "float32": "float",
    "float64": "double",
    "bfloat16": "at::BFloat16",
    "float16": "at::Half",
}


def _assignable(x, value):
    """Return the value as a tensor, or as a Python number that the dtype of x can hold.

    Numpy numbers are converted.
    """
    if is_tensor(value):
        return value
    if hasattr(value, "dtype") and hasattr(value, "item") and not getattr(value, "ndim", 0):
        value = value.item()
    name = x.dtype.name
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if not isinstance(value, (bool, int, float, complex)):
        kind = type(value)
        kind = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"can't assign a {kind} to a torch.{x.dtype.scalar_name}Tensor")
    if isinstance(value, complex) and not x.dtype.is_complex:
        fits = not value.imag
        value = value if not fits else value.real
    else:
        low, high = _INTEGERS.get(name, (None, None))
        fits = low is None or isinstance(value, complex) or low <= value <= high
    if not fits:
        raise RuntimeError(
            f"value cannot be converted to type {_C_NAMES.get(name, name + '_t')} without overflow"
        )
    if name in _INFINITE_FROM and not isinstance(value, complex) and abs(value) > _INFINITE_FROM[name]:
        return make_tensor(float(value), dtype=x.dtype)  # becomes infinite, which fill_ refuses
    return value


def _is_full_mask(entry, part):
    at, mask = entry
    return at == 0 and _is_mask(mask) and mask.shape == part.shape


def _of_bytes(mask) -> bool:
    return mask.dtype.storage_name == "ByteStorage"


def _fitting(value, shape):
    """Return `value` expanded to the destination's shape. Extra leading dims of size 1 are removed."""
    have = list(value.shape)
    while len(have) > len(shape) and have[0] == 1:
        have.pop(0)
    if len(have) != value.ndim:
        value = t.reshape(value, have)
    return value if value.shape == shape else t.expand(value, list(shape))
