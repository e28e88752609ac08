"""Dropout in its forms: elements, channels, alpha."""
from __future__ import annotations

import math
import warnings

from ._declare import _C, composite, op, raw, raw_empty, t
from ._generator import operands

_SELU_ALPHA = 1.7580993408473766  # of self-normalising networks: scale * alpha of selu


@op("_dropout(Tensor self, float p) -> (Tensor, Tensor)", forms="f",
    grad={"self": lambda gs, result1, p: t._dropout_mask(gs[0], result1, p)})
def _dropout(self, p):
    """Output and mask: an element stays with probability 1 - p and is divided by it."""
    return raw.DropoutExt(self, p, *operands(None, _C.device_tag(self)))


op("_dropout_mask(Tensor self, Tensor mask, float p) -> Tensor", ms="DropoutDoMaskExt", forms="f",
   grad={"self": lambda g, mask, p: t._dropout_mask(g, mask, p)})


def _check(p) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _noise(like, size, p):
    """Zeros and ones; ones with probability 1 - p."""
    noise = raw_empty(size, None, like.dtype)
    raw.InplaceBernoulliScalar(noise, 1 - p, *operands(None, _C.device_tag(like)))
    _C.set_device_tag(noise, _C.device_tag(like))
    return noise


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
    """torch.<name>(input, p, train) and its in-place form."""
    @composite(f"{name}(Tensor self, float p, bool train) -> Tensor", forms="f")
    def function(self, p, train):
        return _apply(self, p, train, feature=feature, alpha=alpha)

    @composite(f"{name}_(Tensor self, float p, bool train) -> Tensor", forms="f")
    def inplace(self, p, train):
        return _inplace(self, _apply(self, p, train, feature=feature, alpha=alpha))


def _declare_functional(name: str, default: float, training: bool, *, feature: bool, alpha: bool) -> None:
    """torch.nn.functional.<name>(input, p, training, inplace)."""
    @composite(f"nn.functional.{name}(Tensor self, float p={default}, bool training={training}, bool inplace=False) -> Tensor", forms="f")
    def function(self, p, training, inplace):
        result = _apply(self, p, training, feature=feature, alpha=alpha)
        return _inplace(self, result) if inplace else result


_declare_torch_form("dropout", feature=False, alpha=False)
_declare_torch_form("feature_dropout", feature=True, alpha=False)
_declare_torch_form("alpha_dropout", feature=False, alpha=True)
_declare_torch_form("feature_alpha_dropout", feature=True, alpha=True)
_declare_functional("dropout", 0.5, True, feature=False, alpha=False)
_declare_functional("alpha_dropout", 0.5, False, feature=False, alpha=True)
_declare_functional("feature_alpha_dropout", 0.5, False, feature=True, alpha=True)


@composite("native_dropout(Tensor self, float p, bool? train) -> (Tensor, Tensor)", forms="f")
def native_dropout(self, p, train):
    """Output and mask."""
    if train is False or p == 0 or self.numel() == 0:
        return t.clone(self), t.ones_like(self, dtype=t.ge(self, 0).dtype)
    return t._dropout(self, p)


def _batched(self, p, training, inplace, batched: bool):
    """Channel dropout of one sample (no batch dim) or of a batch."""
    x = self if batched else t.unsqueeze(self, 0)
    result = _apply(x, p, training, feature=True, alpha=False)
    result = result if batched else t.squeeze(result, 0)
    return _inplace(self, result) if inplace else result


@composite("nn.functional.dropout1d(Tensor self, float p=0.5, bool training=True, bool inplace=False) -> Tensor", forms="f")
def dropout1d(self, p, training, inplace):
    _check(p)
    if self.ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {self.ndim}D input. Note that dropout1d exists to provide "
                           "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch dimension "
                           "(i.e. 2D or 3D inputs).")
    return _batched(self, p, training, inplace, self.ndim == 3)


@composite("nn.functional.dropout2d(Tensor self, float p=0.5, bool training=True, bool inplace=False) -> Tensor", forms="f")
def dropout2d(self, p, training, inplace):
    _check(p)
    if self.ndim not in (3, 4):
        warnings.warn(f"dropout2d: Received a {self.ndim}-D input to dropout2d, which is deprecated and will result in an error in a future "
                      "release.", stacklevel=2)
    if self.ndim == 3:
        warnings.warn("dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input is "
                      "interpreted as shape (N, C, L).", stacklevel=2)
    return _batched(self, p, training, inplace, True)


@composite("nn.functional.dropout3d(Tensor self, float p=0.5, bool training=True, bool inplace=False) -> Tensor", forms="f")
def dropout3d(self, p, training, inplace):
    _check(p)
    if self.ndim not in (4, 5):
        warnings.warn(f"dropout3d: Received a {self.ndim}-D input to dropout3d, which is deprecated and will result in an error in a future "
                      "release.", stacklevel=2)
    return _batched(self, p, training, inplace, self.ndim != 4)
