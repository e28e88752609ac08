"""Elementwise functions of one tensor, and arithmetic with a few more operands such as addcmul and clamp."""

import math

from . import _on_npu
from ._declare import composite, op, raw, t

_LN2 = math.log(2.0)
_LN10 = math.log(10.0)


def conj(x):
    """Return the conjugate of a derivative `x`, by which a gradient is multiplied.

    A real `x` stays as it is.
    """
    if isinstance(x, (int, float, complex)):
        return x.conjugate()
    return t.conj_physical(x) if x.is_complex() else x


def zero_grad(g):
    """Return zeros, the gradient of a step function."""
    return t.zeros_like(g)


def not_implemented(name):
    """Return a gradient function that raises NotImplementedError.

    PyTorch has no derivative of this operator either, although its result requires grad.
    """

    def grad(g):
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return grad


def unary(name, ms, grad, *, promote="float", aliases=(), forms="fmino", dunder=None, **facts):
    """Declare an elementwise function `name(self)` with MindSpore's operator `ms`; `facts` are those of ``op``."""
    op(
        f"{name}(Tensor self) -> Tensor",
        ms=ms,
        promote=promote,
        forms=forms,
        aliases=aliases,
        dunder=dunder,
        grad={"self": grad} if grad else None,
        pointwise=True,
        **facts,
    )


# ---- sign and size
unary(
    "abs",
    "Abs",
    lambda g, self: g * t.sgn(self),
    promote=None,
    aliases=("absolute",),
    dunder="__abs__",
    fuses="abs",
    keeps_zeros=True,
    foreach=True,
    float8="any",
    complex32=True,
)
unary(
    "neg",
    "Neg",
    lambda g: -g,
    promote=None,
    aliases=("negative",),
    dunder="__neg__",
    linear=("self",),
    fuses="neg",
    native="gradient",
    keeps_zeros=True,
    foreach=True,
    complex32=True,
)
unary("sign", "Sign", zero_grad, promote=None, forms="fmio", keeps_zeros=True, foreach=True)


def _sgn_grad(g, self, result):
    if not self.is_complex():
        return t.expand(g.new_zeros([1] * g.ndim), list(g.shape))
    size = self.abs()
    radial = t.real(g * conj(result))
    return t.where(size == 0, t.zeros_like(g), (g - radial * result) / size)


unary("sgn", "Sgn", _sgn_grad, promote=None, forms="fmio", keeps_zeros=True, npu=_on_npu.sgn, complex32=True)
unary(
    "square",
    "Square",
    lambda g, self: g * conj(self) * 2,
    promote=None,
    out_dtype="cast",
    node="PowBackward0",
    keeps_zeros=True,
)


@composite(
    "positive(Tensor self) -> Tensor",
    forms="fm",
    dunder="__pos__",
    pointwise=True,
    keeps_zeros=True,
)
def positive(self):
    """Return `self`. A bool tensor raises RuntimeError."""
    if self.dtype.storage_name == "BoolStorage":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return self


# ---- powers, exponentials and logarithms
unary(
    "reciprocal",
    "Reciprocal",
    lambda g, result: -g * conj(result * result),
    autocast={"accelerator": "float32"},
    fuses="reciprocal",
    foreach=True,
)
unary("sqrt", "Sqrt", lambda g, result: g / (2 * conj(result)), keeps_zeros=True, foreach=True)
unary(
    "rsqrt",
    "Rsqrt",
    lambda g, result: -0.5 * g * conj(t.pow(result, 3)),
    autocast={"accelerator": "float32"},
    foreach=True,
)
unary(
    "exp",
    "Exp",
    lambda g, result: g * conj(result),
    autocast={"accelerator": "float32"},
    fuses="exp",
    foreach=True,
)
unary("exp2", "Exp2", lambda g, result: g * conj(result) * _LN2, aliases=("special.exp2",))
unary(
    "expm1",
    "Expm1",
    lambda g, result: g * (conj(result) + 1),
    aliases=("special.expm1",),
    autocast={"accelerator": "float32"},
    keeps_zeros=True,
    foreach=True,
)
unary(
    "log",
    "Log",
    lambda g, self: g / conj(self),
    autocast={"accelerator": "float32"},
    foreach=True,
)
unary(
    "log2",
    "Log2",
    lambda g, self: g / (conj(self) * _LN2),
    autocast={"accelerator": "float32"},
    foreach=True,
)
unary(
    "log10",
    "Log10",
    lambda g, self: g / (conj(self) * _LN10),
    autocast={"accelerator": "float32"},
    foreach=True,
)
unary(
    "log1p",
    "Log1p",
    lambda g, self: g / (conj(self) + 1),
    aliases=("special.log1p",),
    autocast={"accelerator": "float32"},
    keeps_zeros=True,
    foreach=True,
)

# ---- trigonometric and hyperbolic functions
unary("sin", "Sin", lambda g, self: g * conj(self.cos()), keeps_zeros=True, foreach=True)
unary("cos", "Cos", lambda g, self: -g * conj(self.sin()), foreach=True)
unary(
    "tan",
    "Tan",
    lambda g, result: g * conj(1 + result * result),
    autocast={"accelerator": "float32"},
    keeps_zeros=True,
    foreach=True,
)
unary(
    "asin",
    "AsinExt",
    lambda g, self: g * conj((1 - self * self).rsqrt()),
    aliases=("arcsin",),
    autocast={"accelerator": "float32"},
    keeps_zeros=True,
    foreach=True,
)
unary(
    "acos",
    "AcosExt",
    lambda g, self: -g * conj((1 - self * self).rsqrt()),
    aliases=("arccos",),
    autocast={"accelerator": "float32"},
    foreach=True,
)
unary(
    "atan",
    "AtanExt",
    lambda g, self: g / conj(self * self + 1),
    aliases=("arctan",),
    keeps_zeros=True,
    foreach=True,
)
unary(
    "sinh",
    "Sinh",
    lambda g, self: g * conj(self.cosh()),
    autocast={"accelerator": "float32"},
    keeps_zeros=True,
    foreach=True,
)
unary(
    "cosh",
    "Cosh",
    lambda g, self: g * conj(self.sinh()),
    autocast={"accelerator": "float32"},
    foreach=True,
)
unary(
    "tanh",
    "Tanh",
    lambda g, result: t._tanh_backward(g, result),
    aliases=("nn.functional.tanh",),
    fuses="tanh",
    native="gradient",
    keeps_zeros=True,
    foreach=True,
)
unary(
    "asinh",
    "AsinhExt",
    lambda g, self: g * conj((self * self + 1).rsqrt()),
    aliases=("arcsinh",),
    keeps_zeros=True,
)


def _acosh_grad(g, self):
    if self.is_complex():
        return g * conj((self + 1).rsqrt() * (self - 1).rsqrt())
    return g * (self * self - 1).rsqrt()


unary("acosh", "AcoshExt", _acosh_grad, aliases=("arccosh",))
unary("atanh", "Atanh", lambda g, self: g / conj(1 - self * self), aliases=("arctanh",), keeps_zeros=True)


def _sinc_grad(g, self):
    angle, square = self * math.pi, self * self * math.pi
    return t.where(square == 0, t.zeros_like(g), g * conj((angle * angle.cos() - angle.sin()) / square))


unary("sinc", "Sinc", _sinc_grad, aliases=("special.sinc",))


@op(
    "_tanh_backward(Tensor grad, Tensor output) -> Tensor",
    forms="f",
    grad={
        "grad": lambda g, output: t._tanh_backward(g, output),
        "output": lambda g, grad, output: g * conj(grad * output * -2),
    },
    pointwise=True,
)
def _tanh_backward(grad, output):
    return raw.TanhGrad(output, grad)


unary(
    "sigmoid",
    "Sigmoid",
    lambda g, result: t._sigmoid_backward(g, result),
    aliases=("special.expit", "nn.functional.sigmoid"),
    fuses="sigmoid",
    native="gradient",
    foreach=True,
)


@op(
    "_sigmoid_backward(Tensor grad, Tensor output) -> Tensor",
    forms="f",
    grad={
        "grad": lambda g, output: t._sigmoid_backward(g, output),
        "output": lambda g, grad, output: g * conj(grad * (1 - 2 * output)),
    },
    pointwise=True,
)
def _sigmoid_backward(grad, output):
    return raw.SigmoidGrad(output, grad)


# ---- rounding
unary("ceil", "Ceil", zero_grad, promote=None, keeps_zeros=True, foreach=True)
unary("floor", "Floor", zero_grad, promote=None, keeps_zeros=True, foreach=True)
unary(
    "trunc",
    "Trunc",
    zero_grad,
    promote=None,
    aliases=("fix",),
    keeps_zeros=True,
    foreach=True,
)
unary("frac", "Frac", lambda g: g, promote=None, keeps_zeros=True, foreach=True)
op(
    "round(Tensor self, *, int decimals=0) -> Tensor",
    ms="Round",
    forms="fmino",
    aliases=("special.round",),
    grad={"self": zero_grad},
    pointwise=True,
    keeps_zeros=True,
    foreach=True,
)

# ---- angles
_DEGREE = math.pi / 180


@composite(
    "deg2rad(Tensor self) -> Tensor",
    out_dtype="cast",
    forms="fmino",
    pointwise=True,
    keeps_zeros=True,
)
def deg2rad(self):
    """Convert degrees to radians."""
    return self * _DEGREE


@composite(
    "rad2deg(Tensor self) -> Tensor",
    out_dtype="cast",
    forms="fmino",
    pointwise=True,
    keeps_zeros=True,
)
def rad2deg(self):
    """Convert radians to degrees."""
    return self * (1 / _DEGREE)


# ---- fused forms
def _number(value, like):
    """Return a Python number, rounded to the dtype of ``like`` if that has 16 bits."""
    narrow = like.is_floating_point() and like.dtype.itemsize == 2
    return t.scalar_tensor(value, dtype=like.dtype) if narrow else value


op(
    "addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    older=("self value tensor1 tensor2",),
    limits={"value": "compute"},
    ms="AddcmulExt",
    promote="default",
    forms="fmio",
    grad={
        "self": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * conj(tensor2 * value),
        "tensor2": lambda g, tensor1, value: g * conj(tensor1 * value),
    },
    autocast={"accelerator": "widest"},
    foreach=True,
    complex32=True,
)
op(
    "addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
    older=("self value tensor1 tensor2",),
    limits={"value": "floating compute"},
    ms="AddcdivExt",
    promote="default",
    forms="fmio",
    grad={
        "self": lambda g: g,
        "tensor1": lambda g, tensor2, value: g * conj(_number(value, tensor2) / tensor2),
        "tensor2": lambda g, tensor1, tensor2, value: -g * conj(value * tensor1 / (tensor2 * tensor2)),
    },
    autocast={"accelerator": "widest"},
    foreach=True,
)
op(
    "lerp(Tensor self, Tensor end, TensorOrScalar weight) -> Tensor",
    out_dtype="cast",
    limits={"weight": "floating compute"},
    nodes={"weight tensor": "LerpBackward1"},
    ms="Lerp",
    forms="fmio",
    grad={
        "self": lambda g, weight: g * conj(1 - weight),
        "end": lambda g, weight: g * conj(weight),
        "weight": lambda g, self, end: g * conj(end - self),
    },
    pointwise=True,
    foreach=True,
)

# ---- limits
op(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    ms="NanToNum",
    forms="fmino",
    grad={"self": lambda g, self: g * t.isfinite(self)},
    pointwise=True,
    keeps_zeros=True,
)


def _inside(self, min, max):
    """Return where clamp does not change its input."""
    if min is None:
        return self <= max
    if max is None:
        return self >= min
    return (self >= min) & (self <= max)


def _where(condition, g):
    """Return `g` where the condition is true, and zero elsewhere, whatever `g` is there."""
    return t.where(condition, g, 0.0)


def _clamp_min_grad(g, self, min, max):
    below = self < min
    return _where(below if max is None else below & (min < max), g)


def _clamp_max_grad(g, self, min, max):
    above = self > max
    return _where(above if min is None else above | (max < min), g)


@op(
    "clamp(Tensor self, TensorOrScalar? min=None, TensorOrScalar? max=None) -> Tensor",
    limits={"min": "element", "max": "element"},
    nodes={"min tensor": "ClampBackward0", "max tensor": "ClampBackward0"},
    promote="default",
    forms="fmino",
    aliases=("clip",),
    grad={
        "self": lambda g, self, min, max: _where(_inside(self, min, max), g),
        "min": _clamp_min_grad,
        "max": _clamp_max_grad,
    },
    pointwise=True,
    node="ClampBackward1",
)
def clamp(self, min, max):
    """Limit every element to [min, max]. NaN stays NaN. If min > max, the result is max."""
    return raw.ClampTensor(self, min, max)


@op(
    "clamp_min(Tensor self, TensorOrScalar min) -> Tensor",
    limits={"min": "element"},
    nodes={"min tensor": "ClampMinBackward1"},
    promote="default",
    forms="fmino",
    grad={
        "self": lambda g, self, min: _where(self >= min, g),
        "min": lambda g, self, min: _where(self < min, g),
    },
    pointwise=True,
    foreach=True,
)
def clamp_min(self, min):
    """Limit every element from below."""
    return raw.ClampTensor(self, min, None)


@op(
    "clamp_max(Tensor self, TensorOrScalar max) -> Tensor",
    limits={"max": "element"},
    nodes={"max tensor": "ClampMaxBackward1"},
    promote="default",
    forms="fmino",
    grad={
        "self": lambda g, self, max: _where(self <= max, g),
        "max": lambda g, self, max: _where(self > max, g),
    },
    pointwise=True,
    foreach=True,
)
def clamp_max(self, max):
    """Limit every element from above."""
    return raw.ClampTensor(self, None, max)


# ---- choosing
op(
    "_where(Tensor condition, TensorOrScalar input, TensorOrScalar other) -> Tensor",
    ms="Select",
    promote="default",
    promote_args=("input", "other"),
    forms="f",
    grad={
        "input": lambda g, condition: t._where(condition, g, 0),
        "other": lambda g, condition: t._where(condition, 0, g),
    },
)


@composite(
    "where(Tensor condition, TensorOrScalar? input=None, TensorOrScalar? other=None) -> any",
    forms="fo",
    pointwise=True,
    native="call",
)
def where(condition, input, other):
    """Return `input` where the condition is true, and `other` elsewhere.

    Without them, return the indices of the true elements, one tensor for each dim.
    """
    if input is None and other is None:
        return t.nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where() received an invalid combination of arguments: input and other go together")
    return t._where(condition, input, other)


@composite(
    "Tensor.where(Tensor self, Tensor condition, TensorOrScalar other) -> Tensor",
    native="call",
    short=False,
)
def _method_where(self, condition, other):
    """Return this tensor where the condition is true, and `other` elsewhere."""
    return t._where(condition, self, other)


op(
    "masked_fill(Tensor self, Tensor mask, TensorOrScalar value) -> Tensor",
    limits={"value": "element"},
    ms="MaskedFill",
    writers={"MaskedFill": "InplaceMaskedFillTensor"},
    forms="fmi",
    grad={"self": lambda g, mask: g.masked_fill(mask, 0), "value": lambda g, mask: t.where(mask, g, 0).sum()},
    pointwise=True,
    writes_expanded="deprecated",
)
