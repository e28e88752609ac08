"""Runs kernels on the CPU, one program after another, as Triton does with TRITON_INTERPRET=1.

A pointer is a flat view of a tensor's storage and offsets into it. Blocks are tensors. An address outside of the storage is an
IndexError. A kernel can use what triton.language has here.
"""

import inspect
import itertools
import threading

from .. import Tensor, as_tensor, broadcast_tensors, full_like
from .. import arange as _numbers
from .. import where as where  # a function of kernels, too

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


def launch(function, grid, args, kwargs) -> None:
    """Run `function` for every place of a grid: one to three numbers, or a function of the arguments that returns them."""
    signature = inspect.signature(function)
    kept = {n: v for n, v in kwargs.items() if n in signature.parameters or n not in _OPTIONS}
    bound = signature.bind(*args, **kept)
    bound.apply_defaults()
    sizes = grid(dict(bound.arguments)) if callable(grid) else grid
    sizes = (sizes,) if isinstance(sizes, int) else tuple(int(size) for size in sizes)
    given = {name: _pointer(value) for name, value in bound.arguments.items()}
    _running.sizes = (*sizes, 1, 1)[:3]
    try:
        for place in itertools.product(*map(range, _running.sizes)):
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


def program_id(axis: int) -> int:
    """The place of this program along an axis of the grid."""
    return _running.place[axis]


def num_programs(axis: int) -> int:
    """The size of the grid along an axis."""
    return _running.sizes[axis]


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
