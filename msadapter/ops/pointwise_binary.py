"""Elementwise functions of two operands: arithmetic, powers, extrema and bit operations."""

import cmath
import math

from . import _on_npu
from ._declare import composite, op, raw, t
from .pointwise import conj, not_implemented, zero_grad


def binary(
    name,
    ms,
    grad,
    *,
    promote="default",
    forms="fmio",
    aliases=(),
    dunder=None,
    left="Tensor",
    right="TensorOrScalar",
    other="other",
    **facts,
):
    """Declare an elementwise function `name(self, other)` with MindSpore's operator `ms`.

    `other` is the name of the second argument; `facts` are those of ``op``.
    """
    op(
        f"{name}({left} self, {right} {other}) -> Tensor",
        ms=ms,
        promote=promote,
        forms=forms,
        aliases=aliases,
        dunder=dunder,
        grad=grad,
        **facts,
    )


# ---- arithmetic
op(
    "add(TensorOrScalar self, TensorOrScalar other, *, Scalar alpha=1) -> Tensor",
    older=("self alpha other",),
    ms="AddExt",
    numbers={"other": "AddScalar"},
    writers={"AddExt": "InplaceAddExt", "AddScalar": "InplaceAddsExt"},
    promote="default",
    forms="fmio",
    dunder="__add__",
    grad={"self": lambda g: g, "other": lambda g, alpha: g if alpha == 1 else g * conj(alpha)},
    linear="jointly",
    fuses="add",
    native="gradient",
    numbers_alone=True,
    foreach=True,
    complex32=True,
)
op(
    "sub(TensorOrScalar self, TensorOrScalar other, *, Scalar alpha=1) -> Tensor",
    older=("self alpha other",),
    ms="SubExt",
    numbers={"other": "SubScalar"},
    writers={"SubExt": "InplaceSubExt", "SubScalar": "InplaceSubScalar"},
    promote="default",
    forms="fmio",
    dunder="__sub__",
    aliases=("subtract",),
    grad={"self": lambda g: g, "other": lambda g, alpha: -g if alpha == 1 else g * conj(-alpha)},
    linear="jointly",
    fuses="sub",
    native="gradient",
    refuses_bool=True,
    numbers_alone=True,
    foreach=True,
    complex32=True,
)


@op(
    "rsub(Tensor self, TensorOrScalar other, *, Scalar alpha=1) -> Tensor",
    promote="default",
    forms="f",
    grad={"self": lambda g, alpha: -g if alpha == 1 else g * conj(-alpha), "other": lambda g: g},
    pointwise=True,
    linear="jointly",
    refuses_bool=True,
    node="RsubBackward1",
    nodes={"other tensor": "RsubBackward0"},
    complex32=True,
)
def rsub(self, other, alpha):
    """`other - alpha * self`."""
    return raw.SubExt(other, self, alpha)


binary(
    "mul",
    "Mul",
    {"self": lambda g, other: g * conj(other), "other": lambda g, self: g * conj(self)},
    dunder="__mul__",
    numbers={"other": "Muls"},
    writers={"Mul": "InplaceMul", "Muls": "InplaceMuls"},
    left="TensorOrScalar",
    aliases=("multiply",),
    linear=("self", "other"),
    fuses="mul",
    native="gradient",
    numbers_alone=True,
    foreach=True,
    float8="tensors",
    complex32=True,
)


_TRUNC, _FLOOR = 1, 2
_MODES = {"trunc": _TRUNC, "floor": _FLOOR}

op(
    "true_divide(TensorOrScalar self, TensorOrScalar other) -> Tensor",
    ms="Div",
    numbers={"other": "Divs"},
    writers={"Div": "InplaceDiv", "Divs": "InplaceDivs"},
    promote="float",
    forms="fmio",
    dunder="__truediv__",
    grad={
        "self": lambda g, other: g / conj(other),
        # The quotient is not saved, as in PyTorch: it may be changed in place before the backward pass.
        "other": lambda g, self, other: -g * conj((self / other) / other),
    },
    linear=("self",),
    fuses="div",
    native="gradient",
    numbers_alone=True,
    node="DivBackward0",
)
binary(
    "floor_divide",
    "FloorDiv",
    {"self": not_implemented("aten::floor_divide"), "other": not_implemented("aten::floor_divide")},
    node="NotImplemented",
    dunder="__floordiv__",
    numbers={"other": "FloorDivScalar"},
    writers={"FloorDiv": "InplaceFloorDivide", "FloorDivScalar": "InplaceFloorDivides"},
    left="TensorOrScalar",
    numbers_alone=True,
)
op(
    "_div_mode(TensorOrScalar self, TensorOrScalar other, int mode) -> Tensor",
    ms="DivMod",
    writers={"DivMod": "InplaceDivMod"},
    promote="default",
    forms="fi",
    grad={"self": zero_grad, "other": zero_grad},
    pointwise=True,
    numbers_alone=True,
    node="DivBackward2",
)


def _mode(rounding_mode):
    if rounding_mode not in _MODES:
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return _MODES[rounding_mode]


@composite(
    "div(TensorOrScalar self, TensorOrScalar other, *, str? rounding_mode=None) -> Tensor",
    out_dtype="cast",
    forms="fmo",
    aliases=("divide",),
    pointwise=True,
    fuses="div",
    foreach=True,
)
def div(self, other, *, rounding_mode):
    """`self / other`. A rounding mode rounds the result towards zero ("trunc") or down ("floor")."""
    if rounding_mode is None:
        return t.true_divide(self, other)
    return t._div_mode(self, other, _mode(rounding_mode))


@composite(
    "div_(Tensor self, TensorOrScalar other, *, str? rounding_mode=None) -> Tensor",
    forms="m",
    aliases=("divide_",),
)
def div_(self, other, *, rounding_mode):
    """`div`, in place."""
    if rounding_mode is None:
        return t.true_divide_(self, other)
    return t._div_mode_(self, other, _mode(rounding_mode))


binary(
    "remainder",
    "RemainderTensorTensor",
    left="TensorOrScalar",
    dunder="__mod__",
    numbers={"self": "RemainderScalarTensor", "other": "RemainderTensorScalar"},
    nodes={"self number": "NotImplemented", "other tensor": "RemainderBackward1"},
    grad={
        "self": lambda g: g,
        "other": lambda g, self, other: -g * t.div(self, other, rounding_mode="floor"),
    },
)
binary(
    "fmod",
    "FmodTensor",
    {"self": lambda g: g, "other": lambda g, self, other: -g * t.div(self, other, rounding_mode="trunc")},
    numbers={"other": "FmodScalar"},
    nodes={"other tensor": "FmodBackward1"},
)


# ---- powers
def _pow_self_grad(g, self, exponent):
    slope = exponent * t.pow(self, exponent - 1)
    if isinstance(exponent, (int, float, complex)):
        return t.zeros_like(g) if exponent == 0 else g * conj(slope)
    return t.where(exponent == 0, t.zeros_like(g), g * conj(slope))


def _keeps_zero(exponent):
    """Where 0 ** exponent is constant nearby, so that its derivative is zero: for real exponents that are not negative."""
    return (exponent.real >= 0) & (exponent.imag == 0) if exponent.is_complex() else exponent >= 0


def _pow_exponent_grad(g, self, exponent, result):
    if isinstance(self, (int, float, complex)):
        if self == 0:
            return t.where(_keeps_zero(exponent), t.zeros_like(g), g * conj(result * -math.inf))
        # a negative real base has a logarithm if the powers are complex
        whole = isinstance(self, complex) or exponent.is_complex()
        log = cmath.log(self) if whole else math.log(self) if self > 0 else math.nan
        return g * conj(result * log)
    base = self.to(result.dtype) if result.is_complex() else self
    return t.where((self == 0) & _keeps_zero(exponent), t.zeros_like(g), g * conj(result * base.log()))


op(
    "pow(TensorOrScalar self, TensorOrScalar exponent) -> Tensor",
    limits={"exponent": "narrow element"},
    nodes={"self number": "PowBackward2", "exponent tensor": "PowBackward1"},
    ms="Pow",
    numbers={"self": "PowScalarTensor", "exponent": "PowTensorScalar"},
    promote="default",
    forms="fmio",
    dunder="__pow__",
    grad={"self": _pow_self_grad, "exponent": _pow_exponent_grad},
    autocast={"accelerator": "float32"},
    foreach=True,
)


def _widened(self, exponent):
    """Return both operands in float64, or in complex128 if one of them is complex. Numbers stay as they are."""
    numbers = (int, float, complex)
    wide = any(isinstance(x, complex) if isinstance(x, numbers) else x.is_complex() for x in (self, exponent))
    return [x if isinstance(x, numbers) else x.cdouble() if wide else x.double() for x in (self, exponent)]


@composite("float_power(TensorOrScalar self, TensorOrScalar exponent) -> Tensor", forms="fmo", pointwise=True)
def float_power(self, exponent):
    """Return the power, computed in float64 (complex128 for complex operands)."""
    return t.pow(*_widened(self, exponent))


@composite("float_power_(Tensor self, TensorOrScalar exponent) -> Tensor", forms="m")
def float_power_(self, exponent):
    """`float_power`, in place. The tensor must have the dtype of the result."""
    base, exponent = _widened(self, exponent)
    if self.dtype is not base.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype.scalar_name} but the operation's result requires dtype "
            f"{base.dtype.scalar_name}"
        )
    return t.pow_(self, exponent)


@composite(
    "ldexp(Tensor self, Tensor other) -> Tensor",
    out_dtype="cast",
    forms="fmino",
    autocast="as given",
    pointwise=True,
)
def ldexp(self, other):
    """`self * 2 ** other`."""
    if self.is_floating_point() and not (other.is_floating_point() or other.is_complex()):
        return t._ldexp_whole(self, other)
    if self.is_floating_point() and other.dtype == self.dtype:
        return t._ldexp(self, other)
    return self * t.pow(2.0, other)


op(
    "_ldexp_whole(Tensor self, Tensor other) -> Tensor",
    ms="Ldexp",
    npu=lambda self, other: (self * t.pow(2.0, other)).to(self.dtype),
    forms="f",
    grad={"self": lambda g, other: t._ldexp_whole(g, other)},
    pointwise=True,
    node="LdexpBackward0",
)


@op(
    "_ldexp(Tensor self, Tensor other) -> Tensor",
    forms="f",
    grad={
        "self": lambda g, other: g * t.pow(2.0, other),
        "other": lambda g, result: g * result * math.log(2),
    },
    pointwise=True,
)
def _ldexp(self, other):
    return raw.Mul(self, raw.Pow(2.0, other))


op(
    "frexp(Tensor self) -> (Tensor mantissa, Tensor exponent)",
    ms="Frexp",
    forms="fmo",
    grad={"self": lambda gs, result1: gs[0] / t.pow(2.0, result1)},
)


# ---- two-operand functions of floats
def _atan2_grad(g, self, other, needs):
    size = self * self + other * other
    inverse = t.where(size == 0, 0, size.reciprocal())
    return g * other * inverse if needs[0] else None, g * -self * inverse if needs[1] else None


op(
    "atan2(Tensor self, Tensor other) -> Tensor",
    ms="Atan2Ext",
    promote="float",
    forms="fmio",
    aliases=("arctan2",),
    grad={("self", "other"): _atan2_grad},
    autocast={"accelerator": "widest"},
)
binary(
    "hypot",
    "Hypot",
    npu=_on_npu.hypot,
    right="Tensor",
    grad={
        "self": lambda g, self, result: g * (self / result),
        "other": lambda g, other, result: g * (other / result),
    },
)


def _copysign_grad(g, self, result):
    return t.where(self == 0, t.zeros_like(g), g * (result / self))


binary(
    "copysign",
    "CopySign",
    {"self": _copysign_grad, "other": zero_grad},
    promote="float",
    nodes={"other number": "CopysignBackward1"},
    npu=_on_npu.copysign,
)
binary(
    "nextafter",
    "NextAfter",
    {"self": lambda g, self, other: g * (self != other), "other": zero_grad},
    right="Tensor",
    npu=_on_npu.nextafter,
)


@op(
    "heaviside(Tensor self, Tensor values) -> Tensor",
    forms="fmio",
    grad={"self": not_implemented("heaviside"), "values": not_implemented("heaviside")},
    node="NotImplemented",
    npu=_on_npu.heaviside,
)
def heaviside(self, values):
    """Return 0 for negative elements, 1 for positive ones, and `values` for zeros."""
    if self.dtype is not values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")
    return raw.Heaviside(self, values)


binary(
    "logaddexp",
    "LogAddExp",
    right="Tensor",
    forms="fmo",
    grad={
        "self": lambda g, self, other: g / (1 + conj(t.exp(other - self))),
        "other": lambda g, self, other: g / (1 + conj(t.exp(self - other))),
    },
)
binary(
    "logaddexp2",
    "LogAddExp2",
    right="Tensor",
    forms="fmo",
    grad={
        "self": lambda g, self, other: g / (1 + t.exp2(other - self)),
        "other": lambda g, self, other: g / (1 + t.exp2(self - other)),
    },
)


# ---- extrema: where both are equal each gets half
def _extreme_grad(loses):
    def grad(g, self, other):
        return t.where(self == other, g / 2, g).masked_fill(loses(self, other), 0)

    return grad


binary(
    "maximum",
    "Maximum",
    right="Tensor",
    grad={"self": _extreme_grad(lambda a, b: a < b), "other": _extreme_grad(lambda a, b: a > b)},
    foreach="clamp_min",
)
binary(
    "minimum",
    "Minimum",
    right="Tensor",
    grad={"self": _extreme_grad(lambda a, b: a > b), "other": _extreme_grad(lambda a, b: a < b)},
    foreach="clamp_max",
)
binary(
    "fmax",
    "FMax",
    right="Tensor",
    npu=_on_npu.fmax,
    forms="fmo",
    grad={
        "self": lambda g, self, other: g * ((self >= other) | t.isnan(other)),
        "other": lambda g, self, other: g * ~((self >= other) | t.isnan(other)),
    },
)
binary(
    "fmin",
    "FMin",
    right="Tensor",
    npu=_on_npu.fmin,
    forms="fmo",
    grad={
        "self": lambda g, self, other: g * ((self <= other) | t.isnan(other)),
        "other": lambda g, self, other: g * ~((self <= other) | t.isnan(other)),
    },
)

# ---- integers and bits
binary("gcd", "Gcd", None, right="Tensor", forms="fmino")
binary("lcm", "Lcm", None, right="Tensor", forms="fmino", npu=_on_npu.lcm)
for _name, _ms, _dunder in (
    ("and", "BitwiseAnd", "__and__"),
    ("or", "BitwiseOr", "__or__"),
    ("xor", "BitwiseXor", "__xor__"),
):
    binary(
        f"bitwise_{_name}",
        f"{_ms}Tensor",
        None,
        left="TensorOrScalar",
        dunder=_dunder,
        numbers={"other": f"{_ms}Scalar"},
    )
binary("bitwise_left_shift", "LeftShift", None, left="TensorOrScalar", dunder="__lshift__")
binary(
    "bitwise_right_shift",
    "RightShift",
    None,
    left="TensorOrScalar",
    dunder="__rshift__",
    npu=_on_npu.bitwise_right_shift,
)
op(
    "bitwise_not(Tensor self) -> Tensor",
    ms="BitwiseNot",
    forms="fmio",
    dunder="__invert__",
    grad=None,
    pointwise=True,
)
