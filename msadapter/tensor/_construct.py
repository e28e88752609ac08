"""Conversion of Python data and numpy arrays to tensors and back."""

from __future__ import annotations

import warnings

import numpy as np

from .._host.warn import warn_once
from .._values import dtype as dtypes
from .._values.base import _C, Base, as_leaf, place
from ..ops._declare import t
from ..ops.creation import check_differentiable
from ._arguments import check_bool
from ._lent import Loan


def contiguous_strides(size) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    out, step = [], 1
    for s in reversed(size):
        out.append(step)
        step *= max(s, 1)
    return tuple(reversed(out))


class _ArrayView:
    """Gives numpy access to the memory of a tensor, and keeps the tensor alive."""

    __slots__ = ("__array_interface__", "loan", "owner")

    def __init__(self, tensor):
        dtype = np.dtype(dtypes.NUMPY[tensor.dtype.name])
        size = dtype.itemsize
        self.owner = tensor
        self.loan = Loan(_C.storage_ptr(tensor))
        self.__array_interface__ = {
            "data": (_C.data_ptr(tensor) or 64, False),
            "shape": tuple(tensor.shape),
            "strides": tuple(s * size for s in _C.stride(tensor)),
            "typestr": dtype.str,
            "version": 3,
        }


def as_numpy(tensor):
    if tensor.numel() == 0:
        return np.empty(tuple(tensor.shape), dtypes.NUMPY[tensor.dtype.name])
    return np.asarray(_ArrayView(tensor))


_FROM_NUMPY = {np.dtype(v): dtypes.ALL[k] for k, v in dtypes.NUMPY.items()}


def from_numpy(array):
    """Return a tensor that shares memory with a numpy array (torch.from_numpy).

    Raises:
        TypeError: torch does not have the dtype.
        ValueError: strides are negative or no whole number of elements, or the bytes are in the other order.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if not array.flags.writeable:
        warn_once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means writing to "
            "this tensor will result in undefined behavior. You may want to copy the array to protect its data or make it "
            "writable before converting it to a tensor.",
            stacklevel=2,
        )
    return shared_with(array)


def _check_layout(array) -> None:
    """ValueError for an array whose memory no tensor can describe. Strides of a tensor count whole elements."""
    if any(s < 0 for s in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not currently "
            "supported. (You can probably work around this by making a copy of your array  with array.copy().) "
        )
    if any(s % array.itemsize for s in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the memory."
        )
    if not array.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order. Conversion between byte orders is "
            "currently not supported."
        )


def shared_with(array, alone=False):
    """Return a tensor on the memory of a numpy array, as ``from_numpy`` does, but without its warning.

    Nothing else uses the array if ``alone``.
    """
    dtype = _FROM_NUMPY.get(array.dtype if array.dtype.isnative else array.dtype.newbyteorder("="))
    if dtype is None:
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{array.dtype.type.__name__}. "
            "The only supported types are: float64, float32, float16, "
            "complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and bool."
        )
    _check_layout(array)
    return _made(_view_of_array(array, dtype, alone))


def _made(tensor):
    """Return a tensor that was made outside the table of operators. Under inference mode it has no history."""
    if _C.is_inference_mode_enabled():
        _C.mark_inference(tensor)
    return tensor


def _view_of_array(array, dtype, alone: bool):
    size = dtype.itemsize
    if array.size == 0:
        return _C.raw_empty(array.shape, None, dtype)
    extent = sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True)) + size
    address = array.ctypes.data
    owner = array if alone else (array, Loan(address))
    base = _C.from_buffer(address, extent, dtype, (extent // size,), owner)
    return _C.raw_view(base, array.shape, tuple(s // size for s in array.strides), 0)


_DEEPEST = 128  # nested sequences; a list that contains itself is deeper


def _check_depth(data, depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"too many dimensions '{type(data).__name__}'")


def _plain(data):
    """Replace tensors and numpy scalars in nested sequences by Python numbers or arrays."""
    if isinstance(data, Base):
        return data.detach().to("cpu").tolist()
    if isinstance(data, (list, tuple)):
        return [_plain(d) for d in data]
    return data


_PYTHON_NUMBERS = frozenset((bool, int, float, complex))


def _kinds(data, found: set, depth: int = 0) -> set:
    """Collect what the numbers in nested sequences are: the dtypes of tensors and numpy's numbers, and the types of others.

    Base is among them if there is a tensor. ValueError for a list that contains itself.
    """
    if isinstance(data, (list, tuple)):
        _check_depth(data, depth)
        types = set(map(type, data))
        if types <= _PYTHON_NUMBERS:
            found |= types
        else:
            for one in data:
                _kinds(one, found, depth + 1)
    elif isinstance(data, Base):
        found |= {Base, data.dtype}
    elif isinstance(data, np.ndarray | np.generic):
        found.add(_FROM_NUMPY.get(data.dtype))
    else:
        found.add(type(data))
    return found


def _promoted(kinds: set):
    """Return the dtype of all kinds of numbers together, or None if none of them has a dtype, or one has none in PyTorch."""
    if None in kinds or not any(isinstance(kind, dtypes.dtype) for kind in kinds):
        return None
    made = None
    for kind in kinds - {Base}:
        if not isinstance(kind, dtypes.dtype):
            kind = _dtype_of_python(kind)
        if kind is not None:
            made = kind if made is None else _C.promote_types(made, kind)
    return made


def _dtype_of_python(kind: type):
    """Return the dtype of Python's numbers of a type, or None for other objects."""
    for number, name in ((bool, "bool"), (int, "int64")):
        if issubclass(kind, number):
            return dtypes.ALL[name]
    if issubclass(kind, complex):
        return _C.default_dtype().to_complex()
    return _C.default_dtype() if issubclass(kind, float) else None


def _infer(array: np.ndarray, data) -> dtypes.dtype:
    kind = array.dtype.kind
    if kind == "f":
        return _C.default_dtype()
    if kind == "c":
        return _C.default_dtype().to_complex()
    if kind == "b":
        return dtypes.ALL["bool"]
    if kind in "iu":
        return dtypes.ALL["int64"]
    raise TypeError(f"new(): invalid data type '{type(_first_leaf(data)).__name__}'")


def _first_leaf(data):
    """The first number of nested sequences. ValueError for a list that contains itself."""
    depth = 0
    while isinstance(data, (list, tuple)) and data:
        data, depth = data[0], depth + 1
        _check_depth(data, depth)
    return data


def _all_integers(data) -> bool:
    if isinstance(data, (list, tuple)):
        return all(_all_integers(d) for d in data)
    return isinstance(data, int)


def _check_range(array: np.ndarray, data, dtype) -> None:
    """Raise PyTorch's error if a number of ``array``, which was made from ``data``, does not fit ``dtype``.

    dtype: the wanted one, or None. Unsigned types also take negative numbers, which count from the end.
    """
    if array.size == 0 or array.dtype.kind not in "iuf":
        return
    name = dtype.name if dtype is not None else None
    low, high = array.min().item(), array.max().item()
    if dtype is None or not dtype.is_floating_point and not dtype.is_complex:
        beyond = high >= 2**63 or low < -(
            2**63
        )  # numpy then chooses uint64, or float64 for lists of integers
        if beyond and name not in ("uint64", "bool") and (array.dtype.kind == "u" or _all_integers(data)):
            raise ValueError("Overflow when unpacking long long")
    if name is None or not name.startswith(("int", "uint")) or not hasattr(np, name):
        return
    limits = np.iinfo(name)
    least = limits.min if limits.min < 0 else -int(limits.max)
    if not (least <= low and high <= int(limits.max)):
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")


def _check_even(data) -> None:
    """Raise PyTorch's error if nested sequences have different lengths. The message names the first one.

    Arrays in them count as sequences. TypeError where a number stands in place of a sequence.
    """
    shape, first = [], data
    while _is_sequence(first):
        shape.append(len(first))
        first = first[0] if len(first) else None

    def walk(part, depth):
        if depth == len(shape):
            return
        if not _is_sequence(part):
            raise TypeError("not a sequence")
        if len(part) != shape[depth]:
            raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(part)})")
        for p in part:
            walk(p, depth + 1)

    walk(data, 0)


def _is_sequence(data) -> bool:
    return isinstance(data, (list, tuple)) or (isinstance(data, np.ndarray) and data.ndim > 0)


def _is_plain(data) -> bool:
    """Whether `full` accepts this number. It refuses floats beyond the range of the default dtype; `tensor` makes them inf."""
    kind = type(data)
    if kind is float:
        return -65504.0 <= data <= 65504.0
    return kind is bool or (kind is int and -(2**63) <= data < 2**63)


def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False):
    """Return a new tensor with a copy of ``data``: a number, a nested sequence, a numpy array or a tensor.

    The dtype is inferred from the data by default.
    """
    check_bool("tensor", "requires_grad", requires_grad)
    check_bool("tensor", "pin_memory", pin_memory)
    if dtype is None and not pin_memory and _is_plain(data):
        return t.full((), data, device=device, requires_grad=requires_grad)
    if isinstance(data, Base):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
        out = data.detach().to(dtype=dtype, device=device, copy=True)
    elif _is_storage(data):
        out = place(_of_storage(data, dtype), device)
    elif isinstance(data, (np.ndarray, np.generic)):
        _check_layout(np.asarray(data))  # PyTorch refuses these even where it copies
        out = shared_with(np.array(data, order="C", copy=True), alone=True)
        out = out if dtype is None else out.to(dtype)
        out = place(out, device)
    else:
        out = _from_python(data, dtype)
        out = place(_made(out), device)
    if pin_memory:
        out = out.pin_memory()
    if requires_grad:
        check_differentiable(out.dtype)
        out.requires_grad = True
    return out


def _is_storage(data) -> bool:
    return hasattr(data, "untyped")


def _of_storage(data, dtype):
    """Return a tensor with the elements of a storage. The bytes of one without a dtype are taken as integers."""
    if data.untyped() is not data:  # a storage with a dtype
        if dtype not in (None, data.dtype):
            wanted, got = (d.scalar_name for d in (dtype, data.dtype))
            raise RuntimeError(f"Expected a Storage of type {wanted} or an UntypedStorage, but got {got}")
        dtype = data.dtype
    dtype = dtype or dtypes.ALL["int64"]
    count = data.nbytes() // dtype.itemsize
    return _C.raw_view(data.untyped()._holder, (count,), (1,), 0, dtype).clone()


def _from_python(data, dtype):
    """Return a new host tensor with the values of a number or of nested sequences. ``dtype`` may be None."""
    kinds = _kinds(data, set())
    if isinstance(_first_leaf(data), np.ndarray):
        warn_once(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
            "single numpy.ndarray with numpy.array() before converting to a tensor.",
            stacklevel=3,
        )
    if dtype is None and type(None) in kinds:
        raise RuntimeError("Could not infer dtype of NoneType")
    if any(isinstance(kind, type) and issubclass(kind, str) for kind in kinds):
        if isinstance(data, (list, tuple)) and type(_first_leaf(data)) is str:
            raise ValueError("too many dimensions 'str'")
        raise TypeError("new(): invalid data type 'str'")
    if Base in kinds:
        data = _plain(data)
    if isinstance(data, (list, tuple)) and not data:
        return _C.raw_empty((0,), None, dtype or _C.default_dtype())
    array = _array_of(data, dtype)
    _check_range(array, data, dtype)
    inferred = _promoted(kinds) or _infer(array, data)
    target = dtype or inferred
    if not array.size:
        return _C.raw_empty(array.shape, None, target)
    wide = {"f": np.float64, "c": np.complex128, "b": np.bool_}.get(array.dtype.kind, array.dtype)
    out = shared_with(np.ascontiguousarray(array, dtype=wide), alone=True)
    if array.ndim == 0:
        out = _C.raw_view(out, (), (), 0)
    if out.dtype is target:
        return out
    converted = _C.raw_empty(out.shape, None, target)
    _C.copy_into(converted, out)
    return converted


def _array_of(data, dtype):
    """Return the array of a number or of nested sequences of numbers.

    Raises:
        ValueError: sequences have different lengths, or an integer has more than 64 bits.
        RuntimeError: an element is not a number.
    """
    try:
        array = np.array(data)
    except ValueError:
        _check_even(data)
        raise
    if array.dtype == object and dtype is not None and dtype.is_floating_point and _all_integers(data):
        array = array.astype(np.float64)
    if (
        array.dtype == object
        and dtype is dtypes.ALL["bool"]
        and all(isinstance(v, int | float) for v in array.flat)
    ):
        array = array.astype(np.bool_)
    if array.dtype == object:
        if any(isinstance(v, int) for v in np.ravel(array)):
            raise ValueError("Overflow when unpacking long long")
        raise RuntimeError(f"Could not infer dtype of {type(_first_leaf(data)).__name__}")
    return array


def shares_memory(data) -> bool:
    """Return whether an object is an array whose memory a tensor can share."""
    return isinstance(data, np.ndarray) and data.dtype in _FROM_NUMPY and not any(s < 0 for s in data.strides)


def as_tensor(data, dtype=None, device=None):
    """Return ``data`` as a tensor. It is copied only if necessary."""
    if isinstance(data, Base):
        return data.to(dtype=dtype, device=device) if dtype is not None or device is not None else data
    if _is_storage(data):
        return tensor(data, dtype=dtype, device=device)
    # arrays of other libraries
    if hasattr(data, "__array__") and not isinstance(data, np.generic):
        data = np.asarray(data)
    if shares_memory(data):
        out = from_numpy(data)
        return out.to(dtype=dtype, device=device) if dtype is not None or device is not None else out
    return tensor(data, dtype=dtype, device=device)


def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False):
    """Return a tensor that shares memory with a Python buffer."""
    size = dtype.itemsize
    data = np.frombuffer(buffer, np.uint8)
    if not data.flags.writeable:
        warn_once(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can write to "
            "the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer to protect its "
            "data or make it writable before converting it to a tensor.",
            stacklevel=2,
        )
    if data.nbytes == 0 or count == 0:
        raise ValueError(f"both buffer length ({data.nbytes}) and count ({count}) must not be 0")
    if not 0 <= offset < data.nbytes:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({data.nbytes} bytes) minus 1"
        )
    n = count if count > 0 else (data.nbytes - offset) // size
    if count < 0 and (data.nbytes - offset) % size:
        raise ValueError(
            f"buffer length ({data.nbytes - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({size})"
        )
    if offset + n * size > data.nbytes:
        raise ValueError(
            f"requested buffer length ({n} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({data.nbytes} bytes)"
        )
    out = _C.from_buffer(data.ctypes.data + offset, n * size, dtype, (n,), data)
    return as_leaf(out) if requires_grad else out
