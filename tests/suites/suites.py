"""Which tests of other projects are run, and which of them are left out on both sides, with the reason."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

NEEDS_OTHERS = {  # words in a test's name: why it is left out
    "fsdp": "starts processes that shard a model with FSDP2",
    "tensor_parallel": "starts processes for transformers' tensor parallelism on DTensor",
    "expert_parallel": "starts processes for transformers' expert parallelism on DTensor",
    "test_tp_": "starts processes for transformers' tensor parallelism on DTensor",
    "compil": "tests torch.compile",
    "export": "tests torch.export, ONNX or ExecuTorch",
    "flash_attn": "needs flash-attn on a GPU",
    "flash_attention": "needs flash-attn on a GPU",
    "flex_attention": "tests torch.compile",
    "IntegrationTest": "downloads weights",
    "TestIntegration": "downloads weights",
    "pipeline": "downloads tokenizers",
}


@dataclass(frozen=True)
class Suite:
    """A project's tests. ``variable`` names the environment variable with its checkout; ``files`` are by family."""

    variable: str
    files: dict[str, str]
    packages: tuple[str, ...]  # whose versions are recorded
    left_out: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    folder: str = "."  # where pytest is run

    def present(self, checkout: Path) -> dict[str, str]:
        return {
            family: file for family, file in self.files.items() if (checkout / self.folder / file).exists()
        }


# fmt: off
_FAMILIES = (
    # decoders of text
    "llama", "qwen2", "qwen3", "mistral", "gemma", "gpt2", "bloom", "falcon", "gemma2", "phi", "phi3", "glm", "glm4",
    "olmo2", "granite", "cohere2", "opt", "gpt_neox", "gptj", "starcoder2", "stablelm", "persimmon",
    # with experts, states or linear attention
    "mixtral", "qwen2_moe", "qwen3_moe", "qwen3_next", "deepseek_v2", "deepseek_v3", "gpt_oss", "mamba", "mamba2", "jamba",
    "bamba",
    # encoders of text, or with a decoder
    "bert", "roberta", "distilbert", "deberta_v2", "electra", "albert", "modernbert", "longformer", "reformer", "t5", "bart",
    "mbart",
    # pictures and sound, alone or with text
    "vit", "swin", "deit", "convnext", "detr", "segformer", "dinov2", "whisper", "wav2vec2", "hubert", "sew_d", "clip", "siglip",
    "blip_2", "llava", "gemma3", "qwen2_vl", "qwen2_5_vl",
)
# fmt: on
SUITES = {
    "safetensors": Suite(
        "MSADAPTER_SAFETENSORS",
        {
            name: f"tests/test_{name}.py"
            for name in (
                "pt_comparison",
                "pt_model",
                "simple",
                "handle",
                "threadable",
                "multithreaded",
                "pread_backend",
            )
        },
        ("safetensors",),
        folder="bindings/python",
    ),
    "einops": Suite(
        "MSADAPTER_EINOPS",
        {
            name: f"einops/tests/test_{name}.py"
            for name in ("einsum", "examples", "layers", "ops", "other", "packing", "parsing")
        },
        ("einops",),
        left_out={"compil": "tests torch.compile", "notebook": "downloads notebooks' packages"},
        environment={"EINOPS_TEST_BACKENDS": "numpy,torch"},
    ),
    "accelerate": Suite(
        "MSADAPTER_ACCELERATE",
        {
            name: f"tests/test_{name}.py"
            for name in (
                "accelerator",
                "big_modeling",
                "data_loader",
                "hooks",
                "kwargs_handlers",
                "memory_utils",
                "modeling_utils",
                "offload",
                "optimizer",
                "scheduler",
            )
        },
        ("accelerate", "transformers"),
        left_out={
            "dynamo": "tests torch.compile",
            "compil": "tests torch.compile",
            "fsdp": "starts processes that shard a model with FSDP2",
            "multi_": "starts processes, or needs several devices",
            "ddp": "starts processes, or needs several devices",
            "deepspeed": "needs DeepSpeed",
        },
        environment={"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
    ),
    "transformers": Suite(
        "MSADAPTER_TRANSFORMERS",
        {name: f"tests/models/{name}/test_modeling_{name}.py" for name in _FAMILIES},
        ("transformers", "tokenizers", "safetensors", "accelerate", "huggingface_hub"),
        left_out=NEEDS_OTHERS,
        environment={"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
    ),
    "peft": Suite(
        "MSADAPTER_PEFT",
        {
            name: f"tests/test_{name}.py"
            for name in (
                "adamss_asa",
                "bdlora",
                "boft",
                "bufferdict",
                "config",
                "cpt",
                "custom_models",
                "deft",
                "frod",
                "incremental_pca",
                "initialization",
                "integrations",
                "lora_conversion",
                "lora_ga",
                "lora_variants",
                "lorafa",
                "loraplus",
                "low_level_api",
                "mapping",
                "mixed",
                "osf",
                "other",
                "poly",
                "pvera",
                "randlora",
                "riemannian_lora",
                "shira",
                "supertuning",
                "target_parameters",
                "trainable_tokens",
                "tuners_utils",
                "unilora",
                "vblora",
                "velora",
                "vera",
                "xlora",
            )
        },
        ("peft", "transformers", "accelerate"),
        left_out={"compil": "tests torch.compile"},
        options=("-o", "addopts="),  # peft's own ask for a report of coverage
        environment={"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"},
    ),
    "gpytorch": Suite(
        "MSADAPTER_GPYTORCH",
        {
            name: f"test/{name}"
            for name in (
                "constraints",
                "distributions",
                "examples",
                "functions",
                "kernels",
                "lazy",
                "likelihoods",
                "means",
                "metrics",
                "mlls",
                "models",
                "optim",
                "priors",
                "utils",
                "variational",
            )
        },
        ("gpytorch", "linear_operator"),
    ),
    "pyro": Suite(
        "MSADAPTER_PYRO",
        {name: f"tests/{name}" for name in ("distributions", "nn", "ops", "optim", "params", "poutine")}
        | {
            "infer": "tests/infer",
            "gaussian processes": "tests/contrib/gp",
            "primitives": "tests/test_primitives.py",
        },
        ("pyro-ppl",),
        left_out={"jit": "tests torch.jit"},
    ),
    "kornia": Suite(
        "MSADAPTER_KORNIA",
        {
            name: f"tests/{name}"
            for name in (
                "augmentation",
                "color",
                "core",
                "enhance",
                "feature",
                "filters",
                "geometry",
                "losses",
                "metrics",
                "morphology",
                "sensors",
                "tracking",
            )
        },
        ("kornia",),
        left_out={
            "dynamo": "tests torch.compile",
            "compil": "tests torch.compile",
            "onnx": "tests torch.export, ONNX or ExecuTorch",
            "jit": "tests torch.jit",
        },
    ),
}
