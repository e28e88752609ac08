"""Small random models of many families: what a training step and generation give. Weights come from torch's own random
stream, so the numbers of PyTorch are those of every faithful torch."""

from __future__ import annotations

_COMMON = {
    "vocab_size": 320,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
}
_GATED = {**_COMMON, "intermediate_size": 128, "num_key_value_heads": 2}
_BERT = {
    **_COMMON,
    "intermediate_size": 128,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_ENCODER_DECODER = {
    "vocab_size": 320,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "dropout": 0.0,
}
_TOWER = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
_STATE_SPACE = {"vocab_size": 320, "hidden_size": 64, "num_hidden_layers": 2}
_LATENT = {
    "intermediate_size": 128,
    "moe_intermediate_size": 32,
    "num_key_value_heads": 4,
    "n_routed_experts": 4,
    "n_group": 2,
    "topk_group": 1,
    "num_experts_per_tok": 2,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 16,
    "first_k_dense_replace": 1,
}

# family: (model class, configuration class, its arguments)
FAMILIES = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", _GATED),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", _GATED),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**_GATED, "head_dim": 16}),
    "qwen3_moe": (
        "Qwen3MoeForCausalLM",
        "Qwen3MoeConfig",
        {**_GATED, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32},
    ),
    "mistral": ("MistralForCausalLM", "MistralConfig", {**_GATED, "sliding_window": 16}),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {**_GATED, "num_local_experts": 4}),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**_GATED, "head_dim": 16}),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", {**_GATED, "pad_token_id": 0}),
    "deepseek_v3": ("DeepseekV3ForCausalLM", "DeepseekV3Config", {**_COMMON, **_LATENT}),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {
            "vocab_size": 320,
            "n_embd": 64,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 128,
            "attn_pdrop": 0.0,
            "embd_pdrop": 0.0,
            "resid_pdrop": 0.0,
        },
    ),
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {
            "vocab_size": 320,
            "hidden_size": 64,
            "n_layer": 2,
            "n_head": 4,
            "hidden_dropout": 0.0,
            "attention_dropout": 0.0,
        },
    ),
    "falcon": (
        "FalconForCausalLM",
        "FalconConfig",
        {
            "vocab_size": 320,
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "hidden_dropout": 0.0,
            "attention_dropout": 0.0,
        },
    ),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {**_COMMON, "ffn_dim": 128, "word_embed_proj_dim": 64, "dropout": 0.0},
    ),
    "gemma3": ("Gemma3ForCausalLM", "Gemma3TextConfig", {**_GATED, "head_dim": 16, "sliding_window": 16}),
    "olmoe": ("OlmoeForCausalLM", "OlmoeConfig", {**_GATED, "num_experts": 4, "num_experts_per_tok": 2}),
    "gpt_oss": (
        "GptOssForCausalLM",
        "GptOssConfig",
        {**_GATED, "head_dim": 16, "num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 16},
    ),
    "mamba": ("MambaForCausalLM", "MambaConfig", {**_STATE_SPACE, "state_size": 8}),
    "mamba2": (
        "Mamba2ForCausalLM",
        "Mamba2Config",
        {**_STATE_SPACE, "state_size": 16, "num_heads": 8, "head_dim": 16, "n_groups": 2, "chunk_size": 8},
    ),
    "jamba": (
        "JambaForCausalLM",
        "JambaConfig",
        {
            **_GATED,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
            "num_experts": 4,
            "mamba_d_state": 8,
            "pad_token_id": 0,
        },
    ),
    # Its attention takes the 8 largest of values that are equal at first, so the choice among equal ones shows.
    "doge": ("DogeForCausalLM", "DogeConfig", {**_GATED, "keep_window_size": 8}),
    "deberta_v2": (
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        {**_BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16},
    ),
    "bert": ("BertForMaskedLM", "BertConfig", _BERT),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", _BERT),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": 320,
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 128,
            "num_layers": 2,
            "num_heads": 4,
            "dropout_rate": 0.0,
            "decoder_start_token_id": 0,
        },
    ),
    "bart": (
        "BartForConditionalGeneration",
        "BartConfig",
        {**_ENCODER_DECODER, "max_position_embeddings": 128},
    ),
    "vit": ("ViTForImageClassification", "ViTConfig", {**_TOWER, "image_size": 32, "patch_size": 8}),
    "clip": (
        "CLIPModel",
        "CLIPConfig",
        {
            "text_config": {**_TOWER, "vocab_size": 320, "max_position_embeddings": 64, "eos_token_id": 2},
            "vision_config": {**_TOWER, "image_size": 32, "patch_size": 8},
            "projection_dim": 32,
        },
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **_ENCODER_DECODER,
            "num_mel_bins": 8,
            "max_source_positions": 32,
            "max_target_positions": 64,
            "decoder_start_token_id": 1,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
    ),
}
_NO_TEXT = ("bert", "roberta", "deberta_v2", "vit", "clip")  # families that do not write


def build(torch, transformers, family: str):
    """The model of a family, with the weights of seed 0."""
    model, configuration, arguments = FAMILIES[family]
    torch.manual_seed(0)
    return getattr(transformers, model)(getattr(transformers, configuration)(**arguments))


def _inputs(torch, family: str) -> dict:
    ids = torch.randint(3, 320, (2, 24))
    if family == "vit":
        return {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.tensor([0, 1])}
    if family == "clip":
        return {"input_ids": ids, "pixel_values": torch.randn(2, 3, 32, 32), "return_loss": True}
    if family == "whisper":
        return {"input_features": torch.randn(2, 8, 64), "labels": ids}
    return {"input_ids": ids, "labels": ids}


def run(torch, transformers, family: str, device: str = "cpu") -> dict:
    """The loss, the norm of all gradients, some logits, and the outputs of greedy search, sampling and beam search.

    Weights and inputs are drawn on the host. There is no sampling on other devices: their random numbers are others.
    """
    model = build(torch, transformers, family).train().to(device)
    inputs = {
        name: value if value is True else value.to(device) for name, value in _inputs(torch, family).items()
    }
    output = model(**inputs)
    output.loss.backward()
    norms = [p.grad.double().norm() ** 2 for p in model.parameters() if p.grad is not None]
    logits = output.logits_per_text if family == "clip" else output.logits
    found = {
        "loss": output.loss.item(),
        "gradient_norm": float(sum(norms)) ** 0.5,
        "logits": logits.detach().flatten()[:: max(1, logits.numel() // 50)].tolist(),
    }
    if family in _NO_TEXT:
        return found
    model.eval()
    prompt = (
        {"input_features": torch.randn(1, 8, 64).to(device)}
        if family == "whisper"
        else {"input_ids": inputs["input_ids"][:1, :8]}
    )
    torch.manual_seed(3)
    found["greedy"] = model.generate(**prompt, do_sample=False, max_new_tokens=6).tolist()
    if device == "cpu":
        found["sample"] = model.generate(**prompt, do_sample=True, top_k=20, max_new_tokens=6).tolist()
    found["beam"] = model.generate(**prompt, num_beams=3, do_sample=False, max_new_tokens=6).tolist()
    return found
