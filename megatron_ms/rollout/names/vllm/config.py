"""The configuration that vLLM keeps while it builds a model."""

from megatron_ms.rollout.engine import VllmConfig

__all__ = ["VllmConfig", "get_current_vllm_config"]


def get_current_vllm_config() -> None:
    """None, as vLLM says outside the building of a model: one data-parallel group then has one rank."""
