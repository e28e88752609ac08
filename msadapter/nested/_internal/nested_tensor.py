"""Nested tensors with the jagged layout: one dim, the ragged one, is longer in some parts than in others.

A tensor of shape (B, *, D) with B parts of lengths l_i has the values (sum of l_i, D). Its offsets (B + 1) say where each part
begins and the last one ends. If the ragged dim is another one, the values have all parts side by side along this dim.
"""

from __future__ import annotations

import itertools
import math
import weakref

from ..._host.native import load
from ..._values.dtype import ALL
from ..._values.size import NestedInt
from ...ops._declare import t
from ...tensor._pickling import user_attributes
from .._base import NestedBase

__all__ = [
    "NestedTensor",
    "buffer_from_jagged",
    "get_tensor_symint",
    "jagged_from_list",
    "jagged_from_tensor_and_lengths",
    "nested_from_padded",
    "nested_view_from_values_offsets",
    "nested_view_from_values_offsets_lengths",
]

_C = load()
_INT = ALL["int64"]
_counter = itertools.count()
_numbers: dict[
    int, int
] = {}  # id of offsets or lengths -> the number of their SymInt, as long as the tensor lives


def _numbered(tensor, number: int) -> None:
    _numbers[id(tensor)] = number
    weakref.finalize(tensor, _numbers.pop, id(tensor), None)


def get_tensor_symint(tensor, *, coeff: int = 1) -> NestedInt:
    """Return the SymInt that stands for the lengths which ``tensor`` describes. A tensor always gets the same one.

    Args:
        tensor: offsets (B + 1) or lengths (B).
        coeff: a factor of the lengths.
    """
    if id(tensor) not in _numbers:
        _numbered(tensor, next(_counter))
    return NestedInt(_numbers[id(tensor)], coeff)


def _same_lengths(new, old):
    """Let a copy of offsets or lengths on another device stand for the same lengths."""
    if new is not old:
        _numbered(new, get_tensor_symint(old).number)
    return new


def _kept(length: int):
    """Return a length in the form in which files have it: as the shape of a tensor without elements."""
    return t.zeros(length, 0)


class NestedTensor(NestedBase):
    """A nested tensor with the jagged layout. ``torch.nested.nested_tensor(..., layout=torch.jagged)`` makes one.

    Attributes:
        _values: the parts side by side along dim ``_ragged_idx - 1``.
        _offsets: int64 (B + 1), where each part begins and the last one ends.
        _lengths: int64 (B), the length of each part, if there are gaps between the parts; else None.
        _ragged_idx: the ragged dim, at least 1.
        _metadata_cache: the smallest and the largest length, as far as they are known.
    """

    _layout_name = "jagged"
    operators: dict = {}

    def __new__(cls, values, offsets, *, lengths=None, **kwargs):
        if offsets is None:
            raise AssertionError("offsets must not be None")
        if offsets.ndim != 1:
            raise AssertionError(f"offsets must be 1D, but got {offsets.ndim}D")
        if isinstance(values, NestedBase):
            raise AssertionError("values must not be a NestedTensor")
        if values.device != offsets.device:
            raise AssertionError(
                f"values and offsets must be on the same device, but got values.device={values.device} and "
                f"offsets.device={offsets.device}"
            )
        batch, ragged = offsets.shape[0] - 1, kwargs.get("_ragged_idx", 1)
        if lengths is not None and batch != lengths.shape[0]:
            raise AssertionError(
                f"offsets and lengths batch sizes must match: offsets.shape[0] - 1 = {batch}, lengths.shape[0] = "
                f"{lengths.shape[0]}"
            )
        length = get_tensor_symint(offsets if lengths is None else lengths)
        size = (batch, *values.shape[: ragged - 1], length, *values.shape[ragged:])
        if kwargs.get("requires_grad"):
            values = values.detach().requires_grad_()
        return cls._shaped(
            values,
            size,
            _offsets=offsets,
            _lengths=lengths,
            _ragged_idx=ragged,
            _metadata_cache=kwargs.get("_metadata_cache") or {},
        )

    def __init__(self, *args, **kwargs):
        """Nothing is left to do: `__new__` sets all attributes."""

    def _with(self, values, ragged=None):
        return NestedTensor(
            values,
            self._offsets,
            lengths=self._lengths,
            _ragged_idx=self._ragged_idx if ragged is None else ragged,
            _metadata_cache=self._metadata_cache,
        )

    def _like(self, values, device):
        offsets = _same_lengths(self._offsets.to(device), self._offsets)
        lengths = None if self._lengths is None else _same_lengths(self._lengths.to(device), self._lengths)
        return NestedTensor(
            values,
            offsets,
            lengths=lengths,
            _ragged_idx=self._ragged_idx,
            _metadata_cache=self._metadata_cache,
        )

    # ---- the parts
    def values(self):
        """Return the values. They are a view, in the graph of this tensor."""
        return self._values.view_as(self._values)

    def offsets(self):
        return self._offsets

    def lengths(self):
        return self._lengths

    def _lengths_list(self) -> list[int]:
        return (self._offsets.diff() if self._lengths is None else self._lengths).tolist()

    def unbind(self, dim=0):
        if dim != 0:
            raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
        lengths, along = self._lengths_list(), self._ragged_idx - 1
        if self._lengths is None:
            return t.split(self.values(), lengths, along)
        values, starts = self.values(), self._offsets.tolist()
        if any(s + n > values.shape[along] for s, n in zip(starts, lengths, strict=False)):
            raise RuntimeError(
                "unbind(): nested tensor offsets and lengths do not match ragged_idx dimension"
            )
        return tuple(t.narrow(values, along, s, n) for s, n in zip(starts, lengths, strict=False))

    def _known(self, name: str) -> int | None:
        found = self._metadata_cache.get(name)
        return None if found is None else found.shape[0]

    def _extreme(self, name: str, which) -> int:
        if self._known(name) is None:
            self._metadata_cache[name] = _kept(which(self._lengths_list()))
        return self._known(name)

    def _get_max_seqlen(self) -> int:
        """Return the largest length."""
        return self._extreme("max_seqlen", max)

    def _get_min_seqlen(self) -> int:
        """Return the smallest length."""
        return self._extreme("min_seqlen", min)

    _max_seqlen = property(_get_max_seqlen)
    _min_seqlen = property(_get_min_seqlen)
    _max_seqlen_tensor = property(lambda self: self._metadata_cache.get("max_seqlen"))
    _min_seqlen_tensor = property(lambda self: self._metadata_cache.get("min_seqlen"))
    _maybe_max_seqlen = property(lambda self: self._known("max_seqlen"))
    _maybe_min_seqlen = property(lambda self: self._known("min_seqlen"))

    # ---- description
    @property
    def _strides(self) -> tuple:
        stride = self._values.stride()
        return (self._size[self._ragged_idx] * stride[self._ragged_idx - 1], *stride)

    def stride(self, dim=None):
        found = self._strides
        return found if dim is None else found[dim]

    def storage_offset(self) -> int:
        return self._values.storage_offset()

    def numel(self) -> int:
        if self._lengths is None:
            return self._values.numel()
        rest = (*self._size[1 : self._ragged_idx], *self._size[self._ragged_idx + 1 :])
        return sum(self._lengths_list()) * math.prod(rest)

    nelement = numel

    def is_contiguous(self, memory_format=None) -> bool:
        if self._lengths is not None:
            return False
        if memory_format is not None and memory_format._name == "preserve_format":
            return True
        return self._values.is_contiguous(memory_format)

    def is_same_size(self, other) -> bool:
        if not isinstance(other, NestedTensor):
            raise ValueError(
                "NestedTensor is_same_size_default(self: jt_all, other: jt_all): expected other to be a jagged layout NestedTensor"
            )
        return self._size == other._size

    def share_memory_(self):
        for part in (self._values, self._offsets, self._lengths):
            if part is not None:
                part.share_memory_()
        return self

    def is_shared(self) -> bool:
        return all(part is None or part.is_shared() for part in (self._values, self._offsets, self._lengths))

    def __repr__(self, *, tensor_contents=None) -> str:
        graph = f", grad_fn={self.grad_fn}" if self.grad_fn else ""
        if not graph and self.requires_grad:
            graph = ", requires_grad=True"
        return f"NestedTensor(size={self._size}, offsets={self._offsets}{graph}, contiguous={self.is_contiguous()})"

    def __setstate__(self, state) -> None:
        """Set what a program has added. The constructor has set the attributes of the class, and PyTorch saves them again."""
        own = {"_values", "_offsets", "_lengths", "_ragged_idx", "_metadata_cache"}
        self.__dict__.update({k: v for k, v in (state or {}).items() if k not in own and "dynamo" not in k})

    def _file_parts(self) -> dict:
        """Return what a file stores: the arguments of the constructor."""
        return {
            "values": self._values.detach(),
            "offsets": self._offsets,
            "lengths": self._lengths,
            "_ragged_idx": self._ragged_idx,
            "_metadata_cache": self._metadata_cache,
            "requires_grad": self.requires_grad,
        }

    def __reduce_ex__(self, protocol):
        return _rebuild_njt, (self._file_parts(),), user_attributes(self) or None


NestedTensor.__module__ = "torch.nested._internal.nested_tensor"


def _rebuild_njt(constructor_kwargs):
    """Return the tensor that `NestedTensor.__reduce_ex__` described. The arguments may come from a file, and are checked.

    Raises:
        RuntimeError: the offsets or lengths do not describe parts of the values.
    """
    values, offsets, lengths = (constructor_kwargs.get(name) for name in ("values", "offsets", "lengths"))
    ragged = constructor_kwargs.get("_ragged_idx", 1)
    _check_parts(values, offsets, lengths, ragged)
    return NestedTensor(**constructor_kwargs)


def _check_parts(values, offsets, lengths, ragged) -> None:
    if not isinstance(ragged, int) or not 1 <= ragged <= values.ndim:
        raise RuntimeError(f"a nested tensor has no ragged dim {ragged}")
    length, starts = values.shape[ragged - 1], offsets.tolist()
    steps = offsets.diff().tolist() if lengths is None else lengths.tolist()
    inside = all(s >= 0 and n >= 0 and s + n <= length for s, n in zip(starts, steps, strict=False))
    if not starts or len(steps) != len(starts) - 1 or not inside:
        raise RuntimeError("the offsets of a nested tensor do not describe parts of its values")


# ---- how they are made
def nested_view_from_values_offsets(values, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None):
    """Return the nested tensor of values (sum of lengths, ...) whose parts begin at ``offsets`` (B + 1)."""
    return nested_view_from_values_offsets_lengths(values, offsets, None, ragged_idx, min_seqlen, max_seqlen)


def nested_view_from_values_offsets_lengths(
    values, offsets, lengths, ragged_idx=1, min_seqlen=None, max_seqlen=None
):
    """Return the nested tensor whose part i has ``lengths[i]`` rows from ``offsets[i]`` on. It is a view of the values."""
    cache = {}
    if min_seqlen is not None:
        cache["min_seqlen"] = _kept(min_seqlen)
    if max_seqlen is not None:
        cache["max_seqlen"] = _kept(max_seqlen)
    viewed = values.view_as(values)
    return NestedTensor(viewed, offsets, lengths=lengths, _ragged_idx=ragged_idx, _metadata_cache=cache)


def buffer_from_jagged(jagged):
    """Return the values of a nested tensor."""
    return jagged.values()


def _ragged_dim(sizes) -> int:
    """Return the dim of the batch that differs between the parts.

    Raises:
        RuntimeError: several dims differ.
    """
    differing = [d + 1 for d in range(len(sizes[0])) if any(size[d] != sizes[0][d] for size in sizes)]
    if len(differing) > 1:
        raise RuntimeError(
            "Cannot represent given tensor list as a nested tensor with the jagged layout. Note that the jagged layout only "
            "allows for a single ragged dimension. For example: (B, *, D_0, D_1, ..., D_N), with ragged * dim."
        )
    return differing[0] if differing else 1


def _check_list(tensors) -> None:
    """RuntimeError unless the tensors can be the parts of one nested tensor."""
    if not tensors:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    for what, values in (
        ("dtype", {x.dtype for x in tensors}),
        ("device", {x.device for x in tensors}),
        ("dim", {x.ndim for x in tensors}),
    ):
        if len(values) != 1:
            where = "be on" if what == "device" else "have"
            raise RuntimeError(
                f"When constructing a nested tensor, all tensors in list must {where} the same {what}"
            )
    if tensors[0].ndim == 0:
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")


def jagged_from_list(tensors, offsets, dtype=None, device=None):
    """Return the nested tensor of a list of tensors, and its offsets. The values are a copy, in the graph of the tensors.

    Args:
        tensors: the parts; at most one dim may differ between them.
        offsets: (B + 1) if they are known, so that the result has the ragged dim of another tensor; else None.

    Raises:
        RuntimeError: the parts do not fit together.
    """
    _check_list(tensors)
    ragged = _ragged_dim([x.shape for x in tensors])
    values = t.cat(tensors, ragged - 1).to(device=device, dtype=dtype)
    lengths = [x.shape[ragged - 1] for x in tensors]
    if offsets is None:
        offsets = t.tensor([0, *itertools.accumulate(lengths)], dtype=_INT, device=values.device)
    made = nested_view_from_values_offsets(values, offsets, ragged, min(lengths), max(lengths))
    return made, offsets


def _one_per_row(given, rows: int):
    if given.ndim > 1 or (given.ndim == 1 and given.shape[0] not in (1, rows)):
        raise RuntimeError(
            "When constructing a jagged nested tensor using narrow(), your start and length must be Tensors that broadcast to "
            "input.shape[0]"
        )
    return given.expand(rows)


def jagged_from_tensor_and_lengths(tensor, starts, lengths):
    """Return the view of rows ``starts[i]`` to ``starts[i] + lengths[i]`` of each ``tensor[i]``, its offsets, and its lengths.

    The lengths are None if there are no gaps between the rows.
    """
    rows, width = tensor.shape[0], tensor.shape[1] if tensor.ndim > 1 else 0
    first, count = _one_per_row(starts, rows), _one_per_row(lengths, rows)
    if tensor.ndim < 2:
        raise AssertionError("tensor must at least be 2D for the nested narrow op to work")
    begin = first + width * t.arange(rows, dtype=_INT, device=tensor.device)
    end = begin + count
    offsets = t.cat([begin, end[-1:]])
    values = tensor.view(-1, *tensor.shape[2:])
    bounds = {"min_seqlen": int(lengths.min()), "max_seqlen": int(lengths.max())}
    if bool((begin[1:] == end[:-1]).all()) and int(end[0]) == width:
        low, high = int(offsets[0]), int(offsets[-1])
        made = nested_view_from_values_offsets(values[low:high], offsets - low, **bounds)
        return made, offsets, None
    return nested_view_from_values_offsets_lengths(values, offsets, count, **bounds), offsets, count


def nested_from_padded(padded, offsets, ragged_idx=1, min_seqlen=None, max_seqlen=None, sum_S=None):
    """Return the nested tensor of the first rows of each ``padded[i]``, as many as the offsets say.

    Args:
        padded: (B, *, ...), in which dim ``ragged_idx`` is at least as long as the longest part.
        sum_S: the sum of all lengths, which the offsets have too.
    """
    lengths = offsets.diff()
    turned = padded.transpose(ragged_idx, 1)
    inside = t.arange(turned.shape[1], device=padded.device) < lengths.unsqueeze(-1)
    values = turned[inside]
    if sum_S is not None and values.shape[0] < sum_S:
        raise RuntimeError("nested_from_padded(): the padded tensor is shorter than the longest part")
    if ragged_idx > 1:
        values = values.transpose(ragged_idx - 1, 0)
    return nested_view_from_values_offsets(values, offsets, ragged_idx, min_seqlen, max_seqlen)
