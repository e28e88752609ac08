"""Comparisons, predicates and logical functions. Their results are bool tensors."""

from .._values.dtype import ALL, STORED, STORED_WIDE
from . import _on_npu
from ._declare import composite, op, raw, t

_COMPARISONS = (
    ("eq", "Equal", "EqScalar", ()),
    ("ne", "NotEqual", "NeScalar", ("not_equal",)),
    ("lt", "Less", "LessScalar", ("less",)),
    ("le", "LessEqual", None, ("less_equal",)),
    ("gt", "Greater", None, ("greater",)),
    ("ge", "GreaterEqual", "GreaterEqualScalar", ("greater_equal",)),
)
for _name, _ms, _with_number, _aliases in _COMPARISONS:
    op(
        f"{_name}(Tensor self, TensorOrScalar other) -> Tensor",
        ms=_ms,
        numbers={"other": _with_number} if _with_number else None,
        promote="compare",
        forms="fmio",
        dunder=f"__{_name}__",
        aliases=_aliases,
        grad=None,
        float8="any" if _name in ("eq", "ne") else None,
        complex32=_name in ("eq", "ne"),
    )

for _name, _ms in (("and", "LogicalAnd"), ("or", "LogicalOr"), ("xor", "LogicalXor")):
    op(
        f"logical_{_name}(Tensor self, Tensor other) -> Tensor",
        ms=_ms,
        promote="compare",
        forms="fmio",
        grad=None,
    )
op(
    "logical_not(Tensor self) -> Tensor",
    out_dtype="cast",
    ms="LogicalNot",
    forms="fmio",
    grad=None,
    pointwise=True,
)


def _predicate(name, ms, forms, **facts):
    op(f"{name}(Tensor self) -> Tensor", ms=ms, forms=forms, grad=None, pointwise=True, **facts)


_predicate("isnan", "IsNan", "fm", npu=_on_npu.isnan, keeps_zeros=True, float8="any", complex32=True)
_predicate("isinf", "IsInf", "fm", keeps_zeros=True, float8="infinite", complex32=True)
_predicate("isfinite", "IsFinite", "fm", float8="infinite", complex32=True)
_predicate("isposinf", "IsPosInf", "fmo", npu=_on_npu.isposinf, keeps_zeros=True)
_predicate("isneginf", "IsNegInf", "fmo", keeps_zeros=True)
_predicate("signbit", "Signbit", "fmo", npu=_on_npu.signbit, keeps_zeros=True)


@composite(
    "isreal(Tensor self) -> Tensor",
    forms="fm",
    pointwise=True,
)
def isreal(self):
    """True where the imaginary part is zero."""
    return t.imag(self) == 0 if self.is_complex() else t.ones_like(self, dtype=ALL["bool"])


@op(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> Tensor",
    forms="fm",
    grad=None,
    pointwise=True,
)
def isclose(self, other, rtol, atol, equal_nan):
    """Return `|self - other| <= atol + rtol * |other|`, elementwise. An infinity is close only to itself."""
    if self.dtype != other.dtype:
        have, want = (x.dtype.scalar_name for x in (self, other))
        raise RuntimeError(f"{have} did not match {want}")
    if self.dtype is STORED["complex32"]:
        self, other = (raw.Cast(x, STORED_WIDE[x.dtype]) for x in (self, other))
    return raw.IsClose(self, other, rtol, atol, equal_nan)


@composite(
    "allclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08, bool equal_nan=False) -> bool",
    forms="fm",
)
def allclose(self, other, rtol, atol, equal_nan):
    """Return whether all elements are close (see `isclose`)."""
    return bool(t.isclose(self, other, rtol, atol, equal_nan).all().item())


@composite("equal(Tensor self, Tensor other) -> bool", forms="fm")
def equal(self, other):
    """Return whether both tensors have the same shape and the same elements."""
    return bool(t._equal(self, other).item())


op("_equal(Tensor self, Tensor other) -> Tensor", ms="EqualExt", forms="f", grad=None, whole=True)


@composite("is_nonzero(Tensor self) -> bool", forms="fm")
def is_nonzero(self):
    """Return the truth value of a tensor with one element."""
    if self.numel() != 1:
        raise RuntimeError(
            "Boolean value of Tensor with "
            f"{'no values' if self.numel() == 0 else 'more than one value'} is ambiguous"
        )
    return bool(self.item())
