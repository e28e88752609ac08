"""Runs kernels on the CPU, one program after another, as Triton does with TRITON_INTERPRET=1.

A pointer is a flat view of a tensor's storage and offsets into it. Blocks are tensors. An address outside of the storage is an
IndexError. A kernel can use what triton.language has here.
"""

import builtins
import inspect
import itertools
import threading

from .. import Tensor, as_tensor, broadcast_tensors, full_like
from .. import arange as _numbers
from .. import cumsum as _cumsum
from .. import full as _full
from .. import maximum as _maximum
from .. import minimum as _minimum
from .. import sum as _sum
from .. import where as where  # a function of kernels, too
from .._values.dtype import ALL

_OPTIONS = frozenset(("num_warps", "num_stages", "num_ctas", "maxnreg"))  # of a GPU's scheduler
_running = threading.local()


class Pointer:
    """Addresses of elements: `offsets` is a number or a tensor of numbers."""

    def __init__(self, elements: Tensor, offsets):
        self.elements, self.offsets = elements, offsets

    def __add__(self, other):
        return Pointer(self.elements, self.offsets + other)

    __radd__ = __add__

    def __sub__(self, other):
        return Pointer(self.elements, self.offsets - other)


def inside() -> bool:
    """Whether this thread runs a program of a kernel."""
    return getattr(_running, "place", None) is not None


def launch(function, grid, args, kwargs, chosen=()) -> None:
    """Run `function` for every place of a grid: one to three numbers, or a function of the arguments that returns them.

    chosen: functions from the arguments to further ones, of which the last is asked first. They do not replace what is given.
    """
    signature = inspect.signature(function)
    kept = {n: v for n, v in kwargs.items() if n in signature.parameters or n not in _OPTIONS}
    given = dict(signature.bind_partial(*args, **kept).arguments)
    for choose in reversed(chosen):
        further = choose(given)
        given |= {name: further[name] for name in further.keys() - given.keys() - _OPTIONS}
    bound = signature.bind(**given)
    bound.apply_defaults()
    sizes = grid(dict(bound.arguments)) if callable(grid) else grid
    sizes = (sizes,) if isinstance(sizes, int) else tuple(int(size) for size in sizes)
    given = {name: _pointer(value) for name, value in bound.arguments.items()}
    _running.sizes = (*sizes, 1, 1)[:3]
    try:
        for place in itertools.product(*map(builtins.range, _running.sizes)):
            _running.place = place
            function(**given)
    finally:
        _running.place = None


def _pointer(value):
    if not isinstance(value, Tensor):
        return value
    value = value.detach()
    count = value.untyped_storage().nbytes() // value.element_size()
    return Pointer(value.as_strided((count,), (1,), 0), value.storage_offset())


def _number(value: int) -> Tensor:
    """A number of a kernel: a block without dimensions of 32 bits, which can be converted as others."""
    return as_tensor(value, dtype=ALL["int32"])


def program_id(axis: int) -> Tensor:
    """The place of this program along an axis of the grid."""
    return _number(_running.place[axis])


def num_programs(axis: int) -> Tensor:
    """The size of the grid along an axis."""
    return _number(_running.sizes[axis])


def arange(start: int, end: int) -> Tensor:
    """The numbers from start to end - 1."""
    return _numbers(start, end)


def load(pointer: Pointer, mask=None, other=None, **hints) -> Tensor:
    """The elements at the addresses. Where the mask is False, nothing is read, and `other` or 0 stands there."""
    if mask is None:
        return pointer.elements[_within(pointer, pointer.offsets)]
    mask, offsets = broadcast_tensors(as_tensor(mask), as_tensor(pointer.offsets))
    if not mask.any():
        return full_like(offsets, 0 if other is None else other, dtype=pointer.elements.dtype)
    first = offsets[mask].reshape(-1)[0]  # an address that may be read, in the place of those that may not
    found = pointer.elements[_within(pointer, where(mask, offsets, first))]
    return where(mask, found, full_like(found, 0 if other is None else other))


def store(pointer: Pointer, value, mask=None, **hints) -> None:
    """Write a value to the addresses, except where the mask is False."""
    value = as_tensor(value).to(pointer.elements.dtype)
    if mask is None:
        pointer.elements[_within(pointer, pointer.offsets)] = value
        return
    mask, offsets, value = broadcast_tensors(as_tensor(mask), as_tensor(pointer.offsets), value)
    pointer.elements[_within(pointer, offsets[mask])] = value[mask]


def atomic_add(pointer: Pointer, value, mask=None, **hints) -> Tensor:
    """Add values to the elements at the addresses, except where the mask is False, and return what was there before.

    An address that occurs several times in a block is added to in the order of the block, so each occurrence returns what the
    earlier ones have left. Where the mask is False, 0 is returned.
    """
    value = as_tensor(value).to(pointer.elements.dtype)
    mask, offsets, value = broadcast_tensors(
        as_tensor(True if mask is None else mask), as_tensor(pointer.offsets), value
    )
    chosen, added = _within(pointer, offsets[mask]).reshape(-1), value[mask].reshape(-1)
    before = full_like(value, 0)
    if len(chosen):
        earlier = pointer.elements[chosen]
        if len(chosen) > 1 and len(chosen.unique()) < len(chosen):
            same = (chosen[:, None] == chosen[None, :]).tril(-1)
            earlier = earlier + where(same, added[None, :], full_like(added, 0)[None, :]).sum(1).to(
                added.dtype
            )
        before[mask] = earlier
        pointer.elements.index_put_((chosen,), added, accumulate=True)
    return before


def _within(pointer: Pointer, offsets):
    numbers = as_tensor(offsets)
    outside = (numbers < 0) | (numbers >= len(pointer.elements))
    if outside.any():
        wrong = numbers[outside].reshape(-1)[0].item()
        raise IndexError(f"triton: element {wrong} of a storage of {len(pointer.elements)} is accessed")
    return offsets


def debug_barrier() -> None:
    """Nothing: every instruction has been carried out for the whole block before the next one begins."""


def cdiv(x, y):
    """x / y, rounded up."""
    return -(-x // y)


def minimum(x, y) -> Tensor:
    """The smaller one of each pair."""
    return _minimum(as_tensor(x), as_tensor(y))


def maximum(x, y) -> Tensor:
    """The larger one of each pair."""
    return _maximum(as_tensor(x), as_tensor(y))


def cumsum(input: Tensor, axis: int = 0, reverse: bool = False) -> Tensor:
    """The sums of the elements up to each, along an axis, or with reverse from each to the end. The type stays."""
    whole = input.flip(axis) if reverse else input
    sums = _cumsum(whole, axis).to(input.dtype)
    return sums.flip(axis) if reverse else sums


def sum(input: Tensor, axis: int | None = None, keep_dims: bool = False) -> Tensor:
    """The sum of a block, along an axis or of all elements. Integers of less than 32 bits are added in 32 bits."""
    kind = input.dtype
    small = not kind.is_floating_point and kind.itemsize < 4
    wide = ALL["int32" if kind.is_signed or kind is ALL["bool"] else "uint32"] if small else kind
    axes = tuple(builtins.range(input.ndim)) if axis is None else (axis,)
    return _sum(input, axes, keepdim=keep_dims).to(wide)


def full(shape, value, dtype) -> Tensor:
    """A block of one value."""
    return _full(tuple(shape), value, dtype=dtype)


def zeros(shape, dtype) -> Tensor:
    """A block of zeros."""
    return full(shape, 0, dtype)


def range(arg1, arg2=None, step=1, **hints):
    """The numbers of a loop, as Python's range. Blocks of one number count as numbers."""
    start, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return map(_number, builtins.range(int(start), int(end), int(step)))


def element_type(name: str):
    """torch's type of elements for a name of triton.language."""
    return ALL["bool" if name == "int1" else name]
