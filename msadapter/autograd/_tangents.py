"""The tangents of the current level of forward mode, and their memory.

A tangent has the memory layout of its primal. A view of a dual tensor has the same view of the tangent as its own, so that a
write to one is seen by the other.
"""

from __future__ import annotations

import math
import threading
import weakref

from .. import ops
from .._errors import unsupported
from .._host import extensions
from .._host.native import load
from .._values.base import as_leaf

_C = load()

_STANDS_IN = "msadapter: leaf of stand_in"  # key in the metadata of its node
# the levels of forward mode, the innermost last: one for each derivative of torch.func that runs, or that of dual_level
levels: list[Tangents] = []


class _State(threading.local):
    """Whether a thread records tangents, and the levels for which it computes tangents now.

    While the tangents of one level are computed, operators get none there. They get those of the levels around it.
    """

    enabled = True
    hidden: tuple[Tangents, ...] = ()


state = _State()


def visible() -> list[Tangents]:
    """Return the levels for which operators get tangents now, the innermost first."""
    if not levels or not state.enabled:
        return []
    return [level for level in reversed(levels) if level not in state.hidden]


class paused:
    """A ``with`` block in which operators get no tangents of these levels. Without levels: of the innermost visible one."""

    def __init__(self, *hidden: Tangents):
        self.hidden = hidden

    def __enter__(self) -> None:
        self.outer = state.hidden
        state.hidden = (*self.outer, *(self.hidden or visible()[:1]))

    def __exit__(self, *exc) -> None:
        state.hidden = self.outer


class disabled(paused):
    """A ``with`` block in which no tangents are recorded, such as a Function's forward. Derivatives inside of it have their own."""

    def __init__(self) -> None:
        super().__init__(*visible())

    def __enter__(self) -> None:
        super().__enter__()
        self.enabled, state.enabled = state.enabled, False

    def __exit__(self, *exc) -> None:
        super().__exit__()
        state.enabled = self.enabled


def is_active() -> bool:
    """Return whether tangents are recorded now: inside of a level."""
    return bool(levels) and state.enabled


def enable(mode: bool) -> None:
    """Set whether tangents are recorded in this thread."""
    state.enabled = bool(mode)


def with_tangent_of(tensor, made):
    """Return ``made``, which has the values of ``tensor``, with the tangents of ``tensor``."""
    for level in visible():
        if (tangent := level.get(tensor)) is not None:
            level.put(made, tangent)
    return made


class Tangents:
    """The tangents of one level, by tensor. They live as long as their tensors.

    Attributes:
        of_transform: whether a derivative of torch.func began the level, and not ``dual_level``.
    """

    def __init__(self, of_transform: bool = False):
        self.of_transform = of_transform
        self._rows: dict = {}
        # (tensor, tangent) pairs from which the graph of the program leads to its results, so that gradients get tangents too
        self.sources: list = []
        self.kept: list = []  # leaves to which the graph may lead after the program has dropped their Python objects
        self._hidden: dict = {}
        self._written: list = []  # bases that got their tangent by a write; a view alone does not keep their Python objects

    def put(self, tensor, tangent) -> None:
        """Set the tangent; None means that the tensor has none, whatever its base has."""
        key = id(tensor)
        self._rows[key] = (weakref.ref(tensor, lambda _: self._rows.pop(key, None)), tangent)

    def put_written(self, base, tangent) -> None:
        """Set the tangent of a tensor that was written. Its views have it too, as long as the level lasts."""
        self.put(base, tangent)
        self._written.append(base)

    def hidden(self, tensor):
        """Return a leaf with the tensor's values, which stands in the graph for a dual tensor that requires no grad."""
        key = id(tensor)
        row = self._hidden.get(key)
        if row is None or row[0]() is not tensor or row[1] != tensor._version:
            with paused(self):  # `sources` has the tangent of this level
                leaf = stand_in(tensor)
            row = weakref.ref(tensor, lambda _: self._hidden.pop(key, None)), tensor._version, leaf
            self._hidden[key] = row
            self.sources.append((leaf, self.get(tensor).clone()))
        return row[2]

    def roots(self) -> list:
        """Return the (tensor, tangent) pairs on which graphs of the level begin."""
        leaves = [(row[0](), row[1]) for row in self._rows.values() if row[1] is not None]
        return self.sources + [(x, v) for x, v in leaves if x is not None and x.is_leaf and x.requires_grad]

    def get(self, tensor):
        """Return the tangent. That of a view is a view of its base's."""
        row = self._rows.get(id(tensor))
        if row is not None and row[0]() is tensor:
            return row[1]
        base = tensor._base if self._rows else None
        row = None if base is None else self._rows.get(id(base))
        if (
            row is None
            or row[0]() is not base
            or row[1] is None
            or tensor.dtype.to_real() is not base.dtype.to_real()
        ):
            return None
        made = same_view(tensor, base, row[1])
        self.put(tensor, made)
        return made


def stand_in(tensor):
    """Return a leaf with the tensor's values and tangents, for a graph of this package. A program has no such leaf."""
    leaf = with_tangent_of(tensor, as_leaf(tensor.detach()))
    _C.grad_accumulator(leaf).metadata[_STANDS_IN] = True
    for level in visible():
        if level.get(leaf) is not None:
            level.kept.append(leaf)
    return leaf


def is_leaf_of_program(node) -> bool:
    """Return whether a node of the graph belongs to a leaf of the program, and not to one of ``stand_in``."""
    return node.name() == "torch::autograd::AccumulateGrad" and _STANDS_IN not in node.metadata


def differentiable(x) -> bool:
    """Return whether a tensor has a dtype with derivatives."""
    return x.dtype.is_floating_point or x.dtype.is_complex


def check_shape(primal, tangent) -> None:
    """RuntimeError unless a tangent has the shape of its primal."""
    if primal.shape != tangent.shape:
        raise RuntimeError(
            f"Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def is_batched(tensor) -> bool:
    """Return whether a tensor is that of a function inside of vmap."""
    batches = extensions.batches.value
    return batches is not None and isinstance(tensor, batches.kind)


def geometry(tensor) -> tuple:
    """Return what two tensors of one storage have in common if they are the same elements."""
    return tensor.dtype, tensor.shape, tensor.stride(), tensor.storage_offset()


def same_view(tensor, base, tangent):
    """Return the view of ``tangent`` that ``tensor`` is of ``base``. The two may be complex numbers and their parts.

    NotImplementedError if ``tangent`` is inside of vmap and the dtypes differ.
    """
    from_base, shift = base.storage_offset(), tangent.storage_offset()
    if tensor.dtype is not base.dtype:
        if is_batched(tangent):
            raise unsupported(
                "torch.autograd.forward_ad",
                "real views of complex tangents, and complex views of real ones, are not supported inside of vmap",
            )
        whole = tangent.as_strided((_room(tangent),), (1,), 0)
        if tensor.dtype.is_complex:
            tangent, from_base, shift = ops.view_as_complex(whole.view(-1, 2)), from_base // 2, shift // 2
        else:
            tangent, from_base, shift = ops.view_as_real(whole).view(-1), from_base * 2, shift * 2
    return tangent.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset() - from_base + shift)


def overlaps(tensor) -> bool:
    """Return whether elements share memory because the tensor is expanded."""
    return any(n > 1 and s == 0 for n, s in zip(tensor.shape, tensor.stride(), strict=True))


def _have_same_strides(a, b) -> bool:
    """Return whether two tensors of one shape have the same strides. Dims of one element do not count."""
    return all(n == 1 or s == t for n, s, t in zip(a.shape, a.stride(), b.stride(), strict=True))


def _room(tensor) -> int:
    """Return how many elements the storage of a tensor has."""
    return tensor.untyped_storage().nbytes() // tensor.dtype.itemsize


def laid_out(tangent, primal):
    """Return the tangent in the memory layout of its primal, so that views of both are alike."""
    if is_batched(primal):
        return tangent
    if is_batched(tangent):  # with the layout of its primal, but only as much memory as it needs
        batches = extensions.batches.value
        plain = batches.plain(tangent)
        if not plain.numel() or (_have_same_strides(tangent, primal) and not overlaps(plain)):
            return tangent
        sizes = plain.shape[: plain.ndim - primal.ndim]
        room = 1 + sum((n - 1) * step for n, step in zip(primal.shape, primal.stride(), strict=True))
        steps = [math.prod(sizes[i + 1 :]) * room for i in range(len(sizes))]
        memory = ops.zeros(math.prod(sizes) * room, dtype=tangent.dtype, device=tangent.device)
        made = memory.as_strided(plain.shape, (*steps, *primal.stride()))
        return batches.wrapped(made.copy_(plain), tangent)
    if (
        _have_same_strides(tangent, primal)
        and (tangent.numel() == 0 or tangent.storage_offset() == primal.storage_offset())
        and _room(tangent) == _room(primal)
    ):
        return tangent
    memory = ops.zeros(_room(primal), dtype=tangent.dtype, device=tangent.device).untyped_storage()
    made = ops.empty(0, dtype=tangent.dtype, device=tangent.device)
    return made.set_(memory, primal.storage_offset(), primal.shape, primal.stride()).copy_(tangent)
