"""Layers as chains of small operations, of which Megatron makes its MLP if a layer's specification has use_te_op_fuser.

Each operation computes by itself here; nothing is fused. A parameter on the device "meta" gets its values at the first call, unless
it was replaced before.
"""

import functools
import math
from collections.abc import Callable

from ... import Tensor, cuda, empty, get_default_dtype, nn, no_grad
from ..._errors import unsupported
from ...distributed import get_world_size
from .module import parallel
from .module.base import weight_of
from .module.norm import normalized


class FusibleOperation(nn.Module):
    """A module that maps one tensor to another one."""

    def reset_parameters(self) -> None:
        """Give the parameters their first values. Parameters on the device "meta" get memory on the device."""

    def _new(self, name: str, shape, device, dtype) -> None:
        device = "cuda" if device is None and cuda.is_available() else device
        self.register_parameter(
            name, nn.Parameter(empty(shape, device=device, dtype=dtype or get_default_dtype()))
        )

    def _filled(self, name: str, fill) -> None:
        parameter = getattr(self, name)
        if parameter.device.type == "meta":
            device = "cuda" if cuda.is_available() else "cpu"
            parameter = nn.Parameter(empty(parameter.shape, device=device, dtype=parameter.dtype))
            setattr(self, name, parameter)
        with no_grad():
            fill(parameter)

    def __call__(self, *arguments, **named):
        if any(parameter.device.type == "meta" for parameter in self.parameters(recurse=False)):
            self.reset_parameters()
        return super().__call__(*arguments, **named)


class _Norm(FusibleOperation):
    kind = ""

    def __init__(
        self, normalized_shape, *, eps=1e-5, device=None, dtype=None, zero_centered_gamma=False, sm_margin=0
    ):
        super().__init__()
        self.eps, self.zero_centered_gamma = eps, zero_centered_gamma
        self.shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        for name in ("weight", "bias") if self.kind == "LayerNorm" else ("weight",):
            self._new(name, self.shape, device, dtype)
        if self.weight.device.type != "meta":
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weights that change nothing."""
        self._filled("weight", nn.init.zeros_ if self.zero_centered_gamma else nn.init.ones_)
        if self.kind == "LayerNorm":
            self._filled("bias", nn.init.zeros_)

    def forward(self, x: Tensor) -> Tensor:
        """x normalized over its last dimensions, in the weight's dtype."""
        if tuple(x.shape[-len(self.shape) :]) != self.shape:
            raise ValueError(f"an input of the shape {tuple(x.shape)} does not end with {self.shape}")
        flat = x.to(self.weight.dtype).reshape(*x.shape[: x.dim() - len(self.shape)], math.prod(self.shape))
        bias = self.bias.flatten() if self.kind == "LayerNorm" else None
        out = normalized(self.kind, flat, self.weight.flatten(), bias, self.eps, self.zero_centered_gamma)
        return out.reshape(x.shape)


class LayerNorm(_Norm):
    """(x - mean) / sqrt(variance + eps) * weight + bias."""

    kind = "LayerNorm"


class RMSNorm(_Norm):
    """x / sqrt(mean of squares + eps) * weight."""

    kind = "RMSNorm"


class BasicLinear(FusibleOperation):
    """y = x weight'. tensor_parallel_mode "column" splits outputs; "row" splits inputs and sums the results."""

    def __init__(self, in_features, out_features, *, device=None, dtype=None, tensor_parallel_mode=None,
            tensor_parallel_group=None, sequence_parallel=False, rng_state_tracker_function=None,
            accumulate_into_main_grad=False, userbuffers_options=None):  # fmt: skip
        super().__init__()
        if tensor_parallel_mode not in (None, "column", "row"):
            raise ValueError(f"tensor_parallel_mode is {tensor_parallel_mode!r}, not None, 'column' or 'row'")
        if userbuffers_options is not None:
            raise unsupported(
                "transformer_engine.pytorch.ops.BasicLinear", "userbuffers_options is not supported"
            )
        size = 1 if tensor_parallel_mode is None else get_world_size(tensor_parallel_group)
        self.tensor_parallel_mode = tensor_parallel_mode if size > 1 else None
        self.tensor_parallel_group, self.tensor_parallel_size = tensor_parallel_group, size
        self.sequence_parallel = sequence_parallel and size > 1
        self.in_features, self.out_features = in_features, out_features
        split = {"column": out_features, "row": in_features}.get(self.tensor_parallel_mode, 0)
        if split % size:
            raise ValueError(f"{split} features are not divisible among {size} ranks")
        self.local_in_features = in_features // size if self.tensor_parallel_mode == "row" else in_features
        self.local_out_features = (
            out_features // size if self.tensor_parallel_mode == "column" else out_features
        )
        self._tracker, self._fused = rng_state_tracker_function, accumulate_into_main_grad
        self._new("weight", (self.local_out_features, self.local_in_features), device, dtype)
        if self.weight.device.type != "meta":
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform values, as those of torch.nn.Linear, with the tracker's random state."""

        def fill(weight) -> None:
            if self._tracker is None:
                nn.init.kaiming_uniform_(weight, a=math.sqrt(5))
                return
            with self._tracker().fork():
                nn.init.kaiming_uniform_(weight, a=math.sqrt(5))

        self._filled("weight", fill)

    def forward(self, x: Tensor) -> Tensor:
        """The product."""
        x = x.to(self.weight.dtype)
        if self.tensor_parallel_mode == "column":
            x = parallel.before_column(x, self.tensor_parallel_group, self.sequence_parallel)
        out = nn.functional.linear(x, weight_of(self.weight, self._fused, x.dtype))
        if self.tensor_parallel_mode == "row":
            out = parallel.after_row(out, self.tensor_parallel_group, self.sequence_parallel)
        return out


class Bias(FusibleOperation):
    """x + bias. tensor_parallel: the last dimension is divided among the ranks."""

    def __init__(self, size, *, device=None, dtype=None, tensor_parallel=False, tensor_parallel_group=None):
        super().__init__()
        ranks = get_world_size(tensor_parallel_group) if tensor_parallel else 1
        if size % ranks:
            raise ValueError(f"{size} features are not divisible among {ranks} ranks")
        self.local_size = size // ranks
        self._new("bias", (self.local_size,), device, dtype)
        if self.bias.device.type != "meta":
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Zeros."""
        self._filled("bias", nn.init.zeros_)

    def forward(self, x: Tensor) -> Tensor:
        """The sum."""
        return x + self.bias


class AllReduce(FusibleOperation):
    """The sum over the ranks. The gradient is passed on."""

    def __init__(self, process_group=None, reduce_in_backward=True):
        super().__init__()
        self.process_group = process_group

    def forward(self, x: Tensor) -> Tensor:
        """The sum."""
        return parallel.after_row(x, self.process_group, sequence_parallel=False)


class ReduceScatter(FusibleOperation):
    """This rank's part, along the first dimension, of the sum over the ranks. Gradients are gathered."""

    def __init__(self, process_group=None):
        super().__init__()
        self.process_group = process_group

    def forward(self, x: Tensor) -> Tensor:
        """The part of the sum."""
        return parallel.after_row(x, self.process_group, sequence_parallel=True)


class _Activation(FusibleOperation):
    """function: of one tensor. gated: of the first half of the last dimension, and multiplied by the second half."""

    function: Callable[[Tensor], Tensor]
    gated = False

    def __init__(self, *, cache_quantized_input=False):
        super().__init__()
        if cache_quantized_input:
            raise unsupported(
                f"transformer_engine.pytorch.ops.{type(self).__name__}",
                "cache_quantized_input is not supported",
            )

    def forward(self, x: Tensor) -> Tensor:
        """The activation."""
        if not self.gated:
            return self.function(x)
        gate, value = x.chunk(2, -1)
        return self.function(gate) * value


class GELU(_Activation):
    """The approximation of GELU with tanh."""

    function = staticmethod(functools.partial(nn.functional.gelu, approximate="tanh"))


class ReLU(_Activation):
    """max(x, 0)."""

    function = staticmethod(nn.functional.relu)


class SiLU(_Activation):
    """x sigmoid(x)."""

    function = staticmethod(nn.functional.silu)


class GEGLU(GELU):
    """GELU(a) b, for the halves a and b."""

    gated = True


class ReGLU(ReLU):
    """max(a, 0) b, for the halves a and b."""

    gated = True


class SwiGLU(SiLU):
    """SiLU(a) b, for the halves a and b."""

    gated = True


class MakeExtraOutput(FusibleOperation):
    """Passes a tensor on, and makes it a further result of the chain. Its two gradients are added.

    in_place: whether TransformerEngine may add them in place. They are added out of place here, with the same result.
    """

    def __init__(self, *, in_place=False):
        super().__init__()

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(x for the next operation, x as a further result)."""
        return x, x


class Sequential(nn.Sequential):
    """Operations, or other modules, one after another."""

    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, ...]:
        """The last one's result, or with MakeExtraOutput in the chain a tuple of it and the further results."""
        further = []
        for part in self:
            if isinstance(part, MakeExtraOutput):
                x, own = part(x)
                further.append(own)
            else:
                x = part(x)
        return (x, *further) if further else x
