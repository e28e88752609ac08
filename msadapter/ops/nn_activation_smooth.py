"""Smooth activation functions: SiLU, GELU, Mish, softplus and similar ones."""

from __future__ import annotations

import math

from ._declare import _C, composite, op, raw, t

_APPROXIMATE = {"none": 0, "tanh": 1}


def _silu_second(g, grad, self):
    s = t.sigmoid(self)
    return g * grad * s * (1 - s) * (2 + self * (1 - 2 * s))


op(
    "_silu(Tensor self) -> Tensor",
    ms="SiLU",
    writers={"SiLU": "InplaceSiLU"},
    forms="fi",
    grad={"self": lambda g, self: t._silu_backward(g, self)},
    pointwise=True,
    native="gradient",
)
op(
    "_silu_backward(Tensor grad, Tensor self) -> Tensor",
    ms="SiLUGrad",
    forms="f",
    grad={"grad": lambda g, self: t._silu_backward(g, self), "self": _silu_second},
    pointwise=True,
)


@composite(
    "nn.functional.silu(Tensor input, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
    fuses="silu",
    backward="plain",
)
def silu(input, inplace):
    """x * sigmoid(x)."""
    return t._silu_(input) if inplace else t._silu(input)


_CUBE = 0.044715


def _gelu_second(g, grad, self, approximate):
    if approximate == _APPROXIMATE["none"]:
        density = t.exp(self * self * -0.5) / math.sqrt(2 * math.pi)
        return g * grad * density * (2 - self * self)
    k = math.sqrt(2 / math.pi)
    square = self * self
    th = t.tanh(k * (self + _CUBE * self * square))
    slope, bend = k * (1 + 3 * _CUBE * square), 6 * k * _CUBE * self
    cosh = 1 - th * th
    return g * grad * cosh * (slope + 0.5 * self * (bend - 2 * th * slope * slope))


op(
    "_gelu(Tensor self, int approximate=0) -> Tensor",
    ms="GeluExt",
    forms="fi",
    grad={"self": lambda g, self, approximate: t._gelu_backward(g, self, approximate)},
    pointwise=True,
    native="gradient",
)
op(
    "_gelu_backward(Tensor grad, Tensor self, int approximate) -> Tensor",
    ms="GeluGradExt",
    forms="f",
    grad={"grad": lambda g, self, approximate: t._gelu_backward(g, self, approximate), "self": _gelu_second},
    pointwise=True,
)


@composite(
    "nn.functional.gelu(Tensor input, *, str approximate='none') -> Tensor",
    forms="fo",
    pointwise=True,
    fuses={("approximate", "none"): "gelu", ("approximate", "tanh"): "gelu_tanh"},
    backward="plain",
)
def gelu(input, *, approximate):
    """x times the normal distribution function of x, exactly or (approximate="tanh") approximated with tanh."""
    if approximate not in _APPROXIMATE:
        raise RuntimeError("approximate argument must be either none or tanh.")
    return t._gelu(input, _APPROXIMATE[approximate])


def _mish_second(g, grad, self):
    s, th = t.sigmoid(self), t.tanh(t.softplus(self))
    sech = 1 - th * th
    return g * grad * s * sech * (2 + self * ((1 - s) - 2 * s * th))


op(
    "_mish(Tensor self) -> Tensor",
    ms="MishExt",
    forms="fi",
    grad={"self": lambda g, self: t._mish_backward(g, self)},
    pointwise=True,
)
op(
    "_mish_backward(Tensor grad, Tensor self) -> Tensor",
    ms="MishGradExt",
    forms="f",
    grad={"grad": lambda g, self: t._mish_backward(g, self), "self": _mish_second},
)


@composite(
    "nn.functional.mish(Tensor input, any inplace=False) -> Tensor",
    forms="f",
    pointwise=True,
    backward="plain",
)
def mish(input, inplace):
    """x * tanh(softplus(x))."""
    return t._mish_(input) if inplace else t._mish(input)


def _softplus_second(g, grad, self, beta, threshold):
    s = t.sigmoid(self * beta)
    return t.where(self * beta > threshold, 0, g * grad * beta * s * (1 - s))


op(
    "nn.functional.softplus(Tensor input, Scalar beta=1, Scalar threshold=20) -> Tensor",
    limits={"beta": "floating compute", "threshold": "floating compute"},
    ms="SoftplusExt",
    forms="fo",
    grad={"input": lambda g, input, beta, threshold: t._softplus_backward(g, input, beta, threshold)},
    pointwise=True,
    autocast={"accelerator": "float32"},
    backward="plain",
)
op(
    "_softplus_backward(Tensor grad, Tensor self, Scalar beta, Scalar threshold) -> Tensor",
    ms="SoftplusGradExt",
    forms="f",
    grad={
        "grad": lambda g, self, beta, threshold: t._softplus_backward(g, self, beta, threshold),
        "self": _softplus_second,
    },
)


def _logsigmoid_second(g, grad, self):
    s = t.sigmoid(self)
    return g * grad * s * (s - 1)


@op(
    "nn.functional.logsigmoid(Tensor input) -> Tensor",
    node="LogSigmoidBackward0",
    forms="fo",
    grad={"input": lambda g, input: t._logsigmoid_backward(g, input)},
    pointwise=True,
)
def logsigmoid(input):
    """log(1 / (1 + exp(-x)))."""
    return raw.LogSigmoid(input)[0]


@op(
    "_logsigmoid_backward(Tensor grad, Tensor self) -> Tensor",
    forms="f",
    grad={"grad": lambda g, self: t._logsigmoid_backward(g, self), "self": _logsigmoid_second},
)
def _logsigmoid_backward(grad, self):
    return raw.LogSigmoidGrad(grad, self, self)


@composite(
    "nn.functional.softsign(Tensor input) -> Tensor",
    forms="f",
    pointwise=True,
)
def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


@composite(
    "nn.functional.tanhshrink(Tensor input) -> Tensor",
    forms="f",
    pointwise=True,
)
def tanhshrink(input):
    """x - tanh(x)."""
    return input - t.tanh(input)


def _glu_grad(g, input, dim):
    # The kernel serves where no graph of the gradient is recorded, and the operators below where one is.
    if not _C.is_grad_enabled() and not input.is_npu:
        return raw.GluGrad(g, input, dim)
    half = input.shape[dim] // 2
    gate = t.sigmoid(t.narrow(input, dim, half, half))
    return t.cat([g * gate, t._sigmoid_backward(g * t.narrow(input, dim, 0, half), gate)], dim)


def _glu_of_operators(input, dim):
    half = _checked_half(input, dim)
    return t.narrow(input, dim, 0, half) * t.sigmoid(t.narrow(input, dim, half, half))


def _checked_half(input, dim) -> int:
    if input.dim() == 0:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim % input.dim()} is size {size}"
        )
    return size // 2


@op(
    "nn.functional.glu(Tensor input, int dim=-1) -> Tensor",
    forms="f",
    npu=_glu_of_operators,
    along="dim",
    backward="plain",
    grad={"input": _glu_grad},
)
def glu(input, dim):
    """The first half along `dim` times the sigmoid of the second half."""
    _checked_half(input, dim)
    return raw.GLU(input, dim)
