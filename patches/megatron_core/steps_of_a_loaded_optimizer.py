"""A distributed optimizer of PyTorch counts its steps after a checkpoint is loaded as before."""

from ..edits import replace
from ..rules import Patch

_LOOP = """\
            for s in state_dict_state.values():
                # Native PyTorch state dict requires step (i.e., iteration).
"""
_BEFORE = f"""\
{_LOOP}                s["step"] = step
"""
_AFTER = f"""\
{_LOOP}                s["step"] = step.clone()  # the optimizer counts in place
"""
_HEAD = """\
def load_state_dict(self, state_dict):
    if True:
        if not HAVE_APEX_OR_TE:
"""

PATCH = Patch(
    id="steps-of-a-loaded-optimizer",
    target="megatron/core/optimizer/distrib_optimizer.py",
    symbol="DistributedOptimizer.load_state_dict",
    reason="without apex or TransformerEngine all parameters get the same tensor as number of steps, to which PyTorch's optimizer "
    "adds one for each parameter, so the bias corrections after a resume are those of much later steps",
    reason_class="upstream bug",
    link="https://github.com/NVIDIA/Megatron-LM/blob/core_v0.12.1/megatron/core/optimizer/distrib_optimizer.py#L742",
    since="0.12.0",
    before="0.20.0",
    fingerprints=(
        "fa835897e9e76e3a0aecaab224d71e69b69892399c005974c145ed5fce4a0735",
        "9b408809375f648eac0af170cbb56d4b3672cb09342ce149640413060c17c244",  # from 0.13.0 on
        "8fb4a1611ccbbcb2be66e859fdbe9c9ef4063761542592e8a911f5253792a01f",  # from 0.14.0 on
        "731d4aec794d2c8bada10f275264e077d7cafa7709a5a5d7831ff738dabaf814",  # from 0.15.0 on
        "862c82115a72e492c890a54fd70fac0ebce46bee989f420e31d9f1fcc27f006a",  # from 0.16.0 on
        "ff8aeb74b8965c37f76e4e31e570eb01dc985e7e0a58f8cbaa0f5de14ce8a2bf",  # from 0.18.0 on
        "c1559bf9ad2914abd1c4473a41bdcab83fa525011217c48c2077a59294eb75a1",  # from 0.19.0 on
    ),
    edit=replace(_BEFORE, _AFTER),
    example=(_HEAD + _BEFORE, _HEAD + _AFTER),
    untouched="def load_state_dict(self, state_dict):\n    return None\n",
)
