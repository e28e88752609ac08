"""The names of vLLM's plugin for Ascend that MindSpeed-RL 2.3.0 imports. None of them is used on a CPU."""

from megatron_ms.rollout import absent

absent.answer(
    "vllm_ascend." + name
    for name in (
        "ascend_config",
        "ascend_forward_context",
        "distributed.parallel_state",
        "envs",
        "ops.expert_load_balancer",
        "ops.fused_moe",
        "patch",
        "utils",
    )
)
