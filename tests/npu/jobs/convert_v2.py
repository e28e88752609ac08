"""Converts small models of Hugging Face to Megatron and back with MindSpeed-LLM's convert_ckpt_v2.py, in one process.

    python convert_v2.py SCRIPT FOLDER

Prints a JSON object: for each case "equal", or the names of the weights that differ, or the error.
"""

from __future__ import annotations

import json
import logging
import runpy
import sys
import traceback
from pathlib import Path

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen2Config, Qwen3Config, Qwen3MoeConfig

COMMON = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 4,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "head_dim": 16}
# The name for --model-type-hf -> its configuration.
MODELS = {
    "qwen25": lambda: Qwen2Config(**COMMON),
    "llama2": lambda: LlamaConfig(**COMMON),
    "qwen3": lambda: Qwen3Config(**COMMON, head_dim=16),
    "qwen3-moe": lambda: Qwen3MoeConfig(**COMMON, **EXPERTS),
}
TENSOR, PIPELINE, EXPERT = (f"--target-{kind}-parallel-size 2" for kind in ("tensor", "pipeline", "expert"))
LAYOUTS = {
    "alone": "",
    "tensor": TENSOR,
    "pipeline": PIPELINE,
    "both": f"{TENSOR} {PIPELINE}",
    "virtual": f"{PIPELINE} --num-layers-per-virtual-pipeline-stage 1",
    "uneven": f"{PIPELINE} --num-layer-list 1,3",
}
CASES = {
    **{f"qwen25, {name}": ("qwen25", words) for name, words in LAYOUTS.items()},
    "llama2, both": ("llama2", LAYOUTS["both"]),
    "qwen3, both": ("qwen3", LAYOUTS["both"]),
    "qwen3-moe, alone": ("qwen3-moe", ""),
    "qwen3-moe, experts": ("qwen3-moe", EXPERT),
    "qwen3-moe, all": ("qwen3-moe", f"{TENSOR} {PIPELINE} {EXPERT} --expert-tensor-parallel-size 1"),
}


def convert(script: str, words: str) -> None:
    sys.argv = [script, *words.split()]
    runpy.run_path(script, run_name="__main__")


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        found |= load_file(file)
    return found


def answer(script: str, folder: Path, kind: str, layout: str, case: str) -> str:
    """Whether the weights are the same after both conversions, to the bit."""
    start, there, back = (
        folder / kind,
        folder / f"{case} there".replace(" ", "_"),
        folder / f"{case} back".replace(" ", "_"),
    )
    convert(
        script,
        f"--load-model-type hf --save-model-type mg --model-type-hf {kind} --load-dir {start} --save-dir {there} {layout}",
    )
    settings = f"--load-dir {there} --save-dir {back} --hf-cfg-dir {start}"
    convert(script, f"--load-model-type mg --save-model-type hf --model-type-hf {kind} {settings}")
    one, other = weights(start), weights(back)
    wrong = sorted(one.keys() ^ other.keys()) or [
        name for name in one if not torch.equal(one[name], other[name])
    ]
    return " ".join(wrong) or "equal"


def main(script: str, folder: Path) -> None:
    logging.disable(logging.INFO)
    torch.manual_seed(0)
    for kind, config in MODELS.items():
        AutoModelForCausalLM.from_config(config()).save_pretrained(folder / kind)
        settings = folder / kind / "config.json"
        # transformers 5 writes num_local_experts, and published models have the name that upstream reads
        settings.write_text(settings.read_text().replace('"num_local_experts"', '"num_experts"'))
    found = {}
    for case, (kind, layout) in CASES.items():
        try:
            found[case] = answer(script, folder, kind, layout, case)
        except (Exception, SystemExit) as error:  # upstream's own error is the answer of its case
            traceback.print_exc()
            found[case] = f"{type(error).__name__}: {error}"
    print("cases", json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
