"""Toy models: random weights in the architecture of a family, at sizes of their own.

`small` gives Megatron's sizes for any recipe. A `Toy` has the same sizes for transformers, for the families that it has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import catalogue

_SIZES: dict[str, Any] = {
    "vocab_size": 256, "hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 4, "max_position_embeddings": 64, "initializer_range": 0.2, "rms_norm_eps": 1e-6,
    "pad_token_id": 255, "bos_token_id": 1, "eos_token_id": 2,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}  # fmt: skip
_MODEL: dict[str, Any] = {
    "num_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "ffn_hidden_size": 176, "vocab_size": 256,
}  # fmt: skip
# Sizes of recipes that have them.
_FURTHER: dict[str, Any] = {
    "num_query_groups": 4, "kv_channels": 16, "num_experts": 4, "moe_router_topk": 2, "moe_ffn_hidden_size": 32,
    "q_lora_rank": 16, "kv_lora_rank": 16, "qk_pos_emb_head_dim": 8, "qk_head_dim": 8, "v_head_dim": 8,
    "first_k_dense_replace": 1, "n_shared_experts": 1, "moe_router_num_groups": 1, "moe_router_group_topk": 1,
}  # fmt: skip


def small(recipe: str) -> dict[str, Any]:
    """The sizes that make a recipe's model small and leave its architecture as it is, by names of the section `model`."""
    given = catalogue.content(catalogue.RECIPES / f"{recipe}.yaml")["model"]
    return _MODEL | {name: size for name, size in _FURTHER.items() if given.get(name, 0) > size}


def words_of(sizes: dict[str, Any]) -> list[str]:
    """KEY=VALUE for the section `model`."""
    return [f"model.{name}={value}" for name, value in sizes.items()]


@dataclass(frozen=True)
class Toy:
    """A family: its recipe, the class of its configuration in transformers, and what differs from the common sizes."""

    recipe: str
    kind: str
    config: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)

    def build(self) -> Any:
        """The model with random weights. `import torch` must be answered.

        Weights of norms and biases are random too: the ones and zeros of a new model would hide that two were exchanged or lost.
        """
        import torch
        import transformers

        torch.manual_seed(0)
        config = getattr(transformers, self.kind)(**{**_SIZES, **self.config})
        model = transformers.AutoModelForCausalLM.from_config(config, dtype="float32").eval()
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.dim() == 1:
                    parameter.add_(torch.randn(parameter.shape) * 0.1)
        return model

    def make(self, folder: Path) -> Path:
        """Writes the model into a folder."""
        self.build().save_pretrained(folder)
        return folder

    def words(self) -> list[str]:
        """KEY=VALUE for the section `model`, over the recipe."""
        common = {
            "num_query_groups": 4,
            "max_position_embeddings": 64,
            "norm_epsilon": 1e-6,
            "rotary_base": 10000,
        }
        return words_of(small(self.recipe) | common | self.model)


def _rope(base: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """A base of rotary embeddings, for transformers and for Megatron."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": base}}, {"rotary_base": int(base)}


_TIED = {"tie_word_embeddings": True}
_LATENT = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
_GROUPED = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1,
            "first_k_dense_replace": 1, "n_shared_experts": 1, "routed_scaling_factor": 2.5}  # fmt: skip
_YARN = {"rope_type": "yarn", "rope_theta": 1e4, "factor": 40.0, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 32,
         "beta_slow": 1, "original_max_position_embeddings": 4096}  # fmt: skip
_OF_GPT_OSS = {"rope_type": "yarn", "rope_theta": 150000.0, "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
               "truncate": False, "original_max_position_embeddings": 4096}  # fmt: skip
_HALF = {"rope_type": "default", "rope_theta": 1e6, "partial_rotary_factor": 0.5}
TOYS = {
    # An MLP of four times the hidden size, which Bloom always has. A number of heads that is no power of two, as 176B has it.
    "Bloom": Toy(
        "bloom-7b",
        "BloomConfig",
        {
            "hidden_size": 96,
            "n_layer": 4,
            "n_head": 12,
            "num_hidden_layers": 4,
            "num_attention_heads": 12,
            "num_key_value_heads": 12,
            "intermediate_size": 384,
        },
        {
            "hidden_size": 96,
            "num_attention_heads": 12,
            "num_query_groups": 12,
            "ffn_hidden_size": 384,
            "norm_epsilon": 1e-5,
        },
    ),
    "CodeLlama": Toy("codellama-34b", "LlamaConfig", *_rope(1e6)),
    "DeepSeek-V3": Toy(
        "deepseek-v3",
        "DeepseekV3Config",
        {**_LATENT, **_GROUPED, "num_key_value_heads": 8, "rope_parameters": _YARN},
        {"num_query_groups": 8},
    ),
    "GLM-4.5": Toy(
        "glm-4.5",
        "Glm4MoeConfig",
        {
            **_GROUPED,
            "head_dim": 16,
            "attention_bias": True,
            "use_qk_norm": True,
            "rope_parameters": _HALF,
            "first_k_dense_replace": 3,
        },
        {"rotary_base": 1000000, "first_k_dense_replace": 3},
    ),
    "GPT-3": Toy(
        "gpt3-175b",
        "GPT2Config",
        {
            "num_key_value_heads": 8,
            "n_embd": 64,
            "n_layer": 4,
            "n_head": 8,
            "n_inner": 176,
            "n_positions": 64,
            "layer_norm_epsilon": 1e-6,
        },
        {"num_query_groups": 8},
    ),
    # Windows shorter than the texts of the proofs, in every second layer; Megatron counts the tokens before the token itself.
    "GPT-OSS": Toy(
        "gpt-oss-20b",
        "GptOssConfig",
        {
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "head_dim": 16,
            "sliding_window": 8,
            "rope_parameters": _OF_GPT_OSS,
        },
        {"moe_ffn_hidden_size": 176, "rotary_base": 150000, "window_size": "'7,0'"},
    ),
    # The converter of Gemma has the published size of a head in it, and that of GLM-4.5 the number of layers without experts.
    "Gemma": Toy("gemma-2b", "GemmaConfig", {"head_dim": 256}, {"kv_channels": 256}),
    # A window, a scale and soft caps that each change the logits of the proofs: caps of the published sizes would hardly.
    "Gemma 2": Toy(
        "gemma2-2b",
        "Gemma2Config",
        {
            "head_dim": 16,
            "query_pre_attn_scalar": 24,
            "sliding_window": 8,
            "attn_logit_softcapping": 2.0,
            "final_logit_softcapping": 5.0,
        },
        {
            "query_pre_attn_scalar": 24,
            "interleave_sliding_window": 8,
            "attn_logit_softcapping": 2.0,
            "output_logit_softcapping": 5.0,
        },
    ),
    "LLaMA": Toy("llama-7b", "LlamaConfig", {"num_key_value_heads": 8}, {"num_query_groups": 8}),
    "LLaMA2": Toy("llama2-7b", "LlamaConfig"),
    "LLaMA3": Toy("llama3-8b", "LlamaConfig", *_rope(5e5)),
    # A window shorter than the texts of the proofs; upstream counts the tokens before the token itself.
    "Mistral": Toy("mistral-7b", "MistralConfig", {"sliding_window": 8}, {"sliding_window": 7}),
    "Mixtral": Toy("mixtral-8x7b", "MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "Qwen1.5": Toy("qwen1.5-0.5b", "Qwen2Config", _TIED),
    "Qwen2.5": Toy("qwen2.5-0.5b", "Qwen2Config", _TIED),
    "Qwen3": Toy("qwen3-0.6b", "Qwen3Config", {**_TIED, "head_dim": 16}),
    "Qwen3-MoE": Toy(
        "qwen3-30b-a3b",
        "Qwen3MoeConfig",
        {
            "head_dim": 16,
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "norm_topk_prob": True,
        },
    ),
    "Yi": Toy("yi-34b", "LlamaConfig", *_rope(5e6)),
}
# Further architectures of families, which have layers of their own.
VARIANTS = {
    "GLM-4.5": [
        Toy(
            "glm-4.5-air",
            "Glm4MoeConfig",
            {
                **TOYS["GLM-4.5"].config,
                "use_qk_norm": False,
                "first_k_dense_replace": 1,
                "routed_scaling_factor": 1.0,
            },
            {"rotary_base": 1000000},
        )
    ]
}
