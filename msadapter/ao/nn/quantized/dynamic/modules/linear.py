"""A linear layer with int8 weights. Each call quantises the input to 7 bits, and multiplies integers."""

from __future__ import annotations

from ...... import nn, ops
from ......_errors import unsupported
from ......_quantized import KINDS, QuantizedTensor, _rounded, chosen, quantize_per_tensor
from ......_values.dtype import ALL, OTHERS

__all__ = ["Linear"]
_INT8 = OTHERS["qint8"]


class LinearPackedParams(nn.Module):
    """The weight and the bias of a quantised linear layer, under the names of PyTorch's state dicts."""

    def __init__(self, dtype=_INT8):
        super().__init__()
        self.dtype = dtype
        self.set_weight_bias(ops.zeros(1, 1), None)

    def set_weight_bias(self, weight, bias) -> None:
        if not isinstance(weight, QuantizedTensor):
            weight = quantize_per_tensor(weight, 1.0, 0, self.dtype)
        self.__dict__["_weight"], self.__dict__["_bias"] = weight, bias

    def _weight_bias(self):
        return self._weight, self._bias

    def forward(self, x):
        return x

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = self._weight_bias()

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing, unexpected, errors):
        self.dtype = state_dict.pop(prefix + "dtype", self.dtype)
        packed = state_dict.pop(prefix + "_packed_params", None)
        if packed is None:
            missing.append(prefix + "_packed_params")
        else:
            self.set_weight_bias(*packed)
        super()._load_from_state_dict(state_dict, prefix, metadata, False, missing, unexpected, errors)

    def __repr__(self) -> str:
        return repr(self._weight_bias())


class Linear(nn.Module):
    """``x @ weight.T + bias`` with an int8 weight. ``torch.ao.quantization.quantize_dynamic`` makes them of ``nn.Linear``.

    The input is quantised with the scale and zero point that its values need, to integers from 0 to 127, as PyTorch does on x86.
    """

    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features, out_features, bias_=True, dtype=_INT8):
        if dtype is not _INT8:
            raise unsupported("torch.ao.nn.quantized.dynamic.Linear", f"weights of {dtype} are not supported")
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.scale, self.zero_point, self.version = 1.0, 0, 4
        self._packed_params = LinearPackedParams(dtype)
        weight = quantize_per_tensor(ops.zeros(out_features, in_features), 1.0, 0, dtype)
        self.set_weight_bias(weight, ops.zeros(out_features) if bias_ else None)

    def _get_name(self) -> str:
        return "DynamicQuantizedLinear"

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, dtype={self._packed_params.dtype}, "
            f"qscheme={self.weight().qscheme()}"
        )

    def __repr__(self) -> str:
        return f"{self._get_name()}({self.extra_repr()})"

    def weight(self):
        """Return the quantised weight."""
        return self._packed_params._weight_bias()[0]

    def bias(self):
        """Return the bias, or None."""
        return self._packed_params._weight_bias()[1]

    def set_weight_bias(self, w, b) -> None:
        """Set the quantised weight and the bias."""
        self._packed_params.set_weight_bias(w, b)

    def forward(self, x):
        weight, bias = self._packed_params._weight_bias()
        if x.dtype is not ALL["float32"]:
            raise RuntimeError(f"expected scalar type Float but found {x.dtype.scalar_name}")
        if x.ndim < 2:
            raise RuntimeError("The dimension of input tensor should be larger than or equal to 2")
        if x.shape[-1] != weight.shape[1]:
            raise RuntimeError(f"The number of rows in the packB should be equal to K: {x.shape[-1]}")
        scale, point = chosen(x, 0, 127)
        kind = OTHERS["quint8"]
        steps = _rounded(x.detach(), scale, point, kind).to(ALL["float64"]) - point
        # Sums of products of integers are exact in float64.
        whole = ops.matmul(steps, weight.int_repr().to(ALL["float64"]).t())
        factor = ops.tensor(scale, dtype=ALL["float32"]) * ops.tensor(weight.q_scale(), dtype=ALL["float32"])
        found = whole.to(ALL["float32"]) * factor
        return found if bias is None else found + bias.detach()

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "scale"] = ops.tensor(self.scale)
        destination[prefix + "zero_point"] = ops.tensor(self.zero_point)

    def _load_from_state_dict(self, state_dict, prefix, metadata, strict, missing, unexpected, errors):
        for name in ("scale", "zero_point"):
            if prefix + name in state_dict:
                setattr(self, name, state_dict.pop(prefix + name).item())
        super()._load_from_state_dict(state_dict, prefix, metadata, False, missing, unexpected, errors)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """Return the quantised form of a linear layer."""
        if type(mod) is not nn.Linear:
            raise AssertionError("nn.quantized.dynamic.Linear.from_float only works for one of ['Linear']")
        return cls._of(mod)

    @classmethod
    def _of(cls, mod):
        weight = mod.weight.detach().to(ALL["float32"])
        largest = float(weight.abs().max()) if weight.numel() else 0.0
        _, low, high = KINDS[_INT8]
        scale = max(largest / ((high - low) / 2), _SMALLEST)
        made = cls(mod.in_features, mod.out_features, dtype=_INT8)
        made.set_weight_bias(
            quantize_per_tensor(weight, float(ops.tensor(scale, dtype=ALL["float32"])), 0, _INT8), mod.bias
        )
        return made


_SMALLEST = 1.1920928955078125e-07  # the smallest scale, that of a weight of zeros
