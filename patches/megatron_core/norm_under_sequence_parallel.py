"""Lets torch's norms run under sequence parallelism, by marking their parameters as Megatron's own fused norm does."""

from ..edits import chain, replace
from ..rules import Patch

_REFUSAL = (
    '        assert not config.sequence_parallel, f"sequence parallel not supported by torch LayerNorm"\n\n'
)
_BUILT = "        return norm_cls(normalized_shape=hidden_size, eps=eps)\n"
_MARKED = """\
        norm = norm_cls(normalized_shape=hidden_size, eps=eps)
        for parameter in norm.parameters():  # their gradients are summed over the ranks, each of which has a part of the sequence
            parameter.sequence_parallel = config.sequence_parallel
        return norm
"""
_HEAD = "class WrappedTorchNorm:\n    def __new__(cls, config, hidden_size, eps):\n"

PATCH = Patch(
    id="norm-under-sequence-parallel",
    target="megatron/core/transformer/torch_norm.py",
    symbol="WrappedTorchNorm",
    reason="without apex or TransformerEngine the norm is PyTorch's, and Megatron refuses PyTorch's norm with --sequence-parallel",
    reason_class="environment",
    since="0.12.0",
    before="0.20.0",
    fingerprints=(
        "c79ddefa29ba64b81423adde1e9a471f1f508b776c50aa2afd41979812efdbd1",
        "88f52fb285c24b2351897bc58fa6b201ac16d0d18930af835890d17560edd332",  # from 0.17.0 on
    ),
    edit=chain(replace(_REFUSAL, ""), replace(_BUILT, _MARKED)),
    example=(_HEAD + _REFUSAL + _BUILT, _HEAD + _MARKED),
    untouched="class L2Norm:\n    pass\n",
)
