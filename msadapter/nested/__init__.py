"""torch.nested: batches of tensors of different lengths."""

from __future__ import annotations

from .._values.dtype import ALL
from .._values.layout import LAYOUTS
from ..autograd import no_grad
from ..ops._declare import t
from ..tensor import Tensor
from . import _jagged, _jagged_reductions, _strided, _strided_operators  # noqa: F401  # they declare the operators
from ._base import NestedBase, refusal
from ._internal import nested_tensor as _jagged_tensor
from ._strided import _nested_view_from_buffer  # noqa: F401
from ._strided import from_list as _strided_from_list
from ._strided import from_mask as _nested_tensor_from_mask  # noqa: F401  # torch._nested_tensor_from_mask

__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]

_STRIDED, _JAGGED = LAYOUTS["strided"], LAYOUTS["jagged"]


def _checked(layout, what: str):
    """Return the layout, which is the strided one if none is given.

    Raises:
        RuntimeError: nested tensors do not have it.
    """
    if layout not in (None, _STRIDED, _JAGGED):
        raise RuntimeError(f"Specified layout is unsupported for {what}: {layout}")
    return layout or _STRIDED


def nested_tensor(
    tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """Return a nested tensor with copies of the tensors in a list, without their graph.

    Args:
        tensor_list: tensors, or what `torch.tensor` takes, all of as many dims.
        layout: torch.strided (default), in which every dim may differ, or torch.jagged, in which one may.

    Raises:
        RuntimeError: the tensors do not fit together, or the layout is another one.
    """
    layout = _checked(layout, "nested tensors")
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [x if isinstance(x, Tensor) else t.tensor(x, dtype=dtype) for x in tensor_list]
    with no_grad():
        if layout is _JAGGED:
            made, _ = _jagged_tensor.jagged_from_list(parts, None, dtype, device)
        else:
            made = _strided_from_list([x.detach() for x in parts], dtype, device)
    made.requires_grad_(requires_grad)
    return made.pin_memory() if pin_memory else made


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """Return tensors as a nested tensor, in the graph of them.

    Args:
        ts: a list of tensors, whose numbers are copied; a tensor of at least two dims, whose first dim is the batch; or a
            nested tensor.

    Raises:
        RuntimeError: the tensors do not fit together, or the layout is another one.
    """
    if isinstance(ts, (list, tuple)) and all(isinstance(x, Tensor) for x in ts):
        if _checked(layout, "nested tensors") is _JAGGED:
            return _jagged_tensor.jagged_from_list(list(ts), None, dtype, device)[0]
        return _strided_from_list(list(ts), dtype, device)
    if not isinstance(ts, Tensor):
        raise TypeError(
            "as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors "
        )
    if ts.dim() < 2:
        raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
    if isinstance(ts, NestedBase):
        if layout is not ts.layout:
            raise RuntimeError(
                "as_nested_tensor(): Converting between nested tensor layouts is not supported"
            )
        return ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
    given = ts.to(device=device or ts.device, dtype=dtype or ts.dtype)
    if _checked(layout, "nested tensors") is _STRIDED:
        return _strided.view_of(given)
    batch, length = ts.shape[:2]
    values = given.contiguous().flatten(0, 1)
    offsets = t.arange(0, batch * length + 1, length or 1, dtype=ALL["int64"], device=values.device)
    if not length:
        offsets = t.zeros(batch + 1, dtype=ALL["int64"], device=values.device)
    return _jagged_tensor.nested_view_from_values_offsets(
        values, offsets, min_seqlen=length, max_seqlen=length
    )


def nested_tensor_from_jagged(
    values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None
):
    """Return a view of ``values`` as a nested tensor with the jagged layout.

    Args:
        values: (sum of lengths, ...), the parts one after the other.
        offsets: int64 (B + 1), where each part begins and the last one ends.
        lengths: int64 (B), the length of each part. With both, there may be gaps between the parts.
        jagged_dim: the ragged dim, 1 by default.
        min_seqlen, max_seqlen: the extreme lengths, if they are known.

    Raises:
        RuntimeError: neither offsets nor lengths are given.
    """
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets, lengths = t.pad(lengths.cumsum(0), (1, 0)), None
    if jagged_dim is not None and jagged_dim < 1:
        raise ValueError(f"Expected jagged_dim >=1, but got {jagged_dim}.")
    return _jagged_tensor.nested_view_from_values_offsets_lengths(
        values, offsets, lengths, jagged_dim or 1, min_seqlen, max_seqlen
    )


def narrow(tensor, dim, start, length, layout=_STRIDED):
    """Return the elements from ``start`` to ``start + length`` of dim ``dim`` of each ``tensor[i]``.

    Args:
        tensor: a dense tensor; its first dim is the batch.
        dim: 1 for the jagged layout.
        start, length: a number, or for the jagged layout a tensor (B) with one for each part.

    Raises:
        RuntimeError: the layout does not take these arguments.
    """
    for name, value in (("start", start), ("length", length)):
        if not isinstance(value, (int, Tensor)):
            raise RuntimeError(f"{name} must be an integer or a tensor")
    if layout is _STRIDED:
        if isinstance(start, Tensor) or isinstance(length, Tensor):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor(list(tensor.unbind())).narrow(dim, start, length)
    if layout is not _JAGGED:
        raise RuntimeError(f"Specified layout is unsupported for nested narrow: {layout}")
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    start, length = (
        x if isinstance(x, Tensor) else t.tensor([x], dtype=ALL["int64"], device=tensor.device)
        for x in (start, length)
    )
    return _jagged_tensor.jagged_from_tensor_and_lengths(tensor, start, length)[0]


def masked_select(tensor, mask):
    """Return the elements of a dense tensor at which a mask is true. Part i of the result are those of row i.

    Raises:
        RuntimeError: one of the two is not a dense tensor.
    """
    for name, value in (("tensor, given", tensor), ("mask, given:", mask)):
        if isinstance(value, NestedBase) or value.layout is not _STRIDED:
            raise RuntimeError(f"torch.nested.masked_select requires a strided {name} {value.layout}")
    lengths = mask.expand(tensor.shape).sum(-1).view(-1)
    offsets = t.pad(lengths.cumsum(0), (1, 0))
    return _jagged_tensor.nested_view_from_values_offsets(tensor.masked_select(mask), offsets)


def to_padded_tensor(input, padding, output_size=None, out=None):
    """Return a dense tensor in which every part is as long as the longest one, filled up with ``padding``.

    Args:
        output_size: the shape of the result, if it is to be larger.
    """
    if out is not None:
        raise refusal("nested.to_padded_tensor", "nested tensors with out=")
    if not isinstance(input, NestedBase):
        raise TypeError(f"to_padded_tensor() takes a nested tensor, not {type(input).__name__}")
    return input.to_padded_tensor(padding, output_size)
