"""Embedding bags."""

from __future__ import annotations

import warnings

from ._declare import composite, namespaces, op, raw, t
from ._functional import functional, without_grad


def _no_grad_embedding_renorm_(weight, input, max_norm, norm_type):
    """Scale the rows of ``weight`` with the indices ``input`` down to ``max_norm``, in place."""
    with without_grad():
        rows = t.unique(input.reshape(-1))
        chosen = weight.index_select(0, rows)
        norms = t.linalg_vector_norm(chosen, norm_type, 1, True)
        scale = t.where(norms > max_norm, max_norm / (norms + 1e-7), t.ones_like(norms))
        weight.index_copy_(0, rows.long(), chosen * scale)
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
        if offsets.numel() and offsets[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {int(offsets[0])}"
            )
        if offsets.numel() and offsets[-1] > input.numel():
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {input.numel()} but got offsets[-1] of "
                f"{int(offsets[-1])}"
            )
    wrong = next((x for x in (input, offsets) if x is not None and x.is_floating_point()), None)
    if wrong is not None:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{wrong.type()} instead (while checking arguments for embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {weight.type()} does not equal {per_sample_weights.type()} (while checking "
            "arguments for embedding_bag)"
        )
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode != "sum" and per_sample_weights is not None:
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only "
            f"supported for mode='sum' (got mode='{mode}'). Please open a feature request on "
            "GitHub."
        )


def _bag_of_each(n, starts):
    """Return the bag number of each of the n entries."""
    entries = t.arange(n, device=starts.device, dtype=starts.dtype)
    return t.searchsorted(starts.contiguous(), entries, right=True) - 1


def _sizes_of(bag, n_bags, dtype):
    """Return the number of entries of each bag as a column, and 1 for an empty bag."""
    return t.bincount(bag, minlength=n_bags).clamp(min=1).to(dtype).unsqueeze(1)


def _bags_of_operators(weight, indices, starts, mean):
    bag, n_bags = _bag_of_each(indices.numel(), starts), starts.numel()
    rows = weight.index_select(0, indices)
    total = t.zeros((n_bags, weight.shape[1]), dtype=rows.dtype, device=rows.device).index_add(0, bag, rows)
    return total / _sizes_of(bag, n_bags, rows.dtype) if mean else total


def _bags_backward_of_operators(grad, indices, starts, rows, mean):
    bag = _bag_of_each(indices.numel(), starts)
    if mean:
        grad = grad / _sizes_of(bag, starts.numel(), grad.dtype)
    zeros = t.zeros([rows, grad.shape[1]], dtype=grad.dtype, device=grad.device)
    return zeros.index_add(0, indices, grad.index_select(0, bag))


op(
    "_bags_backward(Tensor grad, Tensor indices, Tensor starts, int rows, bool mean) -> Tensor",
    ms="EmbeddingBagsGrad",
    npu=_bags_backward_of_operators,
    forms="f",
    grad={"grad": lambda g, indices, starts, mean: t._bags(g, indices, starts, mean)},
    whole=True,
)


@op(
    "_bags(Tensor weight, Tensor indices, Tensor starts, bool mean) -> Tensor",
    forms="f",
    grad={
        "weight": lambda g, weight, indices, starts, mean: t._bags_backward(
            g, indices, starts, weight.shape[0], mean
        )
    },
    npu=_bags_of_operators,
    whole=True,
)
def _bags(weight, indices, starts, mean):
    """Return the sums or means of the rows of ``weight`` in bags, which begin at ``starts`` of the ``indices``."""
    return raw.EmbeddingBags(weight, indices, starts, mean)


def _chosen_rows(weight, input, scale_grad_by_freq, sparse):
    """Return the rows of ``weight`` with the indices ``input``. The options change the gradient only."""
    try:
        if not (sparse or scale_grad_by_freq):
            return weight.index_select(0, input)
        rows = namespaces["torch"]["embedding"]
        return rows(weight, input, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)
    except IndexError as error:
        outside = input[(input < 0) | (input >= weight.size(0))]
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {int(outside[0])}"
        ) from error


@composite(
    "nn.functional.embedding_bag(Tensor input, Tensor weight, Tensor? offsets=None, "
    "any max_norm=None, float norm_type=2, bool scale_grad_by_freq=False, str mode='mean', "
    "bool sparse=False, Tensor? per_sample_weights=None, any include_last_offset=False, "
    "int? padding_idx=None) -> Tensor",
    forms="f",
)
def embedding_bag(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse,
        per_sample_weights, include_last_offset, padding_idx):  # fmt: skip
    """Return the sum, mean or maximum of the rows of ``weight`` in each bag.

    Bags are the rows of a 2-dimensional ``input``, or parts of a 1-dimensional ``input`` that begin at
    ``offsets``. Entries equal to ``padding_idx`` do not count. An empty bag gives zeros.
    """
    if str(weight.dtype) == "torch.int64" and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, "
            "and should now be `embedding_bag(input, weight, ...)`.",
            stacklevel=3,
        )
        input, weight = weight, input
    _check_bag(input, weight, offsets, mode, per_sample_weights, include_last_offset)
    if sparse and mode == "max":
        raise ValueError("max mode does not support sparse weights")
    if scale_grad_by_freq and mode == "max":
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    rows, cols = weight.shape
    if padding_idx is not None:
        if not -rows <= padding_idx < rows:
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
            )
        padding_idx %= rows
    if max_norm is not None:
        _no_grad_embedding_renorm_(weight, input, max_norm, norm_type)
    plain = (
        not (sparse or scale_grad_by_freq)
        and per_sample_weights is None
        and padding_idx is None
        and mode != "max"
    )
    if plain and weight.is_floating_point() and weight.dtype.itemsize > 2:
        if input.dim() == 2:
            starts = t.arange(input.shape[0], device=input.device) * input.shape[1]
        else:
            starts = offsets[:-1] if include_last_offset else offsets
        return t._bags(weight, input.reshape(-1), starts, mode == "mean")
    if input.dim() == 2:
        n_bags, width = input.shape
        bag = t.arange(n_bags, device=input.device).repeat_interleave(width)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    else:
        starts = offsets[:-1] if include_last_offset else offsets
        bag, n_bags = _bag_of_each(input.numel(), starts), starts.size(0)
    if padding_idx is not None:
        kept = (input != padding_idx).nonzero().squeeze(1)
        input, bag = input.index_select(0, kept), bag.index_select(0, kept)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.index_select(0, kept)
    values = _chosen_rows(weight, input, scale_grad_by_freq, sparse)
    if weight.dtype.itemsize == 2:  # the rows of a bag are summed in float32
        values = values.float()
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.float()
    if per_sample_weights is not None:
        values = values * per_sample_weights.unsqueeze(1)
    if mode == "max":
        return _max_of_bags(values, bag, n_bags, cols).to(weight.dtype)
    total = t.zeros((n_bags, cols), dtype=values.dtype, device=values.device).index_add(0, bag, values)
    if mode == "sum":
        return total.to(weight.dtype)
    return (total / _sizes_of(bag, n_bags, values.dtype)).to(weight.dtype)


def _max_of_bags(values, bag, n_bags, cols):
    """Return the maximum of each bag. The bags become rows of equal length, filled up with -inf."""
    counts = t.bincount(bag, minlength=n_bags)
    longest = int(counts.max()) if n_bags else 0
    if longest == 0:  # zeros, which still belong to the graph of the table
        zeros = t.zeros((n_bags, cols), dtype=values.dtype, device=values.device)
        return zeros.index_add(0, bag, values)
    starts = counts.cumsum(0) - counts
    place = t.arange(bag.numel(), device=bag.device) - starts.index_select(0, bag)
    padded = t.full((n_bags * longest, cols), float("-inf"), dtype=values.dtype, device=values.device)
    padded = padded.index_copy(0, bag * longest + place, values)
    best = padded.view(n_bags, longest, cols).max(1)[0]
    return t.where((counts == 0).unsqueeze(1), t.zeros_like(best), best)


_BAG_MODES = ("sum", "mean", "max")


@composite(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
    "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int? padding_idx=None)"
    " -> (Tensor, Tensor, Tensor, Tensor)",
    forms="f",
    short=False,
)
def torch_embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, padding_idx):  # fmt: skip
    """Return (bags, the bag of each index, the size of each bag, the index of each maximum); mode 0 sum, 1 mean, 2 max."""
    for name, given, sizes in (
        ("weight", weight, (2,)),
        ("input", indices, (1, 2)),
        ("offsets", offsets, (1,)),
    ):
        if given.dim() not in sizes:
            wanted = " or ".join(f"{n}D" for n in sizes)
            raise RuntimeError(
                f"{name} has to be a {wanted} Tensor, but got Tensor of dimension {given.dim()}"
            )
    out = functional.embedding_bag(
        indices,
        weight,
        offsets,
        None,
        2.0,
        scale_grad_by_freq,
        _BAG_MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
    starts = offsets[:-1] if include_last_offset else offsets
    places = t.arange(indices.numel(), dtype=offsets.dtype, device=offsets.device)
    bag = t.searchsorted(starts.contiguous(), places, right=True) - 1
    counted = bag if padding_idx is None else bag[indices != padding_idx % weight.shape[0]]
    sizes = t.bincount(counted, minlength=starts.numel()).to(offsets.dtype)
    return (
        out,
        bag.to(offsets.dtype),
        sizes,
        _largest(weight, indices, bag, starts.numel(), padding_idx) if mode == 2 else sizes[:0],
    )


def _largest(weight, indices, bag, count: int, padding_idx):
    """Return (bags, columns) of indices that gave the maxima: the first of equal ones, 0 for an empty bag."""
    rows = weight.detach().index_select(0, indices)
    if padding_idx is not None:
        rows = rows.masked_fill((indices == padding_idx % weight.shape[0]).unsqueeze(1), float("-inf"))
    top = t.full((count, rows.shape[1]), float("-inf"), dtype=rows.dtype).index_reduce(0, bag, rows, "amax")
    hit = (rows == top.index_select(0, bag)) & (rows > float("-inf"))
    order = t.arange(len(rows)).unsqueeze(1).masked_fill(~hit, len(rows))
    first = t.full(top.shape, len(rows), dtype=order.dtype).index_reduce(0, bag, order, "amin")
    found = indices.index_select(0, first.clamp(max=max(len(rows) - 1, 0)).reshape(-1)).reshape(first.shape)
    return found.masked_fill(first == len(rows), 0)
