"""Exports to Hugging Face take queries, keys and values apart as Megatron has put them together: group by group."""

from ..edits import replace
from ..rules import Patch

# Without ends of lines, because upstream writes those of Windows.
_BEFORE = "if getattr(self.load_model, 'qkv_split', None) == 'per_group' and ng > 1:"
_AFTER = "if ng > 1:"
_HEAD = """\
class Mg2HfConvert:
    def set_model_layer_attn(self, hf_weight, ng):
        if self.load_model.qkv_type == 'unpack':
            """
_TAIL = "\n                hf_weight['q_proj'] = ng\n"

PATCH = Patch(
    id="exported-queries-keys-and-values",
    target="mindspeed_llm/tasks/checkpoint/convert_mg2hf.py",
    symbol="Mg2HfConvert.set_model_layer_attn",
    reason="convert_ckpt_v2.py writes rows of queries as keys and values for every family whose entry in model_cfg.json lacks "
    "qkv_split, such as Llama, Mistral and Qwen3, without an error; release 2.3.0 wrote the right ones",
    reason_class="upstream bug",
    link="https://gitcode.com/Ascend/MindSpeed-LLM",
    since="26.0.0dev0",
    before="27.0.0",
    fingerprints=("cd816155f067d70c6400eeddd2baa51d3ebdefc5bfe9604ee743b5016e679a82",),
    edit=replace(_BEFORE, _AFTER),
    example=(_HEAD + _BEFORE + _TAIL, _HEAD + _AFTER + _TAIL),
    untouched=_HEAD + "            pass\n",
)
