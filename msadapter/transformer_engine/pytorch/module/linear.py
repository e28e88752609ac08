"""A linear layer whose weight may be sharded by tensor parallelism."""

from .... import nn
from ...._errors import unsupported
from . import parallel
from .base import TransformerEngineBaseModule, default_init, weight_of


def split_sizes(in_features: int, out_features: int, mode, tp_size: int) -> tuple:
    """The (inputs, outputs) of one rank's weight."""
    split = {"column": out_features, "row": in_features}.get(mode, 0)
    if split % tp_size:
        raise AssertionError(f"{split} is not divisible by {tp_size}")
    return (
        in_features // tp_size if mode == "row" else in_features,
        out_features // tp_size if mode == "column" else out_features,
    )


class Linear(TransformerEngineBaseModule):
    """y = x weight' + bias. parallel_mode "column" splits outputs; "row" splits inputs and sums the results."""

    def __init__(self, in_features, out_features, sequence_parallel=False, fuse_wgrad_accumulation=False,
            tp_group=None, tp_size=1, get_rng_state_tracker=None, init_method=None, bias=True,
            return_bias=False, params_dtype=None, parallel_mode=None, parameters_split=None, device='cuda',
            ub_name=None, rng_tracker_name=None, **overlaps):  # fmt: skip
        super().__init__()
        if parameters_split is not None or any(overlaps.values()):
            raise unsupported(
                "transformer_engine.pytorch", "parameters_split or overlapped communication is not supported"
            )
        self._parallel(parallel_mode, tp_group, tp_size, sequence_parallel)
        self.in_features, self.out_features = split_sizes(
            in_features, out_features, parallel_mode, self.tp_size
        )
        self.fuse_wgrad_accumulation, self.return_bias, self.use_bias = (
            fuse_wgrad_accumulation,
            return_bias,
            bias,
        )
        self.get_rng_state_tracker, self.rng_tracker_name = get_rng_state_tracker, rng_tracker_name
        self._make_norm(params_dtype, device)
        shape = (self.out_features, self.in_features)
        dim = {"column": 0, "row": 1}.get(parallel_mode)
        self._new_parameter("weight", shape, params_dtype, device, init_method or default_init, dim)
        if not bias:
            self.bias = None
            return
        self._new_parameter("bias", shape[:1], params_dtype, device, nn.init.zeros_, 0 if dim == 0 else None)
        if parallel_mode == "row":
            self.bias.sequence_parallel = self.sequence_parallel

    def _make_norm(self, params_dtype, device) -> None:
        """Does nothing here; LayerNormLinear creates its norm."""

    def _normalize(self, x):
        return x

    def forward(self, x, is_first_microbatch=None):
        """Maps x (..., in_features) to (..., out_features). With return_bias, returns (result without bias, bias)."""
        x = self._normalize(x)
        weight = weight_of(self.weight, self.fuse_wgrad_accumulation, x.dtype)
        bias = None if self.bias is None else self.bias.to(x.dtype)
        if self.parallel_mode == "column" and self.tp_size > 1:
            x = parallel.before_column(x, self.tp_group, self.sequence_parallel)
        row = self.parallel_mode == "row" and self.tp_size > 1
        out = nn.functional.linear(x, weight, None if self.return_bias or row else bias)
        if row:
            out = parallel.after_row(out, self.tp_group, self.sequence_parallel)
            if bias is not None and not self.return_bias:
                out = out + bias
        return (out, bias) if self.return_bias else out
