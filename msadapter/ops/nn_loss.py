"""Loss functions. Likelihoods have kernels, distances are formulas."""

from __future__ import annotations

import warnings

from .._host.accelerator import on_host
from ._declare import _C, Refused, composite, op, raw, t
from .nn_norm import gradients_of, recording

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
    return reduced((input - target).square(), reduction)


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
    return reduced((-input * target).exp().log1p(), reduction)


def _scaled_loss_grad(slope, weight, reduction):
    """Return the gradient of a reduced loss, given that of its elements. It is rounded in PyTorch's order."""
    if weight is not None:
        slope = slope * weight
    return slope / max(slope.numel(), 1) if reduction == "mean" else slope


def _bce_grad(g, input, target, weight, reduction):
    return _scaled_loss_grad(g * (input - target) / ((1 - input) * input).clamp_min(1e-12), weight, reduction)


def _bce_target_grad(g, input, weight, reduction):
    return _scaled_loss_grad(-t.logit(input) * g, weight, reduction)


@op(
    "_bce(Tensor input, Tensor target, Tensor? weight, str reduction) -> Tensor",
    forms="f",
    grad={"input": _bce_grad, "target": _bce_target_grad},
)
def _bce(input, target, weight, reduction):
    loss = _bce_elements(input, target)
    return reduced(loss if weight is None else loss * weight, reduction)


def _bce_elements(input, target):
    # As in PyTorch, the logarithm is at least -100, so that a wrong certain prediction costs 100 instead of
    # infinity.
    low, high = (
        raw.ClampScalar(raw.Log(input), -100.0, None),
        raw.ClampScalar(raw.Log1p(raw.Neg(input)), -100.0, None),
    )
    return raw.SubExt(raw.Mul(raw.SubExt(target, _ones_like(target), 1), high), raw.Mul(target, low), 1)


def _ones_like(x):
    return t.ones_like(x)


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
    if input.numel() and not bool(((input >= 0) & (input <= 1)).all()):
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
    loss = (1 - target) * input - log_sigmoid
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


# ---- negative log likelihood and cross entropy
def _nll_reference(x, target, weight, reduction, ignore_index):
    """nll_loss with operators of the table. Gradients of gradients use it."""
    dim = 1 if x.dim() > 1 else 0
    kept = target != ignore_index
    index = t.where(kept, target, t.zeros_like(target))
    picked = -t.gather(x, dim, index.unsqueeze(dim)).squeeze(dim)
    scale = kept.to(x.dtype) if weight is None else weight[index] * kept
    loss = t.where(kept, picked, t.zeros_like(picked)) * scale
    return loss if reduction == _NONE else loss.sum() if reduction == _SUM else loss.sum() / scale.sum()


def _equal_weights(input):
    """Return a weight of one for each class. MindSpore's operators on an NPU take no absent weight."""
    return t.ones([input.shape[0 if input.dim() == 1 else 1]], dtype=input.dtype, device=input.device)


def _nll_grad(gs, self, target, weight, reduction, ignore_index, result1, needs):
    g = gs[0]
    if g is None:
        return (None,)
    if recording():
        return gradients_of(
            lambda x: _nll_reference(x, target, weight, reduction, ignore_index), (self,), needs, g
        )
    if weight is None and _C.in_device_memory(self):
        weight = _equal_weights(self)
    if self.dim() <= 2:
        return (raw.NLLLossGrad(self, g, target, weight, result1, reduction, ignore_index),)
    return (raw.NLLLoss2dGrad(g, self, target, weight, reduction, ignore_index, result1),)


@op(
    "_nll_loss(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index) -> (Tensor, Tensor)",
    forms="f",
    grad={("self",): _nll_grad},
)
def _nll_loss(self, target, weight, reduction, ignore_index):
    if weight is None and _C.in_device_memory(self):
        weight = _equal_weights(self)
    return (raw.NLLLoss if self.dim() <= 2 else raw.NLLLoss2d)(self, target, weight, reduction, ignore_index)


def _check_weight(input, weight):
    """RuntimeError unless there is a weight for each class."""
    if weight is None or input.dim() < 1:
        return
    classes = input.shape[1 if input.dim() > 1 else 0]
    if weight.dim() == 1 and weight.numel() == classes:
        return
    if input.dim() > 2:
        raise RuntimeError("weight tensor should be defined either for all or no classes")
    raise RuntimeError(
        f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of shape: "
        f"{list(weight.shape)}"
    )


def _check_target(input, target):
    """Raise PyTorch's error unless the target holds a class for each element of the input (N, C, ...) or (C,)."""
    if input.dim() < 1:
        raise RuntimeError("input tensor should be 1D or 2D")
    if input.dim() <= 2 and target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.dim() == 1:
        if target.numel() != 1:
            raise ValueError(
                f"For 1D input, 1D target must have size 1, but got target size: {target.numel()}"
            )
        return
    if target.dim() < 1 and input.shape[0] == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if target.dim() < 1 or input.shape[0] != target.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({input.shape[0]}) to match target batch_size "
            f"({target.shape[0] if target.dim() else 0})."
        )
    if input.dim() == 4 and target.dim() != 3:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {target.dim()}"
        )
    expected = [input.shape[0], *input.shape[2:]]
    if expected != list(target.shape):
        if input.dim() == 4:
            raise RuntimeError(
                f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}"
            )
        raise RuntimeError(f"Expected target size {expected}, got {list(target.shape)}")


@composite(
    "nn.functional.nll_loss(Tensor input, Tensor target, Tensor? weight=None, any size_average=None, int ignore_index=-100, "
    "any reduce=None, str reduction='mean') -> Tensor",
    forms="f",
    autocast="float32",
)
def nll_loss(input, target, weight, size_average, ignore_index, reduce, reduction):
    """-weight[target] * input[target] for log probabilities (N, C, ...) and classes (N, ...).

    The mean is weighted by weight[target]. Elements with the class ``ignore_index`` do not count.
    """
    reduction = chosen(size_average, reduce, reduction)
    if input.dim() < 1:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    _check_target(input, target)
    _check_weight(input, weight)
    return t._nll_loss(input, target, weight, _CODES[reduction], ignore_index)[0]


def _cross_entropy_grad(gs, self, target, weight, reduction, ignore_index, label_smoothing, result1, needs):
    g = gs[0]
    if g is None:
        return (None,)
    if recording():
        return gradients_of(
            lambda x: _smoothed_reference(x, target, weight, reduction, ignore_index, label_smoothing),
            (self,),
            needs,
            g,
        )
    return (
        raw.CrossEntropyLossGrad(
            g, result1, target, weight, None, None, reduction, ignore_index, label_smoothing, 0.0
        ),
    )


def _smoothed_reference(x, target, weight, reduction, ignore_index, smoothing):
    log_prob = t.log_softmax(x, 1)
    loss = _nll_reference(log_prob, target, weight, reduction, ignore_index)
    if smoothing == 0:
        return loss
    kept = target != ignore_index
    spread = -(log_prob if weight is None else log_prob * weight).sum(1) * kept
    if reduction != _NONE:
        spread = spread.sum()
    if reduction == _MEAN:
        scale = (
            kept.to(x.dtype) if weight is None else weight[t.where(kept, target, t.zeros_like(target))] * kept
        )
        spread = spread / scale.sum()
    return (1 - smoothing) * loss + spread * (smoothing / x.shape[1])


@op(
    "_cross_entropy(Tensor self, Tensor target, Tensor? weight, int reduction, int ignore_index, float label_smoothing) "
    "-> (Tensor, Tensor)",
    forms="f",
    grad={("self",): _cross_entropy_grad},
    native=("body", "gradient"),
)
def _cross_entropy(self, target, weight, reduction, ignore_index, label_smoothing):
    loss, log_prob = tuple(
        raw.CrossEntropyLoss(self, target, weight, reduction, ignore_index, label_smoothing, 0.0, False)
    )[:2]
    if reduction != _NONE and loss.dim():  # one number in a dim of its own, on an NPU
        loss = loss.reshape([])
    return loss, log_prob


def _with_probabilities(input, target, weight, reduction, smoothing):
    dim = 1 if input.dim() > 1 else 0
    classes = input.shape[dim]
    if smoothing > 0:
        target = target * (1 - smoothing) + smoothing / classes
    loss = -(t.log_softmax(input, dim) * target)
    if weight is not None:
        loss = loss * weight.view([-1] + [1] * (input.dim() - 1 - dim))
    if reduction == "none":
        return loss.sum(dim)
    total = loss.sum()
    if reduction == "sum":
        return total
    count = input.numel() // classes if classes else 0
    return total / count if count else total * float("nan")


@composite(
    "nn.functional.cross_entropy(Tensor input, Tensor target, Tensor? weight=None, any size_average=None, "
    "int ignore_index=-100, any reduce=None, str reduction='mean', float label_smoothing=0.0) -> Tensor",
    forms="f",
    autocast="float32",
    native="call",
)
def cross_entropy(input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing):
    """Cross entropy of logits (N, C, ...) or (C).

    The target holds class indices (N, ...), or probabilities with the shape of `input`. Elements with the
    class ``ignore_index`` do not count.
    """
    reduction = chosen(size_average, reduce, reduction)
    if label_smoothing > 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    if not label_smoothing > 0:  # as in PyTorch, a negative number and NaN smooth nothing
        label_smoothing = 0.0
    if input.shape == target.shape and target.is_floating_point():
        dim = 1 if input.dim() > 1 else 0
        if weight is not None and (weight.dim() != 1 or weight.numel() != input.shape[dim]):
            raise RuntimeError(
                f"cross_entropy: weight tensor should be defined either for all {input.shape[dim]} classes or no classes but "
                f"got weight tensor of shape: {list(weight.shape)}"
            )
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _with_probabilities(input, target, weight, reduction, label_smoothing)
    if input.shape == target.shape and input.dim() > 0:
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{target.dtype.storage_name.removesuffix('Storage')}"
        )
    if target.is_floating_point():
        raise RuntimeError(
            f"expected target dtype to be Long or Byte, but got {target.dtype.storage_name.removesuffix('Storage')}"
        )
    _check_target(input, target)
    _check_weight(input, weight)
    shape = tuple(target.shape) if input.dim() > 1 else ()
    if input.dim() == 1:
        input, target = input.unsqueeze(0), target.reshape(1)
    elif input.dim() > 2 and input.dtype.itemsize == 2 and label_smoothing == 0:
        return t._nll_loss(t.log_softmax(input, 1), target, weight, _CODES[reduction], ignore_index)[0]
    elif input.dim() > 2:
        input = input.movedim(1, -1).reshape(-1, input.shape[1])
        target = target.reshape(-1)
    options = (weight, _CODES[reduction], ignore_index, label_smoothing)
    if label_smoothing and _C.device_tag(input) != 0 and not on_host():
        loss = _smoothed_reference(input, target, *options)  # MindSpore's kernel has no gradient on an NPU
    else:
        loss = t._cross_entropy(input, target, *options)[0]
    return loss.reshape(shape) if reduction == "none" else loss


@composite(
    "nn.functional.linear_cross_entropy(Tensor input, Tensor linear_weight, Tensor target, *, Tensor? linear_bias=None, "
    "Tensor? weight=None, str reduction='mean', int? ignore_index=None, float label_smoothing=0.0, any options=None) -> Tensor",
    forms="f",
)
def linear_cross_entropy(
    input, linear_weight, target, *, linear_bias, weight, reduction, ignore_index, label_smoothing, options
):
    """Return cross_entropy(linear(input, linear_weight, linear_bias), target).

    linear_weight has the shape (C, ..., in_features).
    """
    if options is not None:
        raise NotImplementedError(
            "torch.nn.functional.linear_cross_entropy: options is not supported (docs/coverage.md)"
        )
    if not 1 <= input.dim() <= 2:
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}"
        )
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    logits = t.linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1))
    logits = logits.reshape(*input.shape[:-1], *linear_weight.shape[:-1])
    return t.cross_entropy(
        logits,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
