"""LayerNorm and RMSNorm. With zero_centered_gamma, weight - 1 is stored instead of the weight."""

from .... import nn
from .base import Layer


def _fill(value: float):
    return lambda parameter: parameter.fill_(value)


def normalized(kind: str, x, weight, bias, eps: float, zero_centered: bool):
    """LayerNorm or RMSNorm over the last dimension."""
    if zero_centered:
        weight = weight + 1
    if kind == "RMSNorm":
        return nn.functional.rms_norm(x, (x.shape[-1],), weight.to(x.dtype), eps)
    # TransformerEngine adds the gradients of weight and bias in 32 bits. PyTorch's layer_norm adds those of a 16-bit input in 16
    # bits on a CPU, where those of 8,000 tokens are wrong by 8 %.
    wide = x.float() if x.dtype.itemsize < 4 else x
    weight, bias = weight.to(wide.dtype), None if bias is None else bias.to(wide.dtype)
    return nn.functional.layer_norm(wide, (x.shape[-1],), weight, bias, eps).to(x.dtype)


class _Norm(Layer):
    """The size is normalized_shape, or hidden_size, its older name. dtype is that of the weight; params_dtype is its older name."""

    kind = ""

    def __init__(
        self,
        normalized_shape=None,
        eps=1e-5,
        sequence_parallel=False,
        params_dtype=None,
        zero_centered_gamma=False,
        device="cuda",
        *,
        hidden_size=None,
        dtype=None,
    ):
        super().__init__()
        if (normalized_shape is None) == (hidden_size is None):
            raise ValueError(
                f"transformer_engine.pytorch.{type(self).__name__}: give normalized_shape or hidden_size, and not both"
            )
        if dtype is not None and params_dtype is not None:
            raise ValueError(
                f"transformer_engine.pytorch.{type(self).__name__}: give dtype or params_dtype, and not both"
            )
        dtype = params_dtype if dtype is None else dtype
        size = hidden_size if normalized_shape is None else normalized_shape
        self.eps, self.zero_centered_gamma = eps, zero_centered_gamma
        self.sequence_parallel = sequence_parallel
        shape = (size,) if isinstance(size, int) else tuple(size)
        self._new_parameter("weight", shape, dtype, device, _fill(0.0 if zero_centered_gamma else 1.0))
        if self.kind == "LayerNorm":
            self._new_parameter("bias", shape, dtype, device, _fill(0.0))
        for parameter in self.parameters():
            parameter.sequence_parallel = sequence_parallel

    def forward(self, x):
        """x normalized over its last dimension."""
        return normalized(
            self.kind, x, self.weight, getattr(self, "bias", None), self.eps, self.zero_centered_gamma
        )


class LayerNorm(_Norm):
    """(x - mean) / sqrt(variance + eps) * weight + bias."""

    kind = "LayerNorm"


class RMSNorm(_Norm):
    """x / sqrt(mean of squares + eps) * weight."""

    kind = "RMSNorm"
