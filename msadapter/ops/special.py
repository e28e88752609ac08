"""Special functions of torch.special and torch."""

import math

from . import _on_npu
from ._declare import _C, composite, op, raw, t
from .pointwise import not_implemented, unary

_SQRT_PI = math.sqrt(math.pi)
_SQRT_2PI = math.sqrt(2 * math.pi)


def binary(name, ms, grad, *, aliases=(), forms="fo", other="other", **options):
    """Declare a special function of two real operands, tensors or numbers.

    `other` is the name of the second argument; `options` are those of ``op``.
    """
    op(
        f"{name}(TensorOrScalar self, TensorOrScalar {other}) -> Tensor",
        ms=ms,
        promote="float",
        forms=forms,
        aliases=aliases,
        grad=grad,
        **options,
    )


# ---- error functions and the normal distribution
unary(
    "erf",
    "Erf",
    lambda g, self: (2 / _SQRT_PI) * t.exp(-(self * self)) * g,
    aliases=("special.erf",),
    keeps_zeros=True,
    foreach=True,
)
unary(
    "erfc",
    "Erfc",
    lambda g, self: (-2 / _SQRT_PI) * t.exp(-(self * self)) * g,
    aliases=("special.erfc",),
    foreach=True,
)
unary(
    "erfinv",
    "Erfinv",
    lambda g, result: g * (_SQRT_PI / 2) * t.exp(result * result),
    forms="fmio",
    aliases=("special.erfinv",),
    autocast={"accelerator": "float32"},
    keeps_zeros=True,
)
unary("special.erfcx", "Erfcx", lambda g, self, result: g * (2 * self * result - 2 / _SQRT_PI), forms="fo")
unary("_ndtr", "Ndtr", lambda g, self: g * t.exp(self * self * -0.5) / _SQRT_2PI, forms="f", npu=_on_npu.ndtr)


@composite(
    "special.ndtr(Tensor self) -> Tensor",
    out_dtype="cast",
    forms="fo",
    pointwise=True,
    copied_to_out=True,
)
def ndtr(self):
    """Return the distribution function of the standard normal distribution."""
    if self.dtype.is_floating_point and self.dtype.itemsize == 2:  # PyTorch rounds after every step
        return (1 + t.erf(self * math.sqrt(0.5))) * 0.5
    return t._ndtr(self)


unary("special.ndtri", "Ndtri", lambda g, result: g * _SQRT_2PI * t.exp(result * result * 0.5), forms="fo")
# The derivative is density / distribution = sqrt(2/pi) / erfcx(-x / sqrt 2). This is exact in the left tail,
# where exp(-(result + x^2/2)) loses all digits.
unary(
    "special.log_ndtr",
    "LogNdtr",
    lambda g, self: g * math.sqrt(2 / math.pi) / t.special_erfcx(self * -math.sqrt(0.5)),
    forms="fo",
)
unary(
    "special.entr",
    "Entr",
    lambda g, self: g * t.where(self < 0, math.nan, -self.log() - 1),
    forms="fo",
    npu=_on_npu.entr,
)

op(
    "logit(Tensor self, float? eps=None) -> Tensor",
    limits={"eps": "floating element"},
    ms="Logit",
    npu=_on_npu.logit,
    promote="float",
    forms="fmino",
    aliases=("special.logit",),
    grad={"self": lambda g, self, eps: t._logit_backward(g, self, eps)},
    backward="plain",
)


def _logit_second(g, grad, self, eps):
    product = self * (1 - self)
    slope = g * grad * (2 * self - 1) / (product * product)
    if eps is None:
        return slope
    return t.where((self < eps) | (self > 1 - eps), 0, slope)


op(
    "_logit_backward(Tensor grad, Tensor self, float? eps=None) -> Tensor",
    ms="LogitGrad",
    npu=_on_npu.logit_backward,
    forms="f",
    grad={"grad": lambda g, self, eps: t._logit_backward(g, self, eps), "self": _logit_second},
)

# ---- gamma
unary(
    "lgamma",
    "Lgamma",
    lambda g, self: g * t.digamma(self),
    forms="fmio",
    aliases=("special.gammaln",),
    foreach=True,
)
unary(
    "digamma",
    "Digamma",
    lambda g, self: g * t.polygamma(1, self),
    forms="fmio",
    aliases=("special.digamma", "special.psi"),
)


@op(
    "polygamma(int n, Tensor self) -> Tensor",
    promote="float",
    forms="fo",
    aliases=("special.polygamma",),
    grad={"self": lambda g, n, self: g * t.polygamma(n + 1, self)},
    pointwise=True,
    whole=True,
)
def polygamma(n, self):
    """Return the derivative of order `n` of digamma."""
    return raw.Polygamma(n, self)


@composite(
    "Tensor.polygamma(Tensor self, int n) -> Tensor",
    forms="mi",
    short=False,
)
def tensor_polygamma(self, n):
    """`torch.polygamma(n, self)`."""
    return t.polygamma(n, self)


@composite(
    "mvlgamma(Tensor self, int p) -> Tensor",
    out_dtype="cast",
    forms="fmio",
    aliases=("special.multigammaln",),
)
def mvlgamma(self, p):
    """Return the logarithm of the multivariate gamma function of dimension `p`."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if not self.is_floating_point():
        self = self.to(_C.default_dtype())
    return t._lgamma_sum(self, p) + p * (p - 1) / 4 * math.log(math.pi)


def _halves_down(self, p):
    return self.unsqueeze(-1) + t.arange(p, dtype=self.dtype) * -0.5


@op(
    "_lgamma_sum(Tensor self, int p) -> Tensor",
    forms="f",
    grad={"self": lambda g, self, p: g * t.digamma(_halves_down(self, p)).sum(-1)},
)
def _lgamma_sum(self, p):
    """Return the sum of lgamma(self - i / 2) for i = 0 to p - 1."""
    return t.lgamma_(_halves_down(self, p)).sum(-1)


def _igamma_other_grad(g, self, other):
    return g * t.exp((self - 1) * t.log(other) - other - t.lgamma(self))


op(
    "igamma(Tensor self, Tensor other) -> Tensor",
    ms="Igamma",
    promote="default",
    forms="fmio",
    aliases=("special.gammainc",),
    grad={"self": not_implemented("igamma: input"), "other": _igamma_other_grad},
)
op(
    "igammac(Tensor self, Tensor other) -> Tensor",
    ms="Igammac",
    promote="default",
    forms="fmio",
    aliases=("special.gammaincc",),
    grad={
        "self": not_implemented("igammac: input"),
        "other": lambda g, self, other: -_igamma_other_grad(g, self, other),
    },
)
binary(
    "special.zeta",
    "Zeta",
    {
        "self": not_implemented("zeta"),
        "other": lambda g, self, other: g * -self * t.special_zeta(self + 1, other),
    },
    nodes={"self number": "SpecialZetaBackward1", "other number": "SpecialZetaBackward2"},
)


# ---- x log y
def _xlogy_self(g, self, other):
    return g * t.where((self == 0) & (other <= 0), 0.0, t.log(other))


def _xlog1py_self(g, self, other):
    return g * t.where((self == 0) & (other <= -1), 0.0, t.log1p(other))


op(
    "xlogy(TensorOrScalar self, TensorOrScalar other) -> Tensor",
    nodes={"self number": "XlogyBackward1", "other number": "XlogyBackward2"},
    ms="Xlogy",
    numbers={"self": "XLogYScalarSelf", "other": "XLogYScalarOther"},
    promote="float",
    forms="fmino",
    aliases=("special.xlogy",),
    grad={"self": _xlogy_self, "other": lambda g, self, other: g * self / other},
)
binary(
    "special.xlog1py",
    "Xlog1py",
    {"self": _xlog1py_self, "other": lambda g, self, other: g * self / (other + 1)},
    nodes={"self number": "SpecialXlog1PyBackward1", "other number": "SpecialXlog1PyBackward2"},
    npu=_on_npu.xlog1py,
)


# ---- Bessel functions
def _ratio(result, self, at_zero):
    """Return result / self, or its limit where self is 0."""
    zero = self == 0
    return t.where(zero, at_zero, result / t.where(zero, 1.0, self))


unary("i0", "I0", lambda g, self: g * t.special_i1(self), aliases=("special.i0",))
unary(
    "special.i0e", "I0e", lambda g, self, result: g * (t.special_i1e(self) - t.sgn(self) * result), forms="fo"
)
unary("special.i1", "I1", lambda g, self, result: g * (t.i0(self) - _ratio(result, self, 0.5)), forms="fo")


def _i1e_grad(g, self, result):
    slope = t.special_i0e(self) - result * t.sgn(self)
    return g * (slope - _ratio(result, self, 0.5))


unary("special.i1e", "I1e", _i1e_grad, forms="fo")
for _name, _ms in (
    ("bessel_j0", "BesselJ0"),
    ("bessel_j1", "BesselJ1"),
    ("bessel_y0", "BesselY0"),
    ("bessel_y1", "BesselY1"),
    ("modified_bessel_i0", "ModifiedBesselI0"),
    ("modified_bessel_i1", "ModifiedBesselI1"),
    ("modified_bessel_k0", "ModifiedBesselK0"),
    ("modified_bessel_k1", "ModifiedBesselK1"),
    ("scaled_modified_bessel_k0", "ScaledModifiedBesselK0"),
    ("scaled_modified_bessel_k1", "ScaledModifiedBesselK1"),
    ("spherical_bessel_j0", "SphericalBesselJ0"),
    ("airy_ai", "AiryAi"),
):
    unary(f"special.{_name}", _ms, None, forms="fo")

# ---- orthogonal polynomials of degree n
for _kind in "tuvw":
    for _prefix in ("", "shifted_"):
        _ms = ("ShiftedChebyshevPolynomial" if _prefix else "ChebyshevPolynomial") + _kind.upper()
        binary(f"special.{_prefix}chebyshev_polynomial_{_kind}", _ms, None, other="n")
for _name, _ms in (
    ("hermite_polynomial_h", "HermitePolynomialH"),
    ("hermite_polynomial_he", "HermitePolynomialHe"),
    ("laguerre_polynomial_l", "LaguerrePolynomialL"),
    ("legendre_polynomial_p", "LegendrePolynomialP"),
):
    binary(f"special.{_name}", _ms, None, other="n")
