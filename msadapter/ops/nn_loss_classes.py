"""Losses over classes: negative log likelihood and cross entropy."""

from __future__ import annotations

from .._errors import unsupported
from .._host.accelerator import on_host
from ._declare import _C, composite, op, raw, t
from .nn_loss import _CODES, _MEAN, _NONE, _SUM, check_long, chosen
from .nn_norm import gradients_of, recording


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


def _check_kind(target):
    """RuntimeError unless the target's dtype is one of the two that PyTorch takes for classes."""
    if target.dtype.name not in ("int64", "uint8"):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}")


def _check_target(input, target):
    """Raise PyTorch's error unless the target holds a class for each element of the input (N, C, ...) or (C,)."""
    if input.dim() < 1:
        raise RuntimeError("input tensor should be 1D or 2D")
    if input.dim() <= 2 and target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.dim() == 1:
        _check_kind(target)
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
    if expected != list(target.shape) and input.dim() != 4:
        raise RuntimeError(f"Expected target size {expected}, got {list(target.shape)}")
    _check_kind(target)
    if expected != list(target.shape):
        raise RuntimeError(f"size mismatch (got input: {list(input.shape)} , target: {list(target.shape)}")


def _check_arguments(input, target, weight):
    """Raise PyTorch's error unless the three fit. With further dims, and on the meta device, no bytes are taken for classes."""
    _check_target(input, target)
    _check_weight(input, weight)
    if input.dim() > 2 or target.is_meta:
        check_long(target)


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
    _check_arguments(input, target, weight)
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
            f"{target.dtype.scalar_name}"
        )
    _check_arguments(input, target, weight)
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
        raise unsupported("torch.nn.functional.linear_cross_entropy", "options is not supported")
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
