"""Nested tensors with the strided layout: every dim may differ between the parts.

The parts are views of one buffer, each with a size, strides and an offset, so transposed tensors share the memory of the others.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

from .._host.warn import warn_once
from .._values.dtype import ALL
from ..autograd._passes import _mismatch
from ..ops._declare import t
from ..ops._geometry import wrap_dim
from ..tensor import Tensor
from ._base import NestedBase, refusal

_INT = ALL["int64"]


class Part(NamedTuple):
    """Where a part is in the buffer."""

    size: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int

    @property
    def numel(self) -> int:
        return math.prod(self.size)


def dense_strides(size) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    steps = [1, *itertools.accumulate(reversed(size[1:]), lambda a, b: a * b)] if size else []
    return tuple(reversed(steps))


def packed(sizes) -> list[Part]:
    """Return parts of these sizes, one after the other in the buffer."""
    sizes = [tuple(size) for size in sizes]
    starts = itertools.accumulate((math.prod(size) for size in sizes), initial=0)
    return [Part(size, dense_strides(size), start) for size, start in zip(sizes, starts, strict=False)]


class StridedNestedTensor(NestedBase):
    """A nested tensor with the strided layout. ``torch.nested.nested_tensor`` makes one.

    Attributes:
        _values: the buffer (numbers of all parts).
        _parts: where each part is in the buffer.
    """

    _layout_name = "strided"
    operators: dict = {}

    def __new__(cls, *args, **kwargs):
        raise TypeError("nested tensors are made by torch.nested.nested_tensor and its kin")

    @classmethod
    def of(cls, values, parts):
        """Return the nested tensor with these parts of a buffer."""
        sizes = [part.size for part in parts]
        columns = zip(*sizes, strict=True) if sizes else ()
        dims = [column[0] if len(set(column)) == 1 else None for column in columns]
        return cls._shaped(values, (len(parts), *dims), _parts=list(parts))

    def _with(self, values):
        return self.of(values, self._parts)

    def _values_of_gradient(self, gradient):
        if not isinstance(gradient, StridedNestedTensor):
            raise RuntimeError("The gradient of a nested tensor must be a nested tensor of the same layout.")
        if not self.is_same_size(gradient):
            raise _mismatch(0, self, gradient)
        if gradient._parts == self._parts and gradient._values.numel() == self._values.numel():
            return gradient._values
        found = t.zeros_like(self._values)
        for place, part in zip(self._parts, gradient.unbind(), strict=True):
            found.as_strided(place.size, place.stride, place.offset).copy_(part)
        return found

    # ---- the parts
    def values(self):
        """Return the buffer. It is a view, in the graph of this tensor."""
        return self._values.view_as(self._values)

    def unbind(self, dim=0):
        if dim not in (0, -self.ndim):
            raise RuntimeError(
                f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead."
            )
        if self.is_contiguous() and self._parts:
            pieces = t.split(self._values, [part.numel for part in self._parts])
            return tuple(piece.view(part.size) for piece, part in zip(pieces, self._parts, strict=True))
        return tuple(self._viewed(part) for part in self._parts)

    def _viewed(self, part):
        return t.as_strided(self._values, part.size, part.stride, part.offset)

    def _sizes(self) -> list[tuple[int, ...]]:
        return [part.size for part in self._parts]

    def _packed(self):
        """Return the tensor with its parts one after the other, without gaps."""
        return self if self.is_contiguous() else from_parts(self.unbind())

    # ---- description
    @property
    def shape(self):
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes. Please file an issue.")

    def size(self, dim=None):
        if dim is None:
            return self.shape
        dim = wrap_dim(dim, self.ndim)
        if self._size[dim] is None:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return self._size[dim]

    def stride(self, dim=None):
        raise RuntimeError("Internal error: NestedTensorImpl doesn't support strides. Please file an issue.")

    def numel(self) -> int:
        return sum(part.numel for part in self._parts)

    nelement = numel

    def is_contiguous(self, memory_format=None) -> bool:
        return self._parts == packed(self._sizes()) and self._values.numel() == self.numel()

    def is_same_size(self, other) -> bool:
        if not isinstance(other, NestedBase):
            raise RuntimeError("Expected both self and other to be nested tensors.")
        return isinstance(other, StridedNestedTensor) and self._sizes() == other._sizes()

    def _nested_tensor_size(self):
        """Return the sizes of the parts, int64 (B, dims of a part)."""
        return t.tensor(self._sizes(), dtype=_INT)

    def _nested_tensor_strides(self):
        """Return the strides of the parts, int64 (B, dims of a part)."""
        return t.tensor([part.stride for part in self._parts], dtype=_INT)

    def _nested_tensor_storage_offsets(self):
        """Return where each part begins in the buffer, int64 (B)."""
        return t.tensor([part.offset for part in self._parts], dtype=_INT)

    def __repr__(self, *, tensor_contents=None) -> str:
        parts = [part.detach().requires_grad_(self.requires_grad) for part in self.unbind()]
        lines = [str(part).replace("\n", "\n  ") for part in parts]
        shown = "nested_tensor([\n  " + ",\n  ".join(lines) + "\n]"
        node = self.grad_fn
        if node is not None:
            shown += f", grad_fn=<{node.name()}>"
        elif self.requires_grad:
            shown += ", requires_grad=True"
        return shown + ")"

    def __getitem__(self, index):
        given = index if isinstance(index, tuple) else (index,)
        found, dim = self, 0
        for one in given:
            if isinstance(one, slice) and one == slice(None):
                dim += 1
            elif isinstance(one, int) and not isinstance(one, bool):
                found = found.select(dim, one)
            else:
                raise refusal(
                    "Tensor.__getitem__", "strided nested tensors with another index than numbers and ':'"
                )
        return found

    def _file_parts(self) -> tuple:
        """Return what a file stores: the buffer, and the sizes, strides and offsets of the parts."""
        return (
            self._values.detach(),
            self._nested_tensor_size(),
            self._nested_tensor_strides(),
            self._nested_tensor_storage_offsets(),
        )

    def __reduce_ex__(self, protocol):
        return _nested_view_from_buffer, self._file_parts()


StridedNestedTensor.__name__ = StridedNestedTensor.__qualname__ = "Tensor"
StridedNestedTensor.__module__ = "torch"


# ---- how they are made
def from_parts(parts):
    """Return the nested tensor of a sequence of tensors. Its buffer is a copy, in their graph."""
    return StridedNestedTensor.of(
        t.cat([part.reshape(-1) for part in parts]), packed([part.shape for part in parts])
    )


def from_list(tensors, dtype=None, device=None):
    """Return the nested tensor of a list of tensors of as many dims, which may be empty.

    Raises:
        RuntimeError: the tensors have different dtypes, devices or numbers of dims.
    """
    warn_once(
        "The PyTorch API of nested tensors is in prototype stage and will change in the near future. We recommend specifying "
        "layout=torch.jagged when constructing a nested tensor, as this layout receives active development, has better operator "
        "coverage, and works with torch.compile.",
        stacklevel=3,
    )
    if not tensors:
        return StridedNestedTensor.of(t.empty(0, dtype=dtype, device=device), [])
    if len({x.ndim for x in tensors}) > 1:
        place, other = next((i, x) for i, x in enumerate(tensors) if x.ndim != tensors[0].ndim)
        raise RuntimeError(
            "All Tensors given to nested_tensor must have the same dimension. Found dimension "
            f"{other.ndim} for Tensor at index {place} and dimension {tensors[0].ndim} for Tensor at index 0."
        )
    if len({(x.dtype, x.device) for x in tensors}) > 1:
        raise RuntimeError("All Tensors given to nested_tensor must have the same dtype and device.")
    made = from_parts(tensors)
    return made.to(device=device or made.device, dtype=dtype or made.dtype)


def view_of(tensor):
    """Return a dense tensor (B, ...) as a nested tensor of B equal parts."""
    return StridedNestedTensor.of(tensor.reshape(-1), packed([tensor.shape[1:]] * tensor.shape[0]))


def _nested_view_from_buffer(buffer, sizes, strides, offsets):
    """Return the nested tensor of parts of a buffer, given as int64 tensors (B, dims), (B, dims) and (B).

    Raises:
        RuntimeError: a part does not lie in the buffer.
    """
    parts = [
        Part(tuple(size), tuple(stride), offset)
        for size, stride, offset in zip(sizes.tolist(), strides.tolist(), offsets.tolist(), strict=True)
    ]
    for number, part in enumerate(parts):
        if len(part.size) != len(part.stride) or min((*part.size, *part.stride, part.offset), default=0) < 0:
            raise RuntimeError(f"part {number} of a nested tensor has no valid size, strides and offset")
        if part.numel:
            last = part.offset + sum((n - 1) * s for n, s in zip(part.size, part.stride, strict=True))
            if last >= buffer.numel():
                raise RuntimeError(
                    f"part {number} of a nested tensor reaches element {last} of a buffer of {buffer.numel()}"
                )
    return StridedNestedTensor.of(buffer.reshape(-1), parts)


_nested_view_from_buffer.__module__ = "torch"  # pickles name it so


def from_mask(input, mask, mask_check=True):
    """Return the rows of ``input`` (N, L, D) that a mask (N, L) keeps, as a nested tensor of N parts.

    Raises:
        RuntimeError: the mask is not a bool tensor (N, L), or keeps a row after one that it does not keep.
    """
    _check_mask(input, mask)
    lengths = mask.sum(-1).tolist()
    if mask_check:
        left = t.arange(mask.shape[1], device=mask.device) < mask.sum(-1, keepdim=True)
        if not bool((left == mask).all()):
            raise RuntimeError("Mask must be left-aligned without gaps")
    return from_parts([row[:n] for row, n in zip(input.unbind(), lengths, strict=True)])


def _check_mask(input, mask) -> None:
    if not isinstance(mask, Tensor) or mask.dtype is not ALL["bool"]:
        kind = mask.dtype.scalar_name
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {kind} instead.")
    if mask.ndim != 2:
        raise RuntimeError("Padding mask should be 2D")
    if input.ndim != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if input.shape[:2] != mask.shape:
        raise RuntimeError("Mask size should match input size")
