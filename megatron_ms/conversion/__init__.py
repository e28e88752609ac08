"""Models between Hugging Face's format, Megatron's checkpoints and peft's adapters. Each conversion is proven before it counts."""
