"""A distributed optimizer in float32 loads its parameters from a checkpoint in the torch format."""

from ..edits import replace
from ..rules import Patch

_BEFORE = """\
                dst_tensors[key].copy_(tensors[key])
"""
_AFTER = """\
                dst_tensors[key].detach().copy_(tensors[key])
"""
_HEAD = """\
def _set_main_param_and_optimizer_states(self, model_param, tensors):
    if True:
        if True:
            for key in tensors:
"""

PATCH = Patch(
    id="parameters-are-loaded-in-place",
    target="megatron/core/optimizer/distrib_optimizer.py",
    symbol="DistributedOptimizer._set_main_param_and_optimizer_states",
    reason="with float32 parameters the optimizer's shard is a view of the parameter itself, and autograd forbids "
    "writing to it in place",
    reason_class="upstream bug",
    link="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.12.1/megatron/core/optimizer/distrib_optimizer.py#L878",
    since="0.12.0",
    before="0.12.4",
    fingerprints=("596e79f87999c7df3935ed7c2b81266527e736ed19f2104aa852aea2c86a02bf",),
    edit=replace(_BEFORE, _AFTER),
    example=(_HEAD + _BEFORE, _HEAD + _AFTER),
    untouched="def _set_main_param_and_optimizer_states(self):\n    return None\n",
)
