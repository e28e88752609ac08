"""Loss functions. Likelihoods have kernels, distances are formulas."""

from __future__ import annotations

import warnings

from ._declare import composite, op, raw, t
from ._facts import Refused
from .nn_norm import recording

_SUM, _MEAN, _NONE = 0, 1, 2  # the numbers that MindSpore uses for reductions
_CODES = {"sum": _SUM, "mean": _MEAN, "none": _NONE}
_BCE_UNDER_AUTOCAST = Refused(
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)
_TAIL = "any size_average=None, any reduce=None, str reduction='mean'"


def chosen(size_average, reduce, reduction):
    """Return the reduction that the present and the deprecated arguments mean.

    ValueError if it is unknown.
    """
    if size_average is not None or reduce is not None:
        # Any value counts as true or false, and None as true.
        separate = reduce is not None and not reduce
        reduction = "none" if separate else "mean" if size_average is None or size_average else "sum"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=3
        )
        return "mean"
    if reduction not in _CODES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss, reduction):
    """Return `loss` unreduced, its mean or its sum."""
    return loss if reduction == "none" else loss.sum() if reduction == "sum" else loss.mean()


def check_long(target):
    """RuntimeError as of PyTorch's kernels that read an int64 target, unless nothing is read."""
    if target.dtype.name != "int64" and target.numel():
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")


def _paired(name, input, target):
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({_size(target)}) that is different to the input size ({_size(input)}). This will likely "
            f"lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=4,
        )
    return t.broadcast_tensors(input, target)


def _each(function, *tensors):
    """Compute an elementwise loss. 16-bit tensors are computed in float32 and rounded once."""
    if not any(x.element_size() == 2 for x in tensors) or not tensors[0].is_floating_point():
        return function(*tensors)
    return function(*(x.float() for x in tensors)).to(tensors[0].dtype)


def _size(x):
    return f"torch.Size({list(x.shape)})"


# ---- distances
@composite(
    f"nn.functional.mse_loss(Tensor input, Tensor target, {_TAIL}, Tensor? weight=None) -> Tensor",
    forms="f",
    autocast="float32",
)
def mse_loss(input, target, size_average, reduce, reduction, weight):
    """Return the mean (or the sum, or all) of the squared differences."""
    reduction = chosen(size_average, reduce, reduction)
    a, b = _paired("mse_loss", input, target)
    if weight is None:
        return t._mse(a, b, reduction)
    return _weighted(_each(lambda x, y: (x - y).square(), a, b), weight, reduction)


def _constant(value, like):
    """Return a factor as a tensor if `like` has 16 bits, because PyTorch rounds the factor then."""
    return t.scalar_tensor(value, dtype=like.dtype) if like.element_size() == 2 else value


def _share(x, reduction):
    """Return the factor of each element in the result: 1 / n for a mean, else 1."""
    return 1 / x.numel() if reduction == "mean" and x.numel() else 1.0


def _square_slope(g, x, y, reduction):
    return (x - y) * _constant(2 * _share(x, reduction), x) * g


@op(
    "_mse(Tensor input, Tensor target, str reduction) -> Tensor",
    promote="default",
    promote_args=("input", "target"),
    forms="f",
    grad={
        "input": lambda g, input, target, reduction: _square_slope(g, input, target, reduction),
        "target": lambda g, input, target, reduction: _square_slope(g, target, input, reduction),
    },
    node="MseLossBackward0",
)
def _mse(input, target, reduction):
    return reduced(t.square_(input - target), reduction)


def _weighted(loss, weight, reduction):
    if weight is None:
        return reduced(loss, reduction)
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.expand_as(loss).sum()
    return reduced(loss, reduction)


@composite(
    f"nn.functional.l1_loss(Tensor input, Tensor target, {_TAIL}, Tensor? weight=None) -> Tensor",
    forms="f",
    autocast="float32",
)
def l1_loss(input, target, size_average, reduce, reduction, weight):
    """Return the mean (or the sum, or all) of the absolute differences."""
    reduction = chosen(size_average, reduce, reduction)
    a, b = _paired("l1_loss", input, target)
    return _weighted((a - b).abs(), weight, reduction)


@composite(
    f"nn.functional.smooth_l1_loss(Tensor input, Tensor target, {_TAIL}, float beta=1.0) -> Tensor",
    forms="f",
    autocast="float32",
)
def smooth_l1_loss(input, target, size_average, reduce, reduction, beta):
    """d^2 / (2 beta) where the absolute difference d is below `beta`, and d - beta / 2 elsewhere."""
    reduction = chosen(size_average, reduce, reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    a, b = _paired("smooth_l1_loss", input, target)
    if beta == 0:
        return reduced((a - b).abs(), reduction)
    if _is_plain(a, b):
        return t._smooth_l1(a, b, reduction, beta)
    return reduced(_each(lambda x, y: _clipped_loss(x - y, beta, beta), a, b), reduction)


@composite(
    "nn.functional.huber_loss(Tensor input, Tensor target, str reduction='mean', float delta=1.0, Tensor? weight=None) -> Tensor",
    forms="f",
    autocast="float32",
)
def huber_loss(input, target, reduction, delta, weight):
    """d^2 / 2 where the absolute difference d is below `delta`, and delta * (d - delta / 2) elsewhere."""
    reduction = chosen(None, None, reduction)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    a, b = _paired("huber_loss", input, target)
    if weight is None and _is_plain(a, b):
        return t._huber(a, b, reduction, delta)
    return _weighted(_each(lambda x, y: _clipped_loss(x - y, delta, 1), a, b), weight, reduction)


def _is_plain(a, b):
    return a.is_floating_point() and a.dtype is b.dtype


def _clipped_loss(d, limit, scale):
    """d^2 / 2 / scale where the absolute difference d is below `limit`, and limit * (d - limit / 2) / scale elsewhere."""
    near = d.clamp(-limit, limit)
    return (near if scale == 1 else near / scale) * (d - 0.5 * near)


def _clipped_slope(g, x, y, limit, factor):
    """g times the factor and the difference, which is at most `limit` away from zero."""
    if recording():
        slope = _each(lambda x, y: (x - y).clamp(-limit, limit) * factor, x, y)
        return slope * g
    return t._clipped_difference(g, x, y, limit, factor)


@op(
    "_clipped_difference(Tensor g, Tensor input, Tensor target, float limit, float factor) -> Tensor",
    npu=lambda g, input, target, limit, factor: _each(
        lambda g, x, y: (x - y).clamp(-limit, limit) * factor * g, g, input, target
    ),
    forms="f",
)
def _clipped_difference(g, input, target, limit, factor):
    return raw.ClippedLossGrad(g, input, target, limit, factor)


@op(
    "_clipped_each(Tensor input, Tensor target, float limit, float scale) -> Tensor",
    npu=lambda input, target, limit, scale: _each(
        lambda x, y: _clipped_loss(x - y, limit, scale), input, target
    ),
    forms="f",
)
def _clipped_each(input, target, limit, scale):
    return raw.ClippedLoss(input, target, limit, scale)


@op(
    "_huber(Tensor input, Tensor target, str reduction, float delta) -> Tensor",
    forms="f",
    grad={
        "input": lambda g, input, target, reduction, delta: _clipped_slope(
            g, input, target, delta, _share(input, reduction)
        ),
        "target": lambda g, input, target, reduction, delta: _clipped_slope(
            g, target, input, delta, _share(input, reduction)
        ),
    },
    node="HuberLossBackward0",
)
def _huber(input, target, reduction, delta):
    return reduced(t._clipped_each(input, target, delta, 1), reduction)


@op(
    "_smooth_l1(Tensor input, Tensor target, str reduction, float beta) -> Tensor",
    forms="f",
    grad={
        "input": lambda g, input, target, reduction, beta: _clipped_slope(
            g, input, target, beta, _share(input, reduction) / beta
        ),
        "target": lambda g, input, target, reduction, beta: _clipped_slope(
            g, target, input, beta, _share(input, reduction) / beta
        ),
    },
    node="SmoothL1LossBackward0",
)
def _smooth_l1(input, target, reduction, beta):
    return reduced(t._clipped_each(input, target, beta, beta), reduction)


# ---- binary cross entropy
def _soft_margin_slope(g, x, y, reduction):
    z = (-y * x).exp()
    return y * z * _constant(-_share(x, reduction), x) / (z + 1) * g


@op(
    "_soft_margin(Tensor input, Tensor target, str reduction) -> Tensor",
    node="SoftMarginLossBackward0",
    promote="default",
    promote_args=("input", "target"),
    forms="f",
    grad={
        "input": lambda g, input, target, reduction: _soft_margin_slope(g, input, target, reduction),
        "target": lambda g, input, target, reduction: _soft_margin_slope(g, target, input, reduction),
    },
)
def _soft_margin(input, target, reduction):
    return reduced((input * target).neg_().exp_().log1p_(), reduction)


def _scaled_loss_grad(slope, weight, reduction):
    """Return the gradient of a reduced loss, given that of its elements. It is rounded in PyTorch's order."""
    if weight is not None:
        slope = slope * weight
    return slope / max(slope.numel(), 1) if reduction == "mean" else slope


def _bce_grad(g, input, target, weight, reduction):
    variance = (1 - input).mul_(input).clamp_min_(1e-12)
    slope = (input - target).mul_(g).div_(variance)
    del variance  # two tensors are kept at a time
    return _scaled_loss_grad(slope, weight, reduction)


def _bce_target_grad(g, input, weight, reduction):
    return _scaled_loss_grad(-t.logit(input) * g, weight, reduction)


@op(
    "_bce(Tensor input, Tensor target, Tensor? weight, str reduction) -> Tensor",
    forms="f",
    grad={"input": _bce_grad, "target": _bce_target_grad},
)
def _bce(input, target, weight, reduction):
    loss = t._bce_each(input, target) if input.itemsize > 2 else _bce_of_operators(input, target)
    return reduced(loss if weight is None else loss * weight, reduction)


def _bce_of_operators(input, target):
    # As in PyTorch, the logarithm is at least -100, so that a wrong certain prediction costs 100 instead of
    # infinity. The steps write over their operands, so that two tensors are kept at a time.
    loss = t.neg(input).log1p_().clamp_(min=-100.0).mul_(target - 1)
    return loss.sub_(t.log(input).clamp_(min=-100.0).mul_(target))


op(
    "_bce_each(Tensor input, Tensor target) -> Tensor",
    ms="BinaryCrossEntropyEach",
    npu=_bce_of_operators,
    forms="f",
    pointwise=True,
)


@composite(
    f"nn.functional.binary_cross_entropy(Tensor input, Tensor target, Tensor? weight=None, {_TAIL}) -> Tensor",
    forms="f",
    autocast={"cpu": "float32", "accelerator": _BCE_UNDER_AUTOCAST},
)
def binary_cross_entropy(input, target, weight, size_average, reduce, reduction):
    """-(target log(input) + (1 - target) log(1 - input)), where input holds probabilities."""
    reduction = chosen(size_average, reduce, reduction)
    if input.shape != target.shape:
        raise ValueError(
            f"Using a target size ({_size(target)}) that is different to the input size ({_size(input)}) is deprecated. "
            "Please ensure they have the same size."
        )
    if input.numel():
        least, largest = t.aminmax(input.detach())  # NaN if one element is
        if not bool((least >= 0) & (largest <= 1)):
            raise RuntimeError("all elements of input should be between 0 and 1")
    return t._bce(input, target.to(input.dtype), weight, reduction)


@composite(
    f"nn.functional.binary_cross_entropy_with_logits(Tensor input, Tensor target, Tensor? weight=None, "
    f"{_TAIL}, Tensor? pos_weight=None) -> Tensor",
    forms="f",
    autocast="float32",
)
def binary_cross_entropy_with_logits(input, target, weight, size_average, reduce, reduction, pos_weight):
    """The binary cross entropy of sigmoid(input), computed from logarithms so that it cannot overflow."""
    reduction = chosen(size_average, reduce, reduction)
    if input.shape != target.shape:
        raise ValueError(f"Target size ({_size(target)}) must be the same as input size ({_size(input)})")
    return t._bce_logits(input, target, weight, pos_weight, reduction)


def _logits_grad(g, input, target, weight, pos_weight, reduction):
    if pos_weight is None:
        slope = (input.sigmoid() - target) * g
    else:
        positive = pos_weight * target
        slope = ((positive + 1 - target) * input.sigmoid() - positive) * g
    return _scaled_loss_grad(slope, weight, reduction)


def _logits_target_grad(g, input, weight, pos_weight, reduction):
    slope = -input if pos_weight is None else t.logsigmoid(-input) - t.logsigmoid(input) * pos_weight
    return _scaled_loss_grad(slope * g, weight, reduction)


def _onto(in_place, function, x, y):
    """Compute a function of x and y in the memory of x, if the result has its shape, dtype and layout anyway."""
    alike = x.dtype is y.dtype and x.shape == y.shape and x.stride() == y.stride()
    return (in_place if alike else function)(x, y)


@op(
    "_bce_logits(Tensor input, Tensor target, Tensor? weight, Tensor? pos_weight, str reduction) -> Tensor",
    node="BinaryCrossEntropyWithLogitsBackward0",
    forms="f",
    grad={"input": _logits_grad, "target": _logits_target_grad},
)
def _bce_logits(input, target, weight, pos_weight, reduction):
    log_sigmoid = t.logsigmoid(input)
    if pos_weight is not None:
        log_sigmoid = ((pos_weight - 1) * target + 1) * log_sigmoid
    loss = _onto(t.mul_, t.mul, 1 - target, input)
    loss = _onto(t.sub_, t.sub, loss, log_sigmoid)
    return reduced(loss if weight is None else loss * weight, reduction)


@composite(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=0)"
    " -> Tensor",
    forms="f",
    autocast="float32",
    short=False,
)
def torch_binary_cross_entropy_with_logits(self, target, weight, pos_weight, reduction):
    """torch.binary_cross_entropy_with_logits. The reduction is a number: none 0, mean 1, sum 2."""
    return binary_cross_entropy_with_logits(
        self, target, weight, reduction=("none", "mean", "sum")[reduction], pos_weight=pos_weight
    )
