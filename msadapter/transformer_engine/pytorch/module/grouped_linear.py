"""Several linear layers of equal shape, each of which uses its own rows of the input."""

from .... import cat, nn
from ...._errors import unsupported
from .base import TransformerEngineBaseModule, default_init, weight_of
from .linear import split_sizes


class GroupedLinear(TransformerEngineBaseModule):
    """Multiplies the i-th group of m_splits[i] rows of the input by weight{i}."""

    def __init__(self, num_gemms, in_features, out_features, sequence_parallel=False,
            fuse_wgrad_accumulation=False, tp_group=None, tp_size=1, get_rng_state_tracker=None,
            rng_tracker_name=None, init_method=None, bias=True, return_bias=False, params_dtype=None,
            parallel_mode=None, device='cuda', ub_name=None, **overlaps):  # fmt: skip
        super().__init__()
        if any(overlaps.values()):
            raise unsupported(
                "transformer_engine.pytorch.GroupedLinear", f"{sorted(overlaps)} is not supported"
            )
        self._parallel(parallel_mode, tp_group, tp_size, sequence_parallel)
        if self.tp_size > 1:
            raise unsupported(
                "transformer_engine.pytorch.GroupedLinear",
                "communication inside of the layer is not supported",
            )
        self.num_gemms, self.use_bias, self.return_bias = num_gemms, bias, return_bias
        self.in_features, self.out_features = split_sizes(
            in_features, out_features, parallel_mode, self.tp_size
        )
        self.fuse_wgrad_accumulation = fuse_wgrad_accumulation
        self.get_rng_state_tracker, self.rng_tracker_name = get_rng_state_tracker, rng_tracker_name
        dim = {"column": 0, "row": 1}.get(parallel_mode)
        for i in range(num_gemms):
            self._new_parameter(
                f"weight{i}",
                (self.out_features, self.in_features),
                params_dtype,
                device,
                init_method or default_init,
                dim,
            )
            if bias:
                self._new_parameter(
                    f"bias{i}",
                    (self.out_features,),
                    params_dtype,
                    device,
                    nn.init.zeros_,
                    0 if dim == 0 else None,
                )

    def forward(self, x, m_splits, is_first_microbatch=None):
        """Maps x (rows, in_features) to (rows, out_features). m_splits are the numbers of rows per product."""
        flat = x.reshape(-1, x.shape[-1])
        biases = [
            getattr(self, f"bias{i}").to(x.dtype) if self.use_bias else None for i in range(self.num_gemms)
        ]
        parts = []
        for i, rows in enumerate(flat.split([int(m) for m in m_splits])):
            weight = weight_of(getattr(self, f"weight{i}"), self.fuse_wgrad_accumulation, x.dtype)
            parts.append(nn.functional.linear(rows, weight, None if self.return_bias else biases[i]))
        out = cat(parts).view(*x.shape[:-1], self.out_features)
        return (out, biases) if self.return_bias else out
