"""The distributed optimizer casts parameters to 8 bits only if the model has 8-bit parameters."""

from ..edits import replace
from ..rules import Patch

_BEFORE = """\
    \"\"\"Cast shard fp32 main params to fp8 model params.\"\"\"
    _quantize_param_shard_impl(
        model_params, main_params"""
_AFTER = """\
    \"\"\"Cast shard fp32 main params to fp8 model params.\"\"\"
    if not model_params:  # nothing is kept in 8 bits
        return
    _quantize_param_shard_impl(
        model_params, main_params"""
_HEAD = "def quantize_param_shard(model_params, main_params):\n"
_TAIL = "\n    )\n"

PATCH = Patch(
    id="no-parameters-in-8-bits",
    target="megatron/core/fp8_utils.py",
    symbol="quantize_param_shard",
    reason="the distributed optimizer calls this function at every step; without TransformerEngine it raises an error, even "
    "when the model has no 8-bit parameters",
    reason_class="environment",
    since="0.12.0",
    before="0.13.0",
    fingerprints=("db1411aafc64382339207a6ef774e3c2aaa491bbbbd1604d0de2ea3a56132426",),
    edit=replace(_BEFORE, _AFTER),
    example=(_HEAD + _BEFORE + _TAIL, _HEAD + _AFTER + _TAIL),
    untouched="def quantize_param_shard():\n    return None\n",
)
