"""Toys of families whose code transformers does not have: folders as these families write them, with random weights."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..conversion import forms
from .toys import Toy


@dataclass(frozen=True)
class ForeignToy(Toy):
    """A toy in the form of a class of transformers, and the keys of its config.json as its family writes them.

    own: those keys beside the common ones, among them model_type. auto_map is there as in the published folders, and must never be
    followed: the file that it names is not there. has_class: that class of transformers computes the same; else it only has tensors
    of the same shapes.
    """

    own: dict[str, Any] = field(default_factory=dict)
    has_class: bool = True

    def make(self, folder: Path) -> Path:
        """Writes the model into a folder, as the family names and packs its tensors."""
        folder.mkdir(parents=True, exist_ok=True)
        config = self.build().config
        (folder / "config.json").write_text(json.dumps(self._facts(config), indent=1), encoding="utf-8")
        raw = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        form = forms.form_of(raw, self.family, folder / "config.json")
        assert form is not None
        with tempfile.TemporaryDirectory() as place:
            self.build().save_pretrained(place)
            forms.restore(Path(place), folder, form, form.facts(raw, folder / "config.json"))
        return folder

    @property
    def family(self) -> str:
        """The family of its recipe."""
        from . import catalogue

        return catalogue.read(self.recipe).family

    def _facts(self, config: Any) -> dict[str, Any]:
        """config.json as the family writes it."""
        names = (
            "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size",
            "max_position_embeddings", "rms_norm_eps", "initializer_range", "bos_token_id", "eos_token_id", "pad_token_id",
        )  # fmt: skip
        common = {name: getattr(config, name) for name in names}
        base: dict[str, Any] = {
            "rope_theta": config.rope_parameters["rope_theta"],
            "tie_word_embeddings": False,
        }
        absent = {
            "AutoConfig": "configuration_absent.Absent",
            "AutoModelForCausalLM": "modeling_absent.Absent",
        }
        code = {"auto_map": absent, "torch_dtype": "float32"}
        made = {**common, **base, **code, **self.own}
        return {name: value for name, value in made.items() if value is not None}


_HEADS = {"num_key_value_heads": 8}
_EIGHT = {"num_query_groups": 8}
_OF_QWEN = {
    "model_type": "qwen", "intermediate_size": 352, "layer_norm_epsilon": 1e-6, "rms_norm_eps": None, "num_key_value_heads": None,
    "rotary_emb_base": 10000, "rope_theta": None, "rotary_pct": 1.0, "kv_channels": 8, "seq_length": 64, "no_bias": True,
    "max_position_embeddings": None, "use_dynamic_ntk": True, "use_logn_attn": True,
}  # fmt: skip
_OF_CHATGLM = {
    "model_type": "chatglm", "num_layers": 4, "ffn_hidden_size": 176, "padded_vocab_size": 256, "seq_length": 64, "kv_channels": 8,
    "multi_query_attention": True, "multi_query_group_num": 4, "layernorm_epsilon": 1e-6, "rmsnorm": True, "add_qkv_bias": True,
    "add_bias_linear": False, "post_layer_norm": True, "apply_residual_connection_post_layernorm": False, "original_rope": True,
    "num_hidden_layers": None, "intermediate_size": None, "vocab_size": None, "max_position_embeddings": None,
    "num_key_value_heads": None, "rms_norm_eps": None, "rope_theta": None,
}  # fmt: skip
_HALF = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "partial_rotary_factor": 0.5}}
_ROPE = {"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}
# Baichuan, the smaller Aquilas, InternLM and Qwen have as many keys as queries, and do not write their number.
_NONE_STATED = {"num_key_value_heads": None}
FOREIGN = {
    "Aquila": ForeignToy(
        "aquila-7b", "LlamaConfig", _HEADS, _EIGHT, {"model_type": "aquila", **_NONE_STATED}
    ),
    "Aquila2": ForeignToy("aquila2-34b", "LlamaConfig", own={"model_type": "aquila"}),
    "Baichuan": ForeignToy(
        "baichuan-7b", "LlamaConfig", _HEADS, _EIGHT, {"model_type": "baichuan", **_NONE_STATED}
    ),
    "Baichuan2": ForeignToy(
        "baichuan2-7b", "LlamaConfig", _HEADS, _EIGHT, {"model_type": "baichuan", **_NONE_STATED}
    ),
    "ChatGLM3": ForeignToy(
        "chatglm3-6b", "GlmConfig", {**_HALF, "attention_bias": True, "head_dim": 8}, own=_OF_CHATGLM
    ),
    "InternLM": ForeignToy(
        "internlm-7b",
        "LlamaConfig",
        {**_HEADS, "attention_bias": True},
        _EIGHT,
        {"model_type": "internlm", "bias": True, **_NONE_STATED},
    ),
    "InternLM2": ForeignToy(
        "internlm2-7b",
        "LlamaConfig",
        _ROPE,
        {"rotary_base": 1000000},
        {"model_type": "internlm2", "bias": False},
    ),
    "Qwen": ForeignToy("qwen-7b", "Qwen2Config", _HEADS, _EIGHT, _OF_QWEN),
}
# A number of heads that is no power of two, as in the published models: its slopes are those of two powers.
_TWELVE = {"hidden_size": 96, "num_attention_heads": 12}
_OF_13B = {
    "model_type": "baichuan",
    "model_max_length": 64,
    "max_position_embeddings": None,
    "rope_theta": None,
    **_NONE_STATED,
}
# Further architectures of families, which have other positions.
VARIANTS = {
    family: [
        ForeignToy(
            recipe,
            "LlamaConfig",
            {**_TWELVE, "num_key_value_heads": 12},
            {**_TWELVE, "num_query_groups": 12},
            _OF_13B,
            has_class=False,
        )
    ]
    for family, recipe in (("Baichuan", "baichuan-13b"), ("Baichuan2", "baichuan2-13b"))
}
