"""Activation functions that are piecewise, and exponential linear units. The smooth ones are in nn_activation_smooth.

The gradient of each function is an operator `_x_backward(grad, ...)`, which can be differentiated itself. It
is linear in `grad`, so this derivative is the same operator again. Functions with curvature also have a
derivative with respect to the input.
"""

import math

from .._values.limits import finfo
from . import _on_npu
from ._declare import composite, op, raw, t

# ---- relu and the piecewise linear ones
op(
    "relu(Tensor self) -> Tensor",
    ms="ReLU",
    writers={"ReLU": "InplaceReLU"},
    forms="fmin",
    grad={"self": lambda g, result: t._relu_backward(g, result)},
    pointwise=True,
    fuses="relu",
    native="gradient",
    keeps_zeros=True,
)
op(
    "_relu_backward(Tensor grad, Tensor output) -> Tensor",
    ms="ReluGrad",
    forms="f",
    grad={"grad": lambda g, output: t._relu_backward(g, output)},
    pointwise=True,
)


@composite(
    "nn.functional.relu(Tensor input, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
    fuses="relu",
    short=False,
)
def relu(input, inplace):
    """max(0, x)."""
    return t.relu_(input) if inplace else t.relu(input)


op(
    "_threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    limits={"threshold": "compute", "value": "element"},
    ms="Threshold",
    forms="fi",
    grad={"self": lambda g, self, threshold: t._threshold_backward(g, self, threshold)},
    pointwise=True,
    writes_expanded=True,
)
op(
    "_threshold_backward(Tensor grad, Tensor self, Scalar threshold) -> Tensor",
    ms="ThresholdGrad",
    forms="f",
    grad={"grad": lambda g, self, threshold: t._threshold_backward(g, self, threshold)},
)


@composite(
    "threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor",
    out_dtype="cast",
    forms="fo",
    pointwise=True,
    short=False,
)
def torch_threshold(self, threshold, value):
    """x where x > threshold, and `value` elsewhere."""
    return t._threshold(self, threshold, value)


@composite(
    "nn.functional.threshold(Tensor input, Scalar threshold, Scalar value, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
)
def threshold(input, threshold, value, inplace):
    """x where x > threshold, and `value` elsewhere."""
    return (t._threshold_ if inplace else t._threshold)(input, threshold, value)


op(
    "_hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor",
    limits={"min_val": "element", "max_val": "element"},
    ms="Hardtanh",
    writers={"Hardtanh": "InplaceHardtanh"},
    forms="fi",
    grad={"self": lambda g, self, min_val, max_val: t._hardtanh_backward(g, self, min_val, max_val)},
    pointwise=True,
)
op(
    "_hardtanh_backward(Tensor grad, Tensor self, Scalar min_val, Scalar max_val) -> Tensor",
    ms="HardtanhGrad",
    forms="f",
    grad={"grad": lambda g, self, min_val, max_val: t._hardtanh_backward(g, self, min_val, max_val)},
)


@composite(
    "nn.functional.hardtanh(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
    backward="plain",
)
def hardtanh(input, min_val, max_val, inplace):
    """x limited to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return (t._hardtanh_ if inplace else t._hardtanh)(input, min_val, max_val)


@composite(
    "nn.functional.relu6(Tensor input, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
)
def relu6(input, inplace):
    """x limited to [0, 6]."""
    return (t._hardtanh_ if inplace else t._hardtanh)(input, 0, 6)


op(
    "_leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor",
    limits={"negative_slope": "floating compute"},
    ms="LeakyReLUExt",
    forms="fi",
    grad={"self": lambda g, self, negative_slope: t._leaky_relu_backward(g, self, negative_slope, False)},
    pointwise=True,
)
op(
    "_leaky_relu_backward(Tensor grad, Tensor self, Scalar negative_slope, bool is_result) -> Tensor",
    ms="LeakyReLUGradExt",
    forms="f",
    grad={
        "grad": lambda g, self, negative_slope, is_result: t._leaky_relu_backward(
            g, self, negative_slope, is_result
        )
    },
)


@composite(
    "nn.functional.leaky_relu(Tensor input, Scalar negative_slope=0.01, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
)
def leaky_relu(input, negative_slope, inplace):
    """x where x > 0, and `negative_slope * x` elsewhere."""
    return leaky_relu_(input, negative_slope) if inplace else t._leaky_relu(input, negative_slope)


@composite(
    "nn.functional.rrelu(Tensor input, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
    "bool training=False, any inplace=False) -> Tensor",
    forms="f",
    random="other",
)
def rrelu(input, lower, upper, training, inplace):
    """leaky_relu with a random slope from [lower, upper] for each element in training, else with their mean."""
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    # As in PyTorch, random numbers are drawn only for elements that use them, in double precision.
    falls = input <= 0
    drawn = input.new_empty([int(falls.sum().item())]).double().uniform_(lower, upper).to(input.dtype)
    slope = t.masked_scatter(t.ones_like(input, requires_grad=False), falls, drawn)
    result = t.where(falls, input * slope, input)
    return input.copy_(result) if inplace else result


op(
    "_prelu(Tensor self, Tensor weight) -> Tensor",
    node="PreluKernelBackward0",
    ms="PReLU",
    forms="f",
    grad={
        "self": lambda g, self, weight: t.where(self > 0, g, g * weight),
        "weight": lambda g, self: t.where(self > 0, 0, g * self),
    },
)


@composite(
    "nn.functional.prelu(Tensor input, Tensor weight) -> Tensor",
    forms="f",
    aliases=("prelu", "Tensor.prelu"),
    autocast="lower",
)
def prelu(input, weight):
    """x where x > 0, and `weight * x` elsewhere.

    There is one weight, or one for each channel (dimension 1).
    """
    if weight.dtype != input.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype} and {weight.dtype}")
    if weight.numel() == 1:
        return t._prelu(input, weight.reshape(()))
    if weight.dim() != 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}"
        )
    channels = input.shape[1] if input.dim() >= 2 else 1
    if input.dim() == 0 or weight.numel() != channels:
        raise RuntimeError(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{weight.numel()} and channel size = {channels}."
        )
    return t._prelu(input, weight.reshape([1, channels] + [1] * (input.dim() - 2)))


op(
    "nn.functional.hardshrink(Tensor input, float lambd=0.5) -> Tensor",
    limits={"lambd": "floating element"},
    ms="HShrink",
    forms="fo",
    aliases=("hardshrink", "Tensor.hardshrink"),
    grad={"input": lambda g, input, lambd: t._hardshrink_backward(g, input, lambd)},
    pointwise=True,
    backward="plain",
)
op(
    "_hardshrink_backward(Tensor grad, Tensor self, float lambd) -> Tensor",
    ms="HShrinkGrad",
    forms="f",
    grad={"grad": lambda g, self, lambd: t._hardshrink_backward(g, self, lambd)},
)
op(
    "_softshrink(Tensor self, float lambd=0.5) -> Tensor",
    ms="SoftShrink",
    forms="f",
    grad={"self": lambda g, self, lambd: t._softshrink_backward(g, self, lambd)},
    pointwise=True,
)
op(
    "_softshrink_backward(Tensor grad, Tensor self, float lambd) -> Tensor",
    ms="SoftShrinkGrad",
    forms="f",
    grad={"grad": lambda g, self, lambd: t._softshrink_backward(g, self, lambd)},
)


@composite(
    "nn.functional.softshrink(Tensor input, float lambd=0.5) -> Tensor",
    forms="fo",
    pointwise=True,
    backward="plain",
)
def softshrink(input, lambd):
    """x moved towards 0 by `lambd`, and 0 where |x| <= lambd."""
    name = input.dtype.scalar_name
    if not input.is_floating_point():
        raise NotImplementedError(f"\"softshrink_check\" not implemented for '{name}'")
    largest = finfo(input.dtype).max
    if not 0 <= lambd <= largest:
        raise RuntimeError(
            f"lambda must be in range [0, {largest:g}] for input dtype {name}, but found {lambd:g}"
        )
    return t._softshrink(input, lambd)


op(
    "_hardsigmoid(Tensor self) -> Tensor",
    ms="HSigmoid",
    forms="fi",
    grad={"self": lambda g, self: t._hardsigmoid_backward(g, self)},
    pointwise=True,
)
op(
    "_hardsigmoid_backward(Tensor grad, Tensor self) -> Tensor",
    ms="HSigmoidGrad",
    forms="f",
    grad={"grad": lambda g, self: t._hardsigmoid_backward(g, self)},
)


@composite(
    "nn.functional.hardsigmoid(Tensor input, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
    backward="plain",
)
def hardsigmoid(input, inplace):
    """relu6(x + 3) / 6."""
    return t._hardsigmoid_(input) if inplace else t._hardsigmoid(input)


op(
    "_hardswish(Tensor self) -> Tensor",
    ms="HSwish",
    forms="fi",
    grad={"self": lambda g, self: t._hardswish_backward(g, self)},
    pointwise=True,
)
op(
    "_hardswish_backward(Tensor grad, Tensor self) -> Tensor",
    ms="HSwishGrad",
    forms="f",
    grad={
        "grad": lambda g, self: t._hardswish_backward(g, self),
        "self": lambda g, grad, self: g * grad * ((self > -3) & (self < 3)) / 3,
    },
)


@composite(
    "nn.functional.hardswish(Tensor input, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
    backward="plain",
)
def hardswish(input, inplace):
    """x * relu6(x + 3) / 6."""
    return t._hardswish_(input) if inplace else t._hardswish(input)


# ---- exponential linear units: max(0, scale x) + min(0, alpha scale (exp(input_scale x) - 1))
# MindSpore has operators for elu (both scales are 1) and for selu (its two constants). The general one is for celu.
def _elu_second(g, grad, x, alpha, is_result, scale, input_scale):
    if is_result:
        return t.where(x <= 0, g * grad * input_scale, 0)
    return t.where(x <= 0, g * grad * (alpha * scale * input_scale**2) * t.exp(x * input_scale), 0)


op(
    "_elu(Tensor self, float alpha=1) -> Tensor",
    limits={"alpha": "floating compute"},
    ms="EluExt",
    writers={"EluExt": "InplaceElu"},
    forms="fi",
    grad={"self": lambda g, self, alpha: t._elu_backward(g, self, alpha, False)},
    pointwise=True,
)
op(
    "_elu_backward(Tensor grad, Tensor x, float alpha, bool is_result) -> Tensor",
    ms="EluGradExt",
    forms="f",
    grad={
        "grad": lambda g, x, alpha, is_result: t._elu_backward(g, x, alpha, is_result),
        "x": lambda g, grad, x, alpha, is_result: _elu_second(g, grad, x, alpha, is_result, 1.0, 1.0),
    },
)
op(
    "_selu(Tensor self) -> Tensor",
    node="EluBackward0",
    ms="SeLUExt",
    forms="fi",
    grad={"self": lambda g, self: t._scaled_elu_backward(g, self, _SELU_ALPHA, False, _SELU_SCALE, 1.0)},
    pointwise=True,
)
op(
    "_scaled_elu(Tensor self, float alpha, float scale, float input_scale) -> Tensor",
    limits={"alpha": "floating compute"},
    node="CeluBackward0",
    ms="ScaledElu",
    npu=_on_npu.scaled_elu,
    forms="fi",
    grad={
        "self": lambda g, self, alpha, scale, input_scale: t._scaled_elu_backward(
            g, self, alpha, False, scale, input_scale
        )
    },
    pointwise=True,
)
op(
    "_scaled_elu_backward(Tensor grad, Tensor x, float alpha, bool is_result, float scale, float input_scale)"
    " -> Tensor",
    ms="ScaledEluGrad",
    npu=_on_npu.scaled_elu_backward,
    forms="f",
    grad={
        "grad": lambda g, x, alpha, is_result, scale, input_scale: t._scaled_elu_backward(
            g, x, alpha, is_result, scale, input_scale
        ),
        "x": lambda g, grad, x, alpha, is_result, scale, input_scale: _elu_second(
            g, grad, x, alpha, is_result, scale, input_scale
        ),
    },
)
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@composite(
    "nn.functional.elu(Tensor input, float alpha=1.0, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
)
def elu(input, alpha, inplace):
    """x where x > 0, and `alpha * (exp(x) - 1)` elsewhere."""
    return elu_(input, alpha) if inplace else t._elu(input, alpha)


@composite(
    "aten.elu(Tensor self, float alpha=1.0, float scale=1.0, float input_scale=1.0) -> Tensor",
    forms="fo",
    short=False,
    pointwise=True,
)
def scaled_elu(self, alpha, scale, input_scale):
    """`scale * x` where x > 0, and `scale * alpha * (exp(input_scale * x) - 1)` elsewhere."""
    plain = scale == input_scale == 1
    return t._elu(self, alpha) if plain else t._scaled_elu(self, alpha, scale, input_scale)


@composite(
    "nn.functional.selu(Tensor input, any inplace=False) -> Tensor",
    forms="f",
    aliases=("selu",),
    pointwise=True,
)
def selu(input, inplace):
    """elu with constants that keep the mean and variance of activations close to 0 and 1."""
    return (t._selu_ if inplace else t._selu)(input)


@composite(
    "nn.functional.celu(Tensor input, float alpha=1.0, any inplace=False) -> Tensor",
    forms="f",
    aliases=("celu",),
    pointwise=True,
)
def celu(input, alpha, inplace):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)), which is continuously differentiable for every alpha."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    if not inplace:
        return t._scaled_elu(input, alpha, 1.0, 1.0 / alpha)
    return _without_negative_slope(t._scaled_elu_(input, alpha, 1.0, 1.0 / alpha), alpha, "elu")


# ---- in-place functions that exist beside the `inplace` argument
@op(
    "_refuse_backward(Tensor self, str name) -> Tensor",
    forms="fi",
    grad={"self": lambda g, name: _refuse_negative_slope(name)},
    node="NegativeSlopeBackward0",
)
def _refuse_backward(self, name):
    """Return a copy whose gradient is an error."""
    return raw.Clone(self)


def _refuse_negative_slope(name):
    raise RuntimeError(
        f"In-place {name} backward calculation is triggered with a negative slope which is not supported. This is caused by "
        "calling in-place forward function with a negative slope, please call out-of-place version instead."
    )


def _without_negative_slope(result, slope, name):
    """Return the result of an in-place function. Its gradient is an error for a negative slope, as in PyTorch."""
    return t._refuse_backward_(result, name) if slope < 0 and result.requires_grad else result


@composite(
    "nn.functional.elu_(Tensor input, float alpha=1.0, float scale=1.0, float input_scale=1.0) -> Tensor",
    forms="f",
)
def elu_(input, alpha, scale, input_scale):
    """`torch.ops.aten.elu`, in place."""
    plain = scale == input_scale == 1
    result = t._elu_(input, alpha) if plain else t._scaled_elu_(input, alpha, scale, input_scale)
    return _without_negative_slope(result, alpha, "elu")


@composite("nn.functional.selu_(Tensor input) -> Tensor", forms="f", aliases=("selu_",))
def selu_(input):
    """`selu`, in place."""
    return t._selu_(input)


@composite("nn.functional.celu_(Tensor input, float alpha=1.0) -> Tensor", forms="f", aliases=("celu_",))
def celu_(input, alpha):
    """`celu`, in place."""
    return celu(input, alpha, True)


@composite(
    "nn.functional.relu_(Tensor input) -> Tensor",
    forms="f",
    short=False,
)
def relu_(input):
    """`relu`, in place."""
    return t.relu_(input)


@composite("nn.functional.leaky_relu_(Tensor input, Scalar negative_slope=0.01) -> Tensor", forms="f")
def leaky_relu_(input, negative_slope):
    """`leaky_relu`, in place."""
    return _without_negative_slope(t._leaky_relu_(input, negative_slope), negative_slope, "leakyReLu")


@composite(
    "nn.functional.hardtanh_(Tensor input, Scalar min_val=-1.0, Scalar max_val=1.0) -> Tensor", forms="f"
)
def hardtanh_(input, min_val, max_val):
    """`hardtanh`, in place."""
    return hardtanh(input, min_val, max_val, True)


@composite(
    "nn.functional.threshold_(Tensor input, Scalar threshold, Scalar value) -> Tensor",
    forms="f",
    aliases=("threshold_",),
)
def threshold_(input, threshold, value):
    """`threshold`, in place."""
    return t._threshold_(input, threshold, value)
