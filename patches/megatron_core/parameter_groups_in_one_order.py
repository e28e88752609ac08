"""All pipeline stages order the optimizer's parameter groups alike, so that a resumed job loads the right groups."""

from ..edits import replace
from ..rules import Patch

_BEFORE = """\
    for (wd_mult, _lr_mult, is_expert_parallel, is_decoupled_lr), params in params_map.items():
        assert len(params) > 0
"""
_AFTER = """\
    # with weight decay first, whichever parameter a stage happens to begin with
    for (wd_mult, _lr_mult, is_expert_parallel, is_decoupled_lr), params in sorted(
        params_map.items(), key=lambda group: (-group[0][0], *group[0][1:])
    ):
        assert len(params) > 0
"""
_HEAD = "def _get_param_groups(params_map):\n    param_groups = []\n"
_TAIL = "        param_groups.append(params)\n    return param_groups\n"

PATCH = Patch(
    id="parameter-groups-in-one-order",
    target="megatron/core/optimizer/__init__.py",
    symbol="_get_param_groups",
    reason="a torch_dist checkpoint stores parameter groups by number, as the first pipeline stage numbers them; a later stage "
    "that begins with a norm numbers its groups differently, so after a resume it applies the wrong weight decay",
    reason_class="upstream bug",
    link="https://github.com/NVIDIA/Megatron-LM/commit/9a45638758",
    since="0.12.0",
    before="0.14.0",
    fingerprints=(
        "d5c5152585fcfca5fc597073bc22cf7dfb9858e603305b535d874188869854f1",
        "3de2707f1b32e18def00a54fc455da58530dd682f22be8f3f923dd85085e0104",  # from 0.13.0 on
    ),
    edit=replace(_BEFORE, _AFTER),
    example=(_HEAD + _BEFORE + _TAIL, _HEAD + _AFTER + _TAIL),
    untouched="def _get_param_groups(params_map):\n    return list(params_map)\n",
)
