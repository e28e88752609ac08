"""Bags of embeddings."""

from ... import ops
from ...autograd import no_grad

__all__ = ["_no_grad_embedding_renorm_", "embedding_bag"]


def _no_grad_embedding_renorm_(weight, input, max_norm, norm_type):
    """Scale the rows of ``weight`` that ``input`` names down to ``max_norm``, in place."""
    with no_grad():
        rows = ops.unique(input.reshape(-1))
        chosen = weight.index_select(0, rows)
        norms = ops.linalg_vector_norm(chosen, norm_type, 1, True)
        scale = ops.where(norms > max_norm, max_norm / (norms + 1e-7), ops.ones_like(norms))
        weight.index_copy_(0, rows, chosen * scale)
    return weight, input


def _check_bag(input, weight, offsets, mode, per_sample_weights, include_last_offset):
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            "embedding_bag: If per_sample_weights "
            f"({list(per_sample_weights.shape)}) is not None, then it must have the same shape as the "
            f"input ({list(input.shape)})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2 and offsets is not None:
        kind = type(offsets).__name__ if not hasattr(offsets, "dim") else str(type(offsets))
        raise ValueError(
            "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed "
            f"length sequences. However, found offsets of type {kind}"
        )
    if input.dim() not in (1, 2):
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode != "sum" and per_sample_weights is not None:
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
            f"supported for mode='sum' (got mode='{mode}'). Please open a feature request on "
            "GitHub."
        )


def _bag_of_each(n, offsets, include_last_offset):
    """(bag number of each of the n entries, number of bags)."""
    starts = offsets[:-1] if include_last_offset else offsets
    entries = ops.arange(n, device=offsets.device, dtype=offsets.dtype)
    bag = ops.searchsorted(starts.contiguous(), entries, right=True) - 1
    return bag, starts.size(0)


def embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Sum, mean or maximum of the rows of ``weight`` in each bag.

    Bags are the rows of a 2D ``input``, or the stretches of a 1D ``input`` that begin at ``offsets``.
    Entries equal to ``padding_idx`` do not count; an empty bag gives zeros.
    """
    _check_bag(input, weight, offsets, mode, per_sample_weights, include_last_offset)
    if sparse and mode == "max":
        raise ValueError("max mode does not support sparse weights")
    if scale_grad_by_freq and mode == "max":
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    rows, cols = weight.shape
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise ValueError("padding_idx must be within the number of embeddings")
        padding_idx %= rows
    if input.dim() == 2:
        n_bags, width = input.shape
        bag = ops.arange(n_bags, device=input.device).repeat_interleave(width)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    else:
        bag, n_bags = _bag_of_each(input.numel(), offsets, include_last_offset)
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    if padding_idx is not None:
        kept = (input != padding_idx).nonzero().squeeze(1)
        input, bag = input.index_select(0, kept), bag.index_select(0, kept)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.index_select(0, kept)
    values = weight.index_select(0, input)
    if sparse or scale_grad_by_freq:  # another gradient
        rows = ops.namespaces["torch"]["embedding"]
        values = rows(weight, input, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    if weight.dtype.itemsize == 2:  # bags are sums in float32
        values = values.float()
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.float()
    if per_sample_weights is not None:
        values = values * per_sample_weights.unsqueeze(1)
    if mode == "max":
        return _max_of_bags(values, bag, n_bags, cols).to(weight.dtype)
    total = ops.zeros((n_bags, cols), dtype=values.dtype, device=values.device).index_add(0, bag, values)
    if mode == "sum":
        return total.to(weight.dtype)
    counts = ops.bincount(bag, minlength=n_bags).clamp(min=1).to(values.dtype)
    return (total / counts.unsqueeze(1)).to(weight.dtype)


def _max_of_bags(values, bag, n_bags, cols):
    """Maximum over each bag: bags are laid out as rows of equal length, the gaps filled with -inf."""
    counts = ops.bincount(bag, minlength=n_bags)
    longest = int(counts.max()) if n_bags else 0
    if longest == 0:
        return ops.zeros((n_bags, cols), dtype=values.dtype, device=values.device)
    starts = counts.cumsum(0) - counts
    place = ops.arange(bag.numel(), device=bag.device) - starts.index_select(0, bag)
    padded = ops.full((n_bags * longest, cols), float("-inf"), dtype=values.dtype, device=values.device)
    padded = padded.index_copy(0, bag * longest + place, values)
    best = padded.view(n_bags, longest, cols).max(1)[0]
    return ops.where((counts == 0).unsqueeze(1), ops.zeros_like(best), best)
