"""vLLM's settings. MindSpeed-RL writes its VLLM_DP_... into this module."""
