"""A new distributed optimizer of PyTorch loads a checkpoint in the torch_dist format."""

from ..edits import replace
from ..rules import Patch

_LIST = """\
            steps = list(set([s["step"].item() for s in inner_state_dict["state"].values()]))
"""
_BEFORE = f"""\
{_LIST}            assert len(steps) == 1
            step = steps[0]
"""
_AFTER = f"""\
{_LIST}            # an optimizer that has done no step, such as one that is about to load a checkpoint, has no state
            assert len(steps) <= 1
            step = steps[0] if steps else 0.0
"""
_HEAD = """\
def state_dict(self):
    if True:
        if not HAVE_APEX_OR_TE:
            inner_state_dict = self.optimizer.state_dict()
"""

PATCH = Patch(
    id="steps-of-a-new-optimizer",
    target="megatron/core/optimizer/distrib_optimizer.py",
    symbol="DistributedOptimizer.state_dict",
    reason="a torch_dist checkpoint is loaded into the state of the new optimizer; without apex or TransformerEngine that is "
    "PyTorch's, which has no state before its first step, and an assertion wants the number of its steps",
    reason_class="upstream bug",
    link="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.12.1/megatron/core/optimizer/distrib_optimizer.py#L606",
    since="0.12.0",
    before="0.20.0",
    fingerprints=(
        "309df3f16ec2ebc169fdd2ccf39c938386a250903304ad9d76ba0c3f4e09c1ed",
        "164c78874454ecdfbbaf70cfdc79701a7e26beb3de4eea2d53a1e25ce4f716d7",  # from 0.14.0 on
        "ac05f84f4c98dcad5ab313b4aca97ea8bb5a004df68d45b8728289c413d327bd",  # from 0.15.0 on
    ),
    edit=replace(_BEFORE, _AFTER),
    example=(_HEAD + _BEFORE, _HEAD + _AFTER),
    untouched="def state_dict(self):\n    return {}\n",
)
