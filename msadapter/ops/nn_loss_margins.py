"""Margin losses over classes."""

from __future__ import annotations

from .._values.dtype import ALL
from ._declare import _C, composite, op, raw, t
from ._functional import functional
from .nn_loss import check_long, chosen, reduced


@composite(
    "nn.functional.margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0, "
    "any size_average=None, any reduce=None, str reduction='mean') -> Tensor",
    forms="f",
    autocast="float32",
)
def margin_ranking_loss(input1, input2, target, margin, size_average, reduce, reduction):
    """max(0, -y (x1 - x2) + margin)."""
    reduction = chosen(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return reduced((-target * (input1 - input2) + margin).clamp_min(0), reduction)


def _check_rows(input) -> None:
    """RuntimeError unless the input is a vector or a matrix with columns."""
    if input.dim() > 2 or 0 in input.shape[-1:]:
        raise RuntimeError(
            f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )


def _margin_gaps(rows, target, margin, weight):
    """Return margin - x[y] + x[i] for every class i of each row, whether it counts, and the factor of the row's sum."""
    index = target.unsqueeze(1)
    gap = margin - rows.gather(1, index) + rows
    own = t.zeros_like(gap, dtype=ALL["bool"]).scatter(1, index, True)
    share = 1 / rows.size(1)
    return gap, (gap > 0) & ~own, share if weight is None else weight.index_select(0, target) * share


def _multi_margin_of_operators(rows, target, p, margin, weight):
    gap, counted, factor = _margin_gaps(rows, target, margin, weight)
    return t.where(counted, gap**p, t.zeros_like(gap)).sum(1) * factor


def _multi_margin_grad(g, rows, target, p, margin, weight):
    # The kernel of the host serves where no graph of the gradient is recorded. An NPU has none, but can run the operators below.
    if not _C.is_grad_enabled() and not rows.is_npu:
        return raw.MultiMarginLossGrad(g, rows, target, p, margin, weight)
    gap, counted, factor = _margin_gaps(rows, target, margin, weight)
    slope = t.where(counted, 2 * gap if p == 2 else t.ones_like(gap), t.zeros_like(gap))
    slope = slope * (g * factor).unsqueeze(1)
    return slope.scatter_add(1, target.unsqueeze(1), -slope.sum(1, keepdim=True))


@op(
    "_multi_margin(Tensor rows, Tensor target, float p, float margin, Tensor? weight) -> Tensor",
    npu=_multi_margin_of_operators,
    grad={"rows": _multi_margin_grad},
    node="MultiMarginLossBackward0",
    forms="f",
)
def _multi_margin(rows, target, p, margin, weight):
    """Return the loss of each row, for (N, C) and (N). No tensor of the gaps is made."""
    return raw.MultiMarginLoss(rows, target, p, margin, weight)


@composite(
    "nn.functional.multi_margin_loss(Tensor input, Tensor target, float p=1, float margin=1.0, "
    "Tensor? weight=None, any size_average=None, any reduce=None, str reduction='mean') -> Tensor",
    forms="f",
    autocast="float32",
)
def multi_margin_loss(input, target, p, margin, weight, size_average, reduce, reduction):
    """Mean over classes i != y of max(0, margin - x[y] + x[i]) ** p, times weight[y], for (N, C) or (C)."""
    reduction = chosen(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    _check_rows(input)
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    index = target.reshape(-1, 1)
    if index.size(0) != rows.size(0):
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). "
            f"Expected target size [{rows.size(0)}], but got {list(target.shape)}. Input has shape {list(input.shape)}."
        )
    check_long(target)
    loss = t._multi_margin(rows, index.squeeze(1), p, margin, weight)
    if reduction == "none" and target.dim() == 0:
        return loss.squeeze(0)
    return reduced(loss, reduction)


@composite(
    "nn.functional.multilabel_margin_loss(Tensor input, Tensor target, any size_average=None, "
    "any reduce=None, str reduction='mean') -> Tensor",
    forms="f",
    autocast="float32",
)
def multilabel_margin_loss(input, target, size_average, reduce, reduction):
    """Mean over classes of max(0, 1 - (x[target] - x[other])) for every target class and every other class.

    The target classes of a row are its entries before the first -1.
    """
    reduction = chosen(size_average, reduce, reduction)
    _check_rows(input)
    if input.size() != target.size():
        raise RuntimeError(
            f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}"
        )
    rows = input if input.dim() == 2 else input.reshape(1, -1)
    labels = target if input.dim() == 2 else target.reshape(1, -1)
    check_long(target)
    loss, _ = t._multilabel_margin(rows, labels)
    if reduction == "none" and input.dim() < 2:
        return loss.squeeze(0)
    return reduced(loss, reduction)


def _multilabel_margin_of_all_pairs(rows, labels):
    """Return the loss of each row and its gradient, from a tensor of all pairs of classes (rows, targets, others)."""
    valid = (labels >= 0).to(ALL["int64"]).cumprod(1).to(ALL["bool"])
    index = labels.masked_fill(~valid, 0)
    is_target = t.zeros_like(labels).scatter_add(1, index, valid.to(labels.dtype)) > 0
    gap = 1 - (rows.gather(1, index).unsqueeze(2) - rows.unsqueeze(1))
    counted = valid.unsqueeze(2) & ~is_target.unsqueeze(1) & (gap > 0)
    loss = t.where(counted, gap, t.zeros_like(gap)).sum((1, 2)) / rows.size(1)
    ones = counted.to(rows.dtype)
    slope = ones.sum(1).scatter_add(1, index, -ones.sum(2)) / rows.size(1)
    return loss, slope


@op(
    "_multilabel_margin(Tensor rows, Tensor labels) -> (Tensor loss, Tensor slope)",
    npu=_multilabel_margin_of_all_pairs,
    grad={"rows": lambda gs, result1: None if gs[0] is None else gs[0].unsqueeze(1) * result1},
    node="MultilabelMarginLossBackward0",
    forms="f",
)
def _multilabel_margin(rows, labels):
    """Return the loss of each row, and the gradient of this loss, which depends on the signs of the gaps alone."""
    return raw.MultilabelMarginLoss(rows, labels)


@composite(
    "nn.functional.multilabel_soft_margin_loss(Tensor input, Tensor target, Tensor? weight=None, "
    "any size_average=None, any reduce=None, str reduction='mean') -> Tensor",
    forms="f",
)
def multilabel_soft_margin_loss(input, target, weight, size_average, reduce, reduction):
    """Mean over classes of the binary cross entropy of logits."""
    reduction = chosen(size_average, reduce, reduction)
    loss = -(target * functional.logsigmoid(input) + (1 - target) * functional.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduced(loss.sum(-1) / input.size(-1), reduction)
