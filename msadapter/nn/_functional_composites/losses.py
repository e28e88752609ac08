"""Losses that are compositions: likelihoods, embedding losses, cross entropy."""

import math
import warnings

from ... import ops
from .. import _reduction
from ._table import table
from .distance import pairwise_distance

__all__ = [
    "cosine_embedding_loss",
    "cross_entropy",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "kl_div",
    "poisson_nll_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


def chosen(size_average, reduce, reduction):
    """The reduction meant by the present and the old arguments; ValueError for an unknown name."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    _reduction.get_enum(reduction)
    return reduction


def reduced(loss, reduction):
    """``loss`` as it is, its mean, or its sum."""
    if reduction == "none":
        return loss
    return loss.sum() if reduction == "sum" else loss.mean()


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target * (log target - input), zero where target is zero; ``batchmean`` divides the sum by N."""
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
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
        product = target * input  # first, so that gradients are added up in torch's order
        loss = ops.xlogy(target, target) - product
    if reduction == "batchmean":
        return loss.sum() / input.size(0) if input.dim() else loss.sum()
    _reduction.get_enum(reduction)
    return reduced(loss, reduction)


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """exp(input) - target * input (``log_input``), or input - target * log(input + eps).

    ``full`` adds Stirling's approximation of log(target!) where target > 1.
    """
    if size_average is not None or reduce is not None:
        reduction = _reduction.legacy_get_string(size_average, reduce)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        tail = 0.5 * (2 * math.pi * target).log()  # first, so that gradients are added up in torch's order
        stirling = target * target.log() - target + tail
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """0.5 * (log var + (input - target)^2 / var), var not below eps; ``full`` adds 0.5 * log(2 pi)."""
    if isinstance(var, (int, float)):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * ops.ones_like(input)
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = var.unsqueeze(-1)
        elif not (input.size()[:-1] == var.size()[:-1] and var.size(-1) == 1) and not _broadcasts(var, input):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    # The floor is a constant: no gradient through the clamp.
    lift = var.detach().clamp(min=eps) - var.detach()
    floored = var + lift
    loss = 0.5 * (floored.log() + (input - target) ** 2 / floored)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduced(loss, reduction)


def _broadcasts(var, input):
    """Whether ``var`` has the rank of ``input`` and sizes that are equal or one."""
    return var.dim() == input.dim() and all(v in (1, i) for v, i in zip(var.shape, input.shape, strict=True))


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """x where y is 1, max(0, margin - x) where y is -1."""
    reduction = chosen(size_average, reduce, reduction)
    zero = ops.zeros_like(input)
    far = ops.where(target != 1, (margin - input).clamp_min(0), zero)
    near = ops.where(target != -1, input, zero)
    return reduced(far + near, reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-y x))."""
    reduction = chosen(size_average, reduce, reduction)
    return ops._soft_margin(*ops.broadcast_tensors(input, target), reduction)


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where y is 1, max(0, cos - margin) where y is -1; (N, D) with y (N), or (D) with a scalar y."""
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
    zero = ops.zeros_like(cos)
    same = ops.where(target == 1, 1 - cos, zero)
    other = ops.where(target == -1, (cos - margin).clamp_min(0), zero)
    return reduced(same + other, reduction)


def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin=1.0,
    p=2,
    eps=1e-6,
    swap=False,
    size_average=None,
    reduce=None,
    reduction="mean",
):
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
        far = ops.minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced((near - far + margin).clamp_min(0), reduction)


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """Triplet loss with any distance (default: ``pairwise_distance``)."""
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
        far = ops.minimum(far, distance(positive, negative))
    return reduced((near - far + margin).clamp_min(0), reduction)


def cross_entropy(
    input,
    target,
    weight=None,
    size_average=None,
    ignore_index=-100,
    reduce=None,
    reduction="mean",
    label_smoothing=0.0,
):
    """Cross entropy of logits (N, C, ...) or (C).

    ``target``: class indices (N, ...), or class probabilities of the shape of ``input``.
    ``weight``: a factor for each class. ``label_smoothing`` mixes the target with the uniform distribution.
    """
    reduction = chosen(size_average, reduce, reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    class_dim = 0 if input.dim() == 1 else 1
    classes = input.size(class_dim)
    if weight is not None and (weight.dim() != 1 or weight.numel() != classes):
        raise RuntimeError(
            "cross_entropy: weight tensor should be defined either for all "
            f"{classes} classes or no classes but got weight tensor of shape: {list(weight.shape)}"
        )
    log_prob = table.log_softmax(input, class_dim)
    if input.size() == target.size():
        return _probability_entropy(
            log_prob, target, weight, class_dim, classes, reduction, label_smoothing, ignore_index
        )
    loss = table.nll_loss(log_prob, target, weight, None, ignore_index, None, reduction)
    if label_smoothing == 0.0:
        return loss
    return _smoothed(
        loss, log_prob, target, weight, class_dim, classes, reduction, label_smoothing, ignore_index
    )


def _along_classes(weight, log_prob, class_dim):
    shape = [1] * log_prob.dim()
    shape[class_dim] = weight.numel()
    return weight.view(shape)


def _probability_entropy(
    log_prob, target, weight, class_dim, classes, reduction, label_smoothing, ignore_index
):
    if not target.is_floating_point():
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{str(target.dtype).removeprefix('torch.').capitalize()}"
        )
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    if label_smoothing > 0.0:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    loss = -(log_prob * target)
    if weight is not None:
        loss = loss * _along_classes(weight, log_prob, class_dim)
    if reduction == "none":
        return loss.sum(class_dim)
    total = loss.sum()
    return total if reduction == "sum" else total / (log_prob.numel() // classes)


def _smoothed(nll, log_prob, target, weight, class_dim, classes, reduction, label_smoothing, ignore_index):
    """Mix the loss of the target classes with the mean loss of all classes."""
    weighted = log_prob if weight is None else log_prob * _along_classes(weight, log_prob, class_dim)
    smooth = -weighted.sum(class_dim)
    ignored = target == ignore_index
    smooth = smooth.masked_fill(ignored, 0.0)
    if reduction == "sum":
        smooth = smooth.sum()
    elif reduction == "mean":
        if weight is None:
            count = (~ignored).sum()
        else:
            count = weight.gather(0, target.masked_fill(ignored, 0).reshape(-1))
            count = count.masked_fill(ignored.reshape(-1), 0.0).sum()
        smooth = smooth.sum() / count
    return (1 - label_smoothing) * nll + smooth * (label_smoothing / classes)
