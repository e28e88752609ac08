"""Losses composed of operators: likelihoods, embedding losses, triplet losses."""

from __future__ import annotations

import math
import warnings

from ._declare import composite, t
from .nn_distance import pairwise_distance
from .nn_loss import chosen, reduced


@composite(
    "nn.functional.kl_div(Tensor input, Tensor target, any size_average=None, any reduce=None, "
    "str reduction='mean', bool log_target=False) -> Tensor",
    forms="f",
    autocast="float32",
)
def kl_div(input, target, size_average, reduce, reduction, log_target):
    """target * (log target - input), or zero where target is zero. ``batchmean`` divides the sum by N."""
    if size_average is not None or reduce is not None:
        reduction = chosen(size_average, reduce, "mean")
    elif reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
            "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
            stacklevel=2,
        )
    if log_target:
        loss = target.exp() * (target - input)
    else:
        product = target * input  # computed first, so that gradients are added in PyTorch's order
        loss = t.xlogy(target, target) - product
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.dim() else loss.sum()
    chosen(None, None, reduction)
    return reduced(loss, reduction)


@composite(
    "nn.functional.poisson_nll_loss(Tensor input, Tensor target, bool log_input=True, "
    "bool full=False, any size_average=None, float eps=1e-08, any reduce=None, "
    "str reduction='mean') -> Tensor",
    forms="f",
    autocast="float32",
)
def poisson_nll_loss(input, target, log_input, full, size_average, eps, reduce, reduction):
    """exp(input) - target * input (``log_input``), or input - target * log(input + eps).

    ``full`` adds Stirling's approximation of log(target!) where target > 1.
    """
    if size_average is not None or reduce is not None:
        reduction = chosen(size_average, reduce, "mean")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        # computed first, so that gradients are added in PyTorch's order
        tail = 0.5 * (2 * math.pi * target).log()
        stirling = target * target.log() - target + tail
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


@composite(
    "nn.functional.gaussian_nll_loss(Tensor input, Tensor target, any var, any full=False, "
    "float eps=1e-06, str reduction='mean') -> Tensor",
    forms="f",
)
def gaussian_nll_loss(input, target, var, full, eps, reduction):
    """0.5 * (log var + (input - target)^2 / var), with var at least eps. ``full`` adds 0.5 * log(2 pi)."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * t.ones_like(input)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1) and not _broadcasts(var, input):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    # The lower bound is a constant, so that the clamp does not affect the gradient.
    lift = var.detach().clamp(min=eps) - var.detach()
    floored = var + lift
    loss = 0.5 * (floored.log() + (input - target) ** 2 / floored)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def _broadcasts(var, input):
    """Return whether ``var`` has the rank of ``input``, and sizes that are equal to it or one."""
    return var.dim() == input.dim() and all(v in (1, i) for v, i in zip(var.shape, input.shape, strict=True))


@composite(
    "nn.functional.hinge_embedding_loss(Tensor input, Tensor target, float margin=1.0, "
    "any size_average=None, any reduce=None, str reduction='mean') -> Tensor",
    forms="f",
    autocast="float32",
)
def hinge_embedding_loss(input, target, margin, size_average, reduce, reduction):
    """x where y is 1, max(0, margin - x) where y is -1."""
    reduction = chosen(size_average, reduce, reduction)
    zero = t.zeros_like(input)
    far = t.where(target != 1, (margin - input).clamp_min(0), zero)
    near = t.where(target != -1, input, zero)
    return reduced(far + near, reduction)


@composite(
    "nn.functional.soft_margin_loss(Tensor input, Tensor target, any size_average=None, "
    "any reduce=None, str reduction='mean') -> Tensor",
    forms="f",
    autocast="float32",
)
def soft_margin_loss(input, target, size_average, reduce, reduction):
    """log(1 + exp(-y x))."""
    reduction = chosen(size_average, reduce, reduction)
    return t._soft_margin(*t.broadcast_tensors(input, target), reduction)


@composite(
    "nn.functional.cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, "
    "float margin=0, any size_average=None, any reduce=None, str reduction='mean') -> Tensor",
    forms="f",
    autocast="float32",
)
def cosine_embedding_loss(input1, input2, target, margin, size_average, reduce, reduction):
    """1 - cos where y is 1, and max(0, cos - margin) where y is -1.

    The shapes are (N, D) and (N), or (D) and ().
    """
    reduction = chosen(size_average, reduce, reduction)
    if target.dim() not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.dim() == 1 and (input1.dim() != 2 or input2.dim() != 2):
        raise RuntimeError(
            f"1D target tensor expects 2D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    if target.dim() == 0 and (input1.dim() != 1 or input2.dim() != 1):
        raise RuntimeError(
            f"0D target tensor expects 1D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    dim = target.dim()
    tiny = 1e-12
    squares = ((input1 * input1).sum(dim) + tiny) * ((input2 * input2).sum(dim) + tiny)
    cos = (input1 * input2).sum(dim) / squares.sqrt()
    zero = t.zeros_like(cos)
    same = t.where(target == 1, 1 - cos, zero)
    other = t.where(target == -1, (cos - margin).clamp_min(0), zero)
    return reduced(same + other, reduction)


@composite(
    "nn.functional.triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, "
    "float margin=1.0, float p=2, float eps=1e-06, bool swap=False, any size_average=None, "
    "any reduce=None, str reduction='mean') -> Tensor",
    forms="f",
    autocast="float32",
)
def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, size_average, reduce, reduction):
    """max(0, d(anchor, positive) - d(anchor, negative) + margin) with the p-norm distance."""
    reduction = chosen(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and negative "
            f"{negative.dim()}D inputs"
        )
    near = pairwise_distance(anchor, positive, p, eps)
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = t.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced((near - far + margin).clamp_min(0), reduction)


@composite(
    "nn.functional.triplet_margin_with_distance_loss(Tensor anchor, Tensor positive, "
    "Tensor negative, *, any distance_function=None, float margin=1.0, any swap=False, "
    "str reduction='mean') -> Tensor",
    forms="f",
)
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function, margin, swap, reduction
):
    """Triplet loss with any distance function (default: ``pairwise_distance``)."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function if distance_function is not None else pairwise_distance
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of "
            f"dimensions, but got: anchor {anchor.dim()}D, positive {positive.dim()}D, and negative "
            f"{negative.dim()}D inputs"
        )
    near = distance(anchor, positive)
    far = distance(anchor, negative)
    if swap:
        far = t.minimum(far, distance(positive, negative))
    return reduced((near - far + margin).clamp_min(0), reduction)
