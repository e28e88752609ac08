"""Dropout of channels, and alpha dropout. The random numbers are drawn like PyTorch's."""

from __future__ import annotations

import warnings

from ._declare import composite, t

_ALPHA = 1.7580993408473766  # the negative limit of SELU at -infinity


def _check_p(p):
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _feature_noise(input):
    """Return an uninitialised tensor (N, C, 1, ...) for the noise of channel-wise dropout."""
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = list(input.shape[:2]) + [1] * (input.dim() - 2)
    return t.empty(shape, dtype=input.dtype, device=input.device)


def _apply(input, noise, shift, inplace):
    if inplace:
        input.mul_(noise)
        return input if shift is None else input.add_(shift)
    out = input * noise
    return out if shift is None else out + shift


def _feature_dropout(input, p, training, inplace):
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(t.zeros_like(input)) if inplace else input * t.zeros_like(input)
    noise = _feature_noise(input).bernoulli_(1 - p).div_(1 - p)
    return _apply(input, noise, None, inplace)


def _alpha(input, p, training, inplace, by_feature):
    _check_p(p)
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(t.zeros_like(input)) if inplace else input * t.zeros_like(input)
    noise = _feature_noise(input) if by_feature else t.empty_like(input)
    noise = noise.detach().bernoulli_(1 - p)
    scale = 1.0 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    shift = noise.add(-1).mul_(_ALPHA * scale).add_(_ALPHA * scale * p)
    return _apply(input, noise.mul_(scale), shift, inplace)


def _one_sample(input, function):
    """Run ``function`` with an additional batch dimension, and remove this dimension from the result."""
    return function(input.unsqueeze(0)).squeeze(0)


@composite(
    "nn.functional.dropout1d(Tensor input, float p=0.5, bool training=True, any inplace=False) -> Tensor",
    forms="f",
    random="other",
)
def dropout1d(input, p, training, inplace):
    """Set whole channels of (N, C, L) or (C, L) to zero with probability p; scale the others by 1 / (1 - p)."""
    _check_p(p)
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input. Note that "
            "dropout1d exists to provide channel-wise dropout on inputs with 1 spatial dimension, a "
            "channel dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    if input.dim() == 2:
        return _one_sample(input, lambda x: _feature_dropout(x, p, training, inplace))
    return _feature_dropout(input, p, training, inplace)


@composite(
    "nn.functional.dropout2d(Tensor input, float p=0.5, bool training=True, any inplace=False) -> Tensor",
    forms="f",
    random="other",
)
def dropout2d(input, p, training, inplace):
    """Set whole channels of (N, C, H, W) to zero. As in PyTorch, a 3-dimensional input means (N, C, L)."""
    _check_p(p)
    if input.dim() not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {input.dim()}-D input to dropout2d, which is deprecated and will result "
            "in an error in a future release.",
            stacklevel=2,
        )
    if input.dim() == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior "
            "is desired - input is interpreted as shape (N, C, L).",
            stacklevel=2,
        )
    return _feature_dropout(input, p, training, inplace)


@composite(
    "nn.functional.dropout3d(Tensor input, float p=0.5, bool training=True, any inplace=False) -> Tensor",
    forms="f",
    random="other",
)
def dropout3d(input, p, training, inplace):
    """Set whole channels of (N, C, D, H, W) or (C, D, H, W) to zero."""
    _check_p(p)
    if input.dim() not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {input.dim()}-D input to dropout3d, which is deprecated and will result "
            "in an error in a future release.",
            stacklevel=2,
        )
    if input.dim() != 5:
        return _one_sample(input, lambda x: _feature_dropout(x, p, training, inplace))
    return _feature_dropout(input, p, training, inplace)


@composite(
    "nn.functional.alpha_dropout(Tensor input, float p=0.5, bool training=False, "
    "any inplace=False) -> Tensor",
    forms="f",
    short=False,
    random="other",
)
def alpha_dropout(input, p, training, inplace):
    """Dropout that preserves the mean and variance of self-normalising inputs."""
    return _alpha(input, p, training, inplace, by_feature=False)


@composite(
    "nn.functional.feature_alpha_dropout(Tensor input, float p=0.5, bool training=False, "
    "any inplace=False) -> Tensor",
    forms="f",
    short=False,
    random="other",
)
def feature_alpha_dropout(input, p, training, inplace):
    """Alpha dropout of whole channels."""
    return _alpha(input, p, training, inplace, by_feature=True)
