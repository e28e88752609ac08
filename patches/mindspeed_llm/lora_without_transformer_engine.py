"""LoRA of layers that are not divided among tensor ranks, such as those of latent attention."""

from ..edits import replace
from ..rules import Patch

_BEFORE = """\
patch_manager.register_patch('peft.tuners.lora.tp_layer.dispatch_megatron', dispatch_megatron_wrapper)
        if """
_AFTER = """\
patch_manager.register_patch('peft.tuners.lora.tp_layer.dispatch_megatron', dispatch_megatron_wrapper)
        patch_manager.register_patch('peft.import_utils.is_te_pytorch_available', lambda: False)
        if """
_HEAD = "class LoraFeature(MindSpeedFeature):\n    def register_patches(self, patch_manager, args):\n        "
_TAIL = "args.lora_r:\n            pass\n"

PATCH = Patch(
    id="lora-without-transformer-engine",
    target="mindspeed_llm/features_manager/finetune/lora.py",
    symbol="LoraFeature.register_patches",
    reason="MindSpeed puts an empty transformer_engine in place of the one that Ascend does not have; peft 0.19, for which "
    "MindSpeed-LLM is written, asks it for classes that it lacks, so LoRA of latent attention ends with an AttributeError",
    reason_class="upstream bug",
    link="https://gitcode.com/Ascend/MindSpeed-LLM",
    since="26.0.0dev0",
    before="27.0.0",
    fingerprints=("a92b420a9af9b497492ec81af44265363fc8661b5217a35b41462569efbf69e3",),
    edit=replace(_BEFORE, _AFTER),
    example=(_HEAD + _BEFORE + _TAIL, _HEAD + _AFTER + _TAIL),
    untouched=_HEAD + "pass\n",
)
