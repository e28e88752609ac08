"""Fused RMS norm: alone, after an addition, and after dropout and an addition."""

from __future__ import annotations

import msadapter
from msadapter.ops import composite, on_ascend, op, recording, t

from ._mapping import ascend
from .attention_tiles import working


def _check(x, gamma) -> None:
    if gamma.dim() == 0 or tuple(x.shape[-gamma.dim() :]) != tuple(gamma.shape):
        raise RuntimeError(
            f"npu_rms_norm: the shape of gamma, {list(gamma.shape)}, must be the last dimensions of x, {list(x.shape)}"
        )


def _rows(x, gamma):
    """x reshaped to rows of the normalized size, in the dtype of the computation."""
    return x.reshape(-1, gamma.numel()).to(working(x.dtype))


def _gradient(gs, self, gamma, epsilon, result1):
    g = gs[0]
    if g is None:
        return None, None
    if on_ascend(self) and not recording():
        return ascend("RmsNormGrad", dy=g, x=self, rstd=result1, gamma=gamma)
    x, g, weight = _rows(self, gamma), _rows(g, gamma), gamma.reshape(-1).to(working(self.dtype))
    if recording():  # recompute from x, because the fused result has no autograd graph
        rstd = t.rsqrt((x * x).mean(-1, keepdim=True) + epsilon)
    else:
        rstd = result1.reshape(-1, 1).to(x.dtype)
    normal = x * rstd
    scaled = g * weight
    dx = rstd * (scaled - normal * (scaled * normal).mean(-1, keepdim=True))
    return dx.reshape(self.shape).to(self.dtype), (g * normal).sum(0).reshape(gamma.shape).to(gamma.dtype)


@op(
    "torch_npu.npu_rms_norm(Tensor self, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor)",
    forms="f",
    grad={("self", "gamma"): _gradient},
)
def npu_rms_norm(self, gamma, epsilon):
    """Returns (x / sqrt(mean(x^2) + epsilon) * gamma, 1 / sqrt(...) in float32). The mean is over gamma's dimensions.

    Raises:
        RuntimeError: the shape of gamma does not equal the last dimensions of x.
    """
    _check(self, gamma)
    if on_ascend(self):
        return ascend("RmsNorm", x=self, gamma=gamma, epsilon=epsilon)
    x = _rows(self, gamma)
    rstd = t.rsqrt((x * x).mean(-1, keepdim=True) + epsilon)
    kept = self.shape[: self.dim() - gamma.dim()]
    y = x * rstd * gamma.reshape(-1).to(x.dtype)
    return y.reshape(self.shape).to(self.dtype), rstd.reshape(*kept, *(1,) * gamma.dim())


@composite(
    "torch_npu.npu_add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, float epsilon=1e-06) -> (Tensor, Tensor, Tensor)",
    forms="f",
)
def npu_add_rms_norm(x1, x2, gamma, epsilon):
    """npu_rms_norm applied to x1 + x2. Returns (y, rstd, x1 + x2)."""
    if on_ascend(x1) and not (recording() and any(x.requires_grad for x in (x1, x2, gamma))):
        return t.torch_npu__add_rms_norm(x1, x2, gamma, epsilon)
    x = x1 + x2
    y, rstd = t.torch_npu_npu_rms_norm(x, gamma, epsilon)
    return y, rstd, x


@op(
    "torch_npu._add_rms_norm(Tensor x1, Tensor x2, Tensor gamma, float epsilon) -> (Tensor, Tensor, Tensor)",
    forms="f",
    grad=None,
)
def _add_rms_norm(x1, x2, gamma, epsilon):
    return ascend("AddRmsNorm", x1=x1, x2=x2, gamma=gamma, epsilon=epsilon)


def _scaled(x, scale, shape):
    return x if scale is None else x * scale.to(x.dtype).reshape(shape)


def dropout_add_norm(
    x0,
    weight,
    residual,
    bias,
    rowscale,
    layerscale,
    p,
    epsilon,
    prenorm,
    residual_in_fp32,
    is_rms_norm,
    return_dropout_mask,
):
    """norm(dropout(x0 * rowscale * layerscale) + residual) over the last dimension, computed in float32.

    Args:
        x0: (batch, length, hidden). rowscale: (batch, length). layerscale, weight, bias: (hidden,).
        p: the dropout probability. residual_in_fp32: if there is no residual, return the sum in float32.

    Returns:
        (norm in x0's dtype, sum in the residual's dtype or None, dropout mask or None)

    Raises:
        RuntimeError: p is outside [0, 1], epsilon is negative, or the shapes do not match.
    """
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
    if epsilon < 0 or x0.dim() != 3 or weight.shape != x0.shape[2:]:
        raise RuntimeError(
            "npu_dropout_add_layer_norm: x0 must have the shape (batch, length, hidden), weight (hidden,), and epsilon "
            "must not be negative"
        )
    batch, length, hidden = x0.shape
    computed = working(x0.dtype)
    x = _scaled(x0.to(computed), rowscale, (batch, length, 1))
    x = _scaled(x, layerscale, (1, 1, hidden))
    if p:
        mask = msadapter.rand(x.shape, device=x.device) >= p
        x = x * mask * (1 / (1 - p) if p < 1 else 0.0)
    else:
        mask = msadapter.ones(x.shape, dtype=msadapter.bool, device=x.device)
    total = x if residual is None else x + residual.to(computed)
    weight = weight.to(computed)
    if is_rms_norm:
        y = t.torch_npu_npu_rms_norm(total, weight, epsilon)[0]
    else:
        y = t.layer_norm(total, [hidden], weight, None if bias is None else bias.to(computed), epsilon)
    sum_dtype = residual.dtype if residual is not None else computed if residual_in_fp32 else x0.dtype
    return y.to(x0.dtype), total.to(sum_dtype) if prenorm else None, mask if return_dropout_mask else None
