"""Runs kernels on the CPU, one program after another, as Triton does with TRITON_INTERPRET=1.

A pointer is a flat view of a tensor's storage and offsets into it, and what a kernel computes with are blocks. An address outside
of the storage is an IndexError. A kernel can use what triton.language has here and in operations.
"""

import builtins
import inspect
import itertools
import threading

from .. import Tensor, broadcast_shapes, broadcast_tensors, full_like, where
from .. import arange as _numbers
from .block import Block, number, tensor

_OPTIONS = frozenset(("num_warps", "num_stages", "num_ctas", "maxnreg"))  # of a GPU's scheduler
_running = threading.local()


class PointerType:
    """The type of a pointer, which a kernel asks for the type of the elements."""

    def __init__(self, element_ty):
        self.element_ty = element_ty


class Pointer:
    """Addresses of elements: `offsets` is a number or a block of numbers."""

    def __init__(self, elements: Tensor, offsets):
        self.elements, self.offsets = elements, offsets
        self.dtype = PointerType(elements.dtype)

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
    given = {name: _argument(value, signature.parameters[name]) for name, value in bound.arguments.items()}
    _running.sizes = (*sizes, 1, 1)[:3]
    try:
        for place in itertools.product(*map(builtins.range, _running.sizes)):
            _running.place = place
            function(**given)
    finally:
        _running.place = None


def _argument(value, parameter: inspect.Parameter):
    """What the kernel receives: a pointer for a tensor, and a block for an integer that the declaration does not fix."""
    if isinstance(value, Tensor):
        value = value.detach()
        count = value.untyped_storage().nbytes() // value.element_size()
        return Pointer(value.as_strided((count,), (1,), 0), value.storage_offset())
    # The annotation is a class, or its name under `from __future__ import annotations`.
    fixed = "constexpr" in str(parameter.annotation)
    return number(value) if type(value) is int and not fixed else value


def program_id(axis: int) -> Block:
    """The place of this program along an axis of the grid."""
    return number(_running.place[axis])


def num_programs(axis: int) -> Block:
    """The size of the grid along an axis."""
    return number(_running.sizes[axis])


def arange(start: int, end: int) -> Block:
    """The numbers from start to end - 1."""
    return Block(_numbers(int(start), int(end)))


def load(
    pointer: Pointer, mask=None, other=None, *, cache_modifier="", eviction_policy="", volatile=False
) -> Block:
    """The elements at the addresses. Where the mask is False, nothing is read, and `other` or 0 stands there.

    What is said about caches has no effect.
    """
    if mask is None:
        elements, places = _near(pointer, tensor(pointer.offsets))
        return Block(elements[places].clone())  # one number would be a view
    mask, offsets = broadcast_tensors(tensor(mask), tensor(pointer.offsets))
    rest = tensor(0 if other is None else other).to(pointer.elements.dtype)
    if not mask.any():
        return Block(rest.expand(broadcast_shapes(rest.shape, offsets.shape)))
    first = offsets[mask].reshape(-1)[0]  # an address that may be read, in the place of those that may not
    elements, places = _near(pointer, where(mask, offsets, first))
    return Block(where(mask, elements[places], rest))


def store(pointer: Pointer, value, mask=None, *, cache_modifier="", eviction_policy="") -> None:
    """Write a value to the addresses, except where the mask is False. What is said about caches has no effect."""
    value = tensor(value).to(pointer.elements.dtype)
    mask, offsets, value = broadcast_tensors(
        tensor(True if mask is None else mask), tensor(pointer.offsets), value
    )
    elements, places = _near(pointer, offsets[mask].reshape(-1))
    elements[places] = value[mask].reshape(-1)


def atomic_add(pointer: Pointer, value, mask=None, sem=None, scope=None) -> Block:
    """Add values to the elements at the addresses, except where the mask is False, and return what was there before.

    The order of memory and the processors that see it (sem, scope) have no effect, because programs run one after the other.
    An address that occurs several times in a block is added to in the order of the block, so each occurrence returns what the
    earlier ones have left. Where the mask is False, 0 is returned.
    """
    value = tensor(value).to(pointer.elements.dtype)
    mask, offsets, value = broadcast_tensors(
        tensor(True if mask is None else mask), tensor(pointer.offsets), value
    )
    elements, chosen = _near(pointer, offsets[mask].reshape(-1))
    added = value[mask].reshape(-1)
    before = full_like(value, 0)
    if len(chosen):
        earlier = elements[chosen]
        if len(chosen) > 1 and len(chosen.unique()) < len(chosen):
            same = (chosen[:, None] == chosen[None, :]).tril(-1)
            earlier = earlier + where(same, added[None, :], full_like(added, 0)[None, :]).sum(1).to(
                added.dtype
            )
        before[mask] = earlier
        elements.index_put_((chosen,), added, accumulate=True)
    return Block(before)


def _near(pointer: Pointer, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """The part of the storage that the addresses lie in, and the addresses within it.

    To write to a few places of a tensor costs a copy of the tensor. Of the part alone it is short, also in a large storage, such as
    the keys and values of an inference engine.
    """
    if not offsets.numel():
        return pointer.elements[:0], offsets
    low, high = int(offsets.min()), int(offsets.max())
    if low < 0 or high >= len(pointer.elements):
        wrong = offsets[(offsets < 0) | (offsets >= len(pointer.elements))].reshape(-1)[0].item()
        raise IndexError(f"triton: element {wrong} of a storage of {len(pointer.elements)} is accessed")
    return pointer.elements[low : high + 1], offsets - low


def debug_barrier() -> None:
    """Nothing: every instruction has been carried out for the whole block before the next one begins."""


def range(arg1, arg2=None, step=1, **hints):
    """The numbers of a loop, as Python's range, as blocks of one number."""
    return map(number, static_range(arg1, arg2, step))


def static_range(arg1, arg2=None, step=1, **hints):
    """The numbers of a loop, as Python's range, as numbers of Python."""
    start, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return builtins.range(int(start), int(end), int(step))
