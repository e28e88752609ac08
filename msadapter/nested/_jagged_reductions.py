"""Reductions of nested tensors with the jagged layout, and attention.

What is left of the ragged dim decides about the result: it is nested if the ragged dim stays, and dense if it goes.
"""

from __future__ import annotations

from .._values.limits import finfo, iinfo
from ..autograd._over_values import declare
from ..ops._declare import t
from ..ops._geometry import wrap_dim
from ._base import refusal
from ._internal.nested_tensor import NestedTensor, nested_view_from_values_offsets_lengths

operator = declare(NestedTensor.operators)


def _inner(self, dim: int) -> int:
    """Return the values' dim. The batch and the ragged dim are one dim of the values."""
    return self._ragged_idx - 1 if dim == 0 else dim - 1


def _dims(self, dim) -> list[int]:
    return [wrap_dim(d, self.ndim) for d in (dim if isinstance(dim, (list, tuple)) else [dim])]


def _with_dim(found, dim: int):
    """Return results with one dim of length 1 more."""
    if isinstance(found, tuple):
        return type(found)(x.unsqueeze(dim) for x in found)
    return found.unsqueeze(dim)


def _stacked(results):
    """Return the results of the parts as one; a result may be a named tuple such as (values, indices)."""
    if isinstance(results[0], tuple):
        return type(results[0])(t.stack(column) for column in zip(*results, strict=True))
    return t.stack(results)


def _over_parts(self, name: str, function, keepdim: bool):
    """Reduce the ragged dim alone: each part by itself, which gives a dense tensor."""
    if self._lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes"
        )
    found = _stacked([function(part, self._ragged_idx - 1) for part in self.unbind()])
    return _with_dim(found, self._ragged_idx) if keepdim else found


def _reduced(self, name: str, function, whole, dim, keepdim: bool, padding=None):
    """Return a reduction.

    Args:
        function: function(tensor, dim or dims, keepdim), of the values.
        whole: function(tensor), over all dims.
        dim: None, a number, or a sequence, which is None if it is empty.
        padding: the value that fills up shorter parts where the ragged dim alone is reduced, as PyTorch does it. An empty
            part gives this value. None: each part is reduced by itself.
    """
    several = isinstance(dim, (list, tuple))
    if dim is None or (several and not dim):
        found = whole(self._values)
        return _with_dim(found, self._ragged_idx) if keepdim else found
    dims = _dims(self, dim)
    batch, ragged = 0 in dims, self._ragged_idx in dims
    others = [d for d in dims if d not in (0, self._ragged_idx)]
    inner = list(dict.fromkeys(_inner(self, d) for d in dims))
    if ragged and not batch:
        if others:
            raise RuntimeError(
                f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors"
            )
        if padding is not None and self._lengths is None:
            ragged_dim = [self._ragged_idx] if several else self._ragged_idx
            return function(self.to_padded_tensor(padding), ragged_dim, keepdim)
        return _over_parts(self, name, lambda x, d: function(x, [d] if several else d, False), keepdim)
    if batch and not ragged:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors"
        )
    if ragged and self._lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes"
        )
    found = function(self._values, inner if several else inner[0], keepdim)
    if ragged:
        return _with_dim(found, 0) if keepdim else found
    before = 0 if keepdim else sum(d < self._ragged_idx - 1 for d in inner)
    kept = self._ragged_idx - before
    if isinstance(found, tuple):
        return type(found)(self._with(x, kept) for x in found)
    return self._with(found, kept)


def _sum_like(name: str) -> None:
    function = getattr(t, name)

    @operator(name)
    def run(input, dim=None, keepdim=False, *, dtype=None):
        return _reduced(
            input,
            name,
            lambda x, d, k: function(x, d, k, dtype=dtype),
            lambda x: function(x, dtype=dtype),
            dim,
            keepdim,
        )


for _name in ("sum", "mean", "prod"):
    _sum_like(_name)


def _limit(dtype, largest: bool):
    """Return the largest or smallest number of a dtype, without infinity."""
    if dtype.name == "bool":
        return largest
    limits = finfo(dtype) if dtype.is_floating_point else iinfo(dtype)
    return limits.max if largest else limits.min


def _selecting(name: str, largest_fills: bool | None = None) -> None:
    """Declare a reduction without `dtype=`. `largest_fills`: what fills up parts, the largest number or the smallest."""
    function = getattr(t, name)

    @operator(name)
    def run(input, dim=None, keepdim=False):
        padding = None if largest_fills is None else _limit(input.dtype, largest_fills)
        return _reduced(input, name, function, function, dim, keepdim, padding)


for _name in ("amin", "min", "argmin"):
    _selecting(_name, largest_fills=True)
for _name in ("amax", "max", "argmax"):
    _selecting(_name, largest_fills=False)
for _name in ("any", "all"):
    _selecting(_name)


# ---- attention
@operator("scaled_dot_product_attention")
def attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Return the attention of each part of the batch by itself.

    Args:
        query, key, value: (B, heads, *, D), or (B, *, heads, L, D) with a ragged second batch dim.
        is_causal: in each part, position i sees the positions up to i. PyTorch computes this on a GPU alone.

    Raises:
        ValueError: the three do not fit together, or there is a mask, which PyTorch does not take here either.
    """
    _check_attention(query, key, value, attn_mask)
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    compute = t.scaled_dot_product_attention
    if query._ragged_idx == 1 and min(x.ndim for x in (query, key, value)) > 3:
        return query._with(compute(query._values, key._values, value._values, **options))
    if query.ndim != 4 or query._ragged_idx != 2:
        raise refusal(
            "nn.functional.scaled_dot_product_attention",
            "nested tensors that are not (batch, heads, ragged length, features)",
        )
    found = [
        compute(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), **options).squeeze(0)
        for q, k, v in zip(query.unbind(), key.unbind(), value.unbind(), strict=True)
    ]
    rows = t.cat([part.transpose(0, 1) for part in found])
    made = nested_view_from_values_offsets_lengths(
        rows, *_packed(query), min_seqlen=query._known("min_seqlen"), max_seqlen=query._known("max_seqlen")
    )
    return made.transpose(1, 2)


def _packed(query):
    if query._lengths is not None:
        raise refusal("nn.functional.scaled_dot_product_attention", "nested queries with gaps")
    return query._offsets, None


def _check_attention(query, key, value, attn_mask) -> None:
    three = query, key, value
    if not all(isinstance(x, NestedTensor) for x in three):
        flags = [getattr(x, "is_nested", False) for x in three]
        raise ValueError(
            "Expected query, key, and value to be nested tensors, but got query.is_nested: {}, key.is_nested: {}, and "
            "value.is_nested: {} instead.".format(*flags)
        )
    for what, have in (("dtype", [x.dtype for x in three]), ("device", [x.device for x in three])):
        if len(set(have)) > 1:
            kind = "device type" if what == "device" else what
            raise ValueError(
                f"Expected query, key, and value to have the same {kind}, but got query.{what}: {have[0]}, key.{what}: "
                f"{have[1]}, and value.{what}: {have[2]} instead."
            )
    if any(x.ndim < 3 for x in three):
        raise ValueError(
            f"Expected query, key, and value to all be at least 3 dimensional, but got query.dim: {query.ndim}, key.dim: "
            f"{key.ndim} and value.dim: {value.ndim} instead."
        )
    if len({x._ragged_idx for x in three}) > 1:
        raise ValueError(
            f"Expected query, key, and value to all be ragged on the same dimension, but got ragged dims {query._ragged_idx}, "
            f"{key._ragged_idx}, and {value._ragged_idx}, respectively."
        )
    if attn_mask is not None:
        raise ValueError("Masks are not yet supported!")
