"""Dropout in one pass over the elements (`_dropout`), and PyTorch's variants by channel and with alpha."""

from __future__ import annotations

import math

from ._declare import _C, composite, op, raw, raw_empty, t
from ._generator import operands

_SELU_ALPHA = 1.7580993408473766  # the constants of self-normalising networks: scale * alpha of selu


@op(
    "_dropout(Tensor self, float p) -> (Tensor, Tensor)",
    forms="f",
    grad={"self": lambda gs, result1, p: t._dropout_mask(gs[0], result1, p)},
    random="other",
    node="MulBackward0",  # PyTorch's dropout on a CPU multiplies by the noise
)
def _dropout(self, p):
    """Return the output and the mask. An element is kept with probability 1 - p and divided by it."""
    return raw.DropoutExt(self, p, *operands(None, _C.device_tag(self)))


op(
    "_dropout_mask(Tensor self, Tensor mask, float p) -> Tensor",
    ms="DropoutDoMaskExt",
    forms="f",
    grad={"self": lambda g, mask, p: t._dropout_mask(g, mask, p)},
    pointwise=True,
)


def _check(p) -> None:
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


def _noise(like, size, p):
    """Return a tensor of zeros and ones, which are ones with probability 1 - p."""
    noise = raw_empty(size, None, like.dtype)
    raw.InplaceBernoulliScalar(noise, 1 - p, *operands(None, _C.device_tag(like)))
    return _C.placed(noise, _C.device_tag(like))


def _feature_shape(self):
    if self.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return list(self.shape[:2]) + [1] * (self.ndim - 2)


def _apply(self, p, train, *, feature: bool, alpha: bool):
    _check(p)
    if p == 0 or not train or self.numel() == 0:
        return self
    if p == 1:
        return self * t.zeros([], dtype=self.dtype)
    if not (feature or alpha):
        return t._dropout(self, p)[0]
    noise = _noise(self, _feature_shape(self) if feature else self.shape, p)
    if not alpha:
        return self * (noise / (1 - p))
    a = 1 / math.sqrt((_SELU_ALPHA * _SELU_ALPHA * p + 1) * (1 - p))
    shift = (noise - 1) * (_SELU_ALPHA * a) + _SELU_ALPHA * a * p
    return self * (noise * a) + shift


def _inplace(self, result):
    return self if result is self else t._inplace_from(self, result)


def _declare_torch_form(name: str, *, feature: bool, alpha: bool) -> None:
    """Declare torch.<name>(input, p, train) and its in-place form."""

    @composite(f"{name}(Tensor self, float p, bool train) -> Tensor", forms="f", random="other")
    def function(self, p, train):
        return _apply(self, p, train, feature=feature, alpha=alpha)

    @composite(f"{name}_(Tensor self, float p, bool train) -> Tensor", forms="f", random="other")
    def inplace(self, p, train):
        return _inplace(self, _apply(self, p, train, feature=feature, alpha=alpha))


_declare_torch_form("feature_dropout", feature=True, alpha=False)
_declare_torch_form("alpha_dropout", feature=False, alpha=True)
_declare_torch_form("feature_alpha_dropout", feature=True, alpha=True)
