"""torch.masked: reductions and normalizations that ignore elements where a mask is false."""

from .._errors import unsupported
from ._layouts import _canonical_dim, _input_mask, _output_mask, _where  # noqa: F401
from ._normalizations import cumprod, cumsum, log_softmax, logaddexp, normalize, softmax, softmin
from ._reductions import amax, amin, argmax, argmin, logsumexp, mean, median, norm, prod, std, sum, var

__all__ = [
    "amax",
    "amin",
    "argmax",
    "argmin",
    "cumprod",
    "cumsum",
    "log_softmax",
    "logaddexp",
    "logsumexp",
    "mean",
    "median",
    "norm",
    "normalize",
    "prod",
    "softmax",
    "softmin",
    "std",
    "sum",
    "var",
]


def __getattr__(name: str):
    if name in ("MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor", "maskedtensor"):
        raise unsupported(f"torch.masked.{name}")
    raise AttributeError(f"module 'torch.masked' has no attribute {name!r}")
