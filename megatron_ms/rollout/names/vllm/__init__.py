"""vLLM's names, as far as MindSpeed-RL 2.3.0 imports them. `LLM` generates with transformers on a CPU."""

from megatron_ms.rollout import absent
from megatron_ms.rollout.engine import LLM, CompletionOutput, RequestOutput, SamplingParams

__all__ = ["LLM", "CompletionOutput", "RequestOutput", "SamplingParams"]

absent.answer(
    "vllm." + name
    for name in (
        "attention",
        "forward_context",
        "inputs",
        "lora.request",
        "model_executor.layers",
        "model_executor.layers.fused_moe",
        "model_executor.layers.fused_moe.layer",
        "model_executor.layers.linear",
        "model_executor.layers.quantization",
        "model_executor.layers.rotary_embedding",
        "model_executor.layers.vocab_parallel_embedding",
        "model_executor.models",
        "multimodal",
        "pooling_params",
        "prompt_adapter.request",
        "sampling_params",
        "v1.core",
        "v1.core.kv_cache_utils",
        "v1.engine",
        "v1.engine.core",
        "v1.engine.parallel_sampling",
        "v1.kv_cache_interface",
    )
)
