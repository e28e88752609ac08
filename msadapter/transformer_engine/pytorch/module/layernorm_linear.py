"""A norm followed by a linear layer, as one module."""

from ...._errors import unsupported
from .linear import Linear
from .norm import _fill, normalized


class LayerNormLinear(Linear):
    """A Linear of the normalized input. The norm has layer_norm_weight and, for LayerNorm, layer_norm_bias."""

    def __init__(
        self,
        in_features,
        out_features,
        eps=1e-5,
        *,
        normalization="LayerNorm",
        zero_centered_gamma=False,
        return_layernorm_output=False,
        sequence_parallel=False,
        **options,
    ):
        if return_layernorm_output:
            raise unsupported(
                "transformer_engine.pytorch.LayerNormLinear", "return_layernorm_output is not supported"
            )
        if normalization not in ("LayerNorm", "RMSNorm"):
            raise AssertionError("Unsupported normalization type!")
        self._norm = (normalization, eps, zero_centered_gamma, sequence_parallel)
        super().__init__(in_features, out_features, sequence_parallel=sequence_parallel, **options)

    def _make_norm(self, params_dtype, device) -> None:
        self.normalization, self.eps, self.zero_centered_gamma, sequence_parallel = self._norm
        shape = (self.in_features,)
        ones = _fill(0.0 if self.zero_centered_gamma else 1.0)
        self._new_parameter("layer_norm_weight", shape, params_dtype, device, ones)
        if self.normalization == "LayerNorm":
            self._new_parameter("layer_norm_bias", shape, params_dtype, device, _fill(0.0))
        else:
            self.layer_norm_bias = None
        for parameter in self.parameters():
            parameter.sequence_parallel = sequence_parallel

    def _normalize(self, x):
        return normalized(
            self.normalization,
            x,
            self.layer_norm_weight,
            self.layer_norm_bias,
            self.eps,
            self.zero_centered_gamma,
        )
