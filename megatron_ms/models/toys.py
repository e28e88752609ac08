"""Toy models of the families that transformers has: random weights in the architecture of the family.

A toy has the architecture of its recipe and sizes of its own, for transformers (`config`) and for Megatron (`model`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_SIZES: dict[str, Any] = {
    "vocab_size": 256, "hidden_size": 64, "intermediate_size": 176, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 4, "max_position_embeddings": 64, "initializer_range": 0.2, "rms_norm_eps": 1e-6,
    "pad_token_id": 255, "bos_token_id": 1, "eos_token_id": 2,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}  # fmt: skip
_MODEL: dict[str, Any] = {
    "num_layers": 4, "hidden_size": 64, "num_attention_heads": 8, "num_query_groups": 4, "ffn_hidden_size": 176,
    "vocab_size": 256, "max_position_embeddings": 64, "norm_epsilon": 1e-6, "rotary_base": 10000,
}  # fmt: skip


@dataclass(frozen=True)
class Toy:
    """A family: its recipe, the class of its configuration in transformers, and what differs from the common sizes."""

    recipe: str
    kind: str
    config: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)

    def build(self) -> Any:
        """The model with random weights. `import torch` must be answered."""
        import torch
        import transformers

        torch.manual_seed(0)
        config = getattr(transformers, self.kind)(**{**_SIZES, **self.config})
        return transformers.AutoModelForCausalLM.from_config(config, dtype="float32").eval()

    def make(self, folder: Path) -> Path:
        """Writes the model into a folder."""
        self.build().save_pretrained(folder)
        return folder

    def words(self) -> list[str]:
        """KEY=VALUE for the section `model`, over the recipe."""
        return [f"model.{name}={value}" for name, value in {**_MODEL, **self.model}.items()]


def _rope(base: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """A base of rotary embeddings, for transformers and for Megatron."""
    return {"rope_parameters": {"rope_type": "default", "rope_theta": base}}, {"rotary_base": int(base)}


_TIED = {"tie_word_embeddings": True}
_EXPERTS = {"num_experts": 4, "moe_router_topk": 2}
_LATENT = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
}
_GROUPED = {"n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "n_group": 1, "topk_group": 1,
            "first_k_dense_replace": 1, "n_shared_experts": 1}  # fmt: skip
TOYS = {
    "Bloom": Toy("bloom-7b", "BloomConfig", {"n_layer": 2, "n_head": 8}),
    "CodeLlama": Toy("codellama-34b", "LlamaConfig", *_rope(1e6)),
    "DeepSeek-V3": Toy("deepseek-v3", "DeepseekV3Config", {**_LATENT, **_GROUPED, "num_key_value_heads": 8}),
    "GLM-4.5": Toy("glm-4.5", "Glm4MoeConfig", {**_GROUPED, "head_dim": 16}),
    "GPT-3": Toy("gpt3-175b", "GPT2Config", {"n_embd": 64, "n_layer": 2, "n_head": 8, "n_positions": 64}),
    "GPT-OSS": Toy(
        "gpt-oss-20b", "GptOssConfig", {"num_local_experts": 4, "num_experts_per_tok": 2, "head_dim": 16}
    ),
    "Gemma": Toy("gemma-2b", "GemmaConfig", {"head_dim": 16}, {"kv_channels": 16}),
    "Gemma 2": Toy(
        "gemma2-2b", "Gemma2Config", {"head_dim": 16, "query_pre_attn_scalar": 16}, {"kv_channels": 16}
    ),
    "LLaMA": Toy("llama-7b", "LlamaConfig", {"num_key_value_heads": 8}, {"num_query_groups": 8}),
    "LLaMA2": Toy("llama2-7b", "LlamaConfig"),
    "LLaMA3": Toy("llama3-8b", "LlamaConfig", *_rope(5e5)),
    "Mistral": Toy("mistral-7b", "MistralConfig"),
    "Mixtral": Toy(
        "mixtral-8x7b", "MixtralConfig", {"num_local_experts": 4, "num_experts_per_tok": 2}, _EXPERTS
    ),
    "Qwen1.5": Toy("qwen1.5-0.5b", "Qwen2Config", _TIED),
    "Qwen2.5": Toy("qwen2.5-0.5b", "Qwen2Config", _TIED),
    "Qwen3": Toy("qwen3-0.6b", "Qwen3Config", {**_TIED, "head_dim": 16}, {"kv_channels": 16}),
    "Qwen3-MoE": Toy(
        "qwen3-30b-a3b",
        "Qwen3MoeConfig",
        {"head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
        {**_EXPERTS, "kv_channels": 16, "moe_ffn_hidden_size": 32},
    ),
    "Yi": Toy("yi-34b", "LlamaConfig", *_rope(5e6)),
}
