"""A distributed optimizer loads parameters in float32, and PyTorch's own optimizer its state, from a checkpoint."""

from ..edits import replace
from ..rules import Patch

_BEFORE = """\
                dst_tensors[key].copy_(tensors[key])
"""
_AFTER = """\
                # load_state_dict has set PyTorch's number of steps, which is not part of a parameter's state in a checkpoint
                if key in tensors or key != "step":
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
    "writing to it in place; PyTorch's own optimizer also has a number of steps there, which a checkpoint has elsewhere",
    reason_class="upstream bug",
    link="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.12.1/megatron/core/optimizer/distrib_optimizer.py#L878",
    since="0.12.0",
    before="0.20.0",
    fingerprints=(
        "596e79f87999c7df3935ed7c2b81266527e736ed19f2104aa852aea2c86a02bf",
        "fa4cf05c86115047168e34735b4b548c23b133a05066876de83a7277c226162f",  # from 0.13.0 on
        "24941459bc055b8a1d57109aab2b910287bb35df978540ed0b3ed9c423e5afd6",  # from 0.14.0 on
        "830964bf4144bfb0ac642e6a6f53f9768359bfd50b68bd8d441b459f6a387213",  # from 0.17.0 on
        "efcc3c3e189baedfbf5c96abaef0fd3fc6c09cb50669082965209b80ff7ac210",  # from 0.19.0 on
    ),
    edit=replace(_BEFORE, _AFTER),
    example=(_HEAD + _BEFORE, _HEAD + _AFTER),
    untouched="def _set_main_param_and_optimizer_states(self):\n    return None\n",
)
