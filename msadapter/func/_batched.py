"""BatchedTensor: the tensor that a function sees inside vmap.

It has the shape of one element of the batch, and its ``_value`` holds the whole batch, with the batch
dimension first. In nested vmaps, the value of the inner one may be batched for the outer one. Its own storage
is empty, so code that does not know this class raises an error instead of mixing up elements.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from .. import ops
from ..tensor import Size, Tensor


@dataclass(eq=False)
class Level:
    """A running vmap.

    Attributes: is_transform: False for the older vmap of torch._vmap_internals, in which PyTorch allows what it refuses in the
    transforms of torch.func, such as an autograd.Function without setup_context. of_tangents: whether only tangents are batched,
    as in jacfwd, so that a function can write to tensors that it has made.
    """

    size: int
    randomness: str
    is_transform: bool = True
    of_tangents: bool = False


levels: list[Level] = []  # the running vmaps, the outermost first


def _refused(name: str):
    def method(self, *args, **kwargs):
        raise RuntimeError(
            f"vmap: It looks like you're calling .{name}() on a Tensor. We don't support vmap over "
            f"calling .{name}() on a "
            "Tensor, please try to rewrite what you're doing with other operations."
        )

    method.__name__ = name
    return method


def _of_value(name: str):
    """Return a property whose value is the same for the batch and its elements."""
    return property(lambda self: getattr(self._value, name))


def _asked_of_value(name: str):
    def method(self, *args, **kwargs):
        return getattr(self._value, name)(*args, **kwargs)

    method.__name__ = name
    return method


def _elementwise(name: str):
    """Return a method that works on single elements, so that it can be called on the whole batch."""

    def method(self, *args, **kwargs):
        args = [a._value if isinstance(a, BatchedTensor) and a._level is self._level else a for a in args]
        kwargs.pop("memory_format", None)  # this format is meant for one element; the batch has one dim more
        return wrap(getattr(self._value, name)(*args, **kwargs), self._level)

    method.__name__ = name
    return method


class BatchedTensor(Tensor):
    """A tensor inside vmap (see the module). _rules.py defines what functions and indexing do with it."""

    shape = property(lambda self: Size(self._value.shape[1:]))
    ndim = property(lambda self: self._value.ndim - 1)

    def size(self, dim=None):
        """Return the shape of an element, or its size along a dim."""
        return self.shape if dim is None else self.shape[dim]

    def dim(self) -> int:
        """Return the number of dims of an element."""
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """Return the number of values in an element."""
        return self.shape.numel()

    nelement = numel

    def stride(self, dim=None):
        """Return the strides of an element."""
        strides = tuple(self._value.stride()[1:])
        return strides if dim is None else strides[dim]

    def is_contiguous(self, *args, **kwargs) -> bool:
        """Return whether the memory of an element is contiguous."""
        return self._value.is_contiguous(*args, **kwargs) if self._level.size else True

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self):
        if not self.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(ops.unbind(self, 0))

    def __repr__(self, *args, **kwargs) -> str:
        depth = levels.index(self._level) + 1 if self._level in levels else 0
        return f"BatchedTensor(lvl={depth}, bdim=0, value=\n{self._value}\n)"

    __str__ = __repr__

    def __format__(self, spec) -> str:
        return repr(self)

    def new_tensor(self, data, **kwargs):
        """Return a tensor of this dtype that is the same for all elements of the batch."""
        return self._value.new_tensor(data, **kwargs)


for _name in ("dtype", "device", "grad_fn", "is_leaf", "layout", "itemsize", "is_cuda", "is_cpu", "is_npu",
              "is_meta", "is_sparse", "is_quantized", "_version", "is_nested"):  # fmt: skip
    setattr(BatchedTensor, _name, _of_value(_name))
for _name in ("is_floating_point", "is_complex", "is_signed", "element_size", "get_device", "register_hook"):
    setattr(BatchedTensor, _name, _asked_of_value(_name))
for _name in ("to", "type", "type_as", "float", "double", "half", "bfloat16", "int", "long", "short", "byte", "char", "bool",
              "cfloat", "cdouble", "cpu", "cuda", "npu", "detach"):  # fmt: skip
    setattr(BatchedTensor, _name, _elementwise(_name))
for _name in ("item", "tolist", "numpy", "backward", "data_ptr", "storage", "untyped_storage", "__bool__", "__int__",
              "__float__", "__complex__", "__index__", "__array__", "__deepcopy__", "resize_", "set_",
              "__reduce_ex__"):  # fmt: skip
    setattr(BatchedTensor, _name, _refused(_name))
BatchedTensor.requires_grad = property(
    lambda self: self._value.requires_grad, lambda self, wanted: setattr(self._value, "requires_grad", wanted)
)
BatchedTensor.data = property(lambda self: wrap(self._value.detach(), self._level))


def wrap(value: Tensor, level: Level) -> BatchedTensor:
    """Return the batched tensor for ``value``, whose first dim is the batch of ``level``."""
    made = Tensor._make_subclass(BatchedTensor, ops.empty(0))
    made.__dict__["_value"], made.__dict__["_level"] = value, level
    return made


def is_batched(x, level: Level | None = None) -> bool:
    """Return whether the outermost layer of ``x`` is batched at ``level`` (or at any level if None)."""
    return isinstance(x, BatchedTensor) and (level is None or x._level is level)


def batch_of(x: Tensor, level: Level) -> Tensor:
    """Return ``x`` with the batch dim of ``level`` first.

    It is expanded if it is the same for all elements.
    """
    if is_batched(x, level):
        return x._value
    return ops.expand(ops.unsqueeze(x, 0), [level.size, *x.shape])


def fully_batched(x: Tensor, wanted: list[Level]) -> Tensor:
    """Return ``x``, batched at its own levels and at those that are wanted, the innermost outside."""
    return _batched_at(x, [level for level in levels if level in wanted or level in levels_of(x)])


def batched_like(x: Tensor, others) -> Tensor:
    """Return ``x``, batched at its own levels and those of other tensors, the innermost outside."""
    return fully_batched(x, [level for one in others for level in levels_of(one)])


def _batched_at(x, wanted: list[Level]):
    if not wanted:
        return x
    *outer, level = wanted
    if is_batched(x, level):
        return wrap(_batched_at(x._value, outer), level)
    x = _batched_at(x, outer)
    return wrap(batch_of(x, level), level)


def levels_of(x: Tensor) -> list[Level]:
    """Return the levels at which a tensor is batched, in the order of the first dims of the plain tensor inside."""
    found = []
    while isinstance(x, BatchedTensor):
        found.insert(0, x._level)
        x = x._value
    return found


def closed(plain: Tensor, own: list[Level]) -> Tensor:
    """Return the tensor that is batched at the levels ``own``, which are those of the first dims of ``plain``."""
    order = sorted(range(len(own)), key=lambda i: levels.index(own[i]))
    made = ops.permute(plain, [*order, *range(len(own), plain.ndim)]) if order else plain
    for i in order:
        made = wrap(made, own[i])
    return made


def innermost(x: Tensor) -> Tensor:
    """Return the plain tensor inside of all layers."""
    while isinstance(x, BatchedTensor):
        x = x._value
    return x


def rewrapped(plain: Tensor, like: Tensor) -> Tensor:
    """Return ``plain``, wrapped in the layers of ``like``."""
    if not isinstance(like, BatchedTensor):
        return plain
    return wrap(rewrapped(plain, like._value), like._level)


def tangent_of_each(tangent: Tensor, like: Tensor) -> Tensor:
    """Return the tangent of a tensor, given that of the plain tensor inside of it.

    Where both are batched at a level, the latter has the tangents of all elements for each element of the batch. An element has
    only its own.
    """
    own, given, plain = levels_of(like), levels_of(tangent), innermost(tangent)
    for level in [level for level in given if level in own]:
        i = given.index(level)
        place = len(given) + own.index(level)
        plain = ops.movedim(ops.diagonal(plain, 0, i, place), -1, place - 1)
        given.remove(level)
    return closed(plain, [*given, *own])


def tangent_inside(tangent: Tensor, like: Tensor) -> Tensor:
    """Return the tangent of the plain tensor inside of ``like``, given that of ``like``: the reverse of ``tangent_of_each``."""
    own = levels_of(like)
    if not own:
        return tangent
    tangent = batched_like(tangent, [like])
    given, plain = levels_of(tangent), innermost(tangent)
    rest = [level for level in given if level not in own]
    order = [given.index(level) for level in (*rest, *own)]
    return closed(ops.permute(plain, [*order, *range(len(order), plain.ndim)]), rest)


class _Batches(NamedTuple):
    """What automatic differentiation has to know about batched tensors (extensions.batches)."""

    kind: type[Tensor]
    whole: Callable[[Tensor, list], Tensor]
    plain: Callable[[Tensor], Tensor]
    wrapped: Callable[[Tensor, Tensor], Tensor]
    tangent_of_each: Callable[[Tensor, Tensor], Tensor]
    gradients_of_each: Callable
