"""From a Megatron checkpoint with matrices of LoRA to an adapter of peft, which is proven with the model that it belongs to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..inference.engine import provide_torch
from ..training import megatron
from ..training.folder import LATEST
from . import adapter, checkpoints, coding, coding_program, forward, weights
from .upstream import Job, like_of
from .work import ProofError

if TYPE_CHECKING:
    from ..config import Document
    from .section import Convert

_WEIGHT = ".weight"
_DTYPES = {"float32": "F32", "bf16": "BF16", "fp16": "F16"}


def to_adapter(document: Document, keys: Convert, source: Path, work: Path) -> dict[str, Any]:
    """Writes `result`, an adapter of peft for the model in `convert.like`, and returns the proofs.

    Raises:
        UserError: the configuration trains no matrices, or peft is not installed.
        ProofError: the checkpoint belongs to another model, or the outputs differ.
    """
    like = like_of(document, keys)
    if keys.forward:
        adapter.peft()  # before the work, not after it
    job = Job(document, keys, like, work)
    job.refuse_adapters()
    if not megatron.adapts(job.settings):
        raise document.error(
            "run.task",
            "must be lora, because only such a training leaves an adapter: give the file of that training",
        )
    source = job.plain(source)
    dtype = _DTYPES[job.settings.train.precision]
    plain, coded, matrices = work / "weights", work / "coded", work / "matrices.safetensors"
    words: list[object] = [
        checkpoints.latest(source),
        plain / "iter_0000001",
        coded / "iter_0000001",
        matrices,
    ]
    words.append(job.settings.parallel.expert)
    job.run([sys.executable, coding_program.__file__, *words], 1, "taking the matrices out")
    for folder in (plain, coded):
        (folder / LATEST).write_text("1", encoding="utf-8")
        job.to_huggingface(folder, dtype, work / f"{folder.name}-of-transformers")
    base = work / "weights-of-transformers"
    if wrong := weights.difference(weights.tensors(like), weights.tensors(base)):
        raise ProofError(f"{like} is not the model that was trained: {wrong}")
    tune, result = job.settings.tune, work / "result"
    made = _matrices(work / "coded-of-transformers", matrices, tune.rank)
    _write(result, made, tune.rank, tune.alpha, like)
    found: dict[str, Any] = {"layout": job.layout, "matrices": len(made), "weights": "bit for bit"}
    if keys.forward:
        model = adapter.load(result, like)
        found["logits"] = forward.compare(
            forward.logits(model), job.logits(source), dtype, "Megatron and the adapter"
        )
    return found


def _matrices(coded: Path, others: Path, rank: int) -> dict[str, Any]:
    """The matrices by their names in peft.

    Raises:
        ProofError: a matrix of Megatron is not in the result.
    """
    provide_torch()
    from safetensors.torch import load_file

    second = load_file(others)
    made: dict[str, Any] = {}
    used = set()
    for file in weights.files(coded):
        for name, tensor in load_file(file).items():
            carried = coding.decode(tensor, rank) if name.endswith(_WEIGHT) else None
            if carried is not None:
                number, by_rows, matrix = carried
                other = f"{number}.{'A' if by_rows else 'B'}"
                used.add(other)
                a, b = (second[other], matrix) if by_rows else (matrix, second[other])
                module = f"base_model.model.{name.removesuffix(_WEIGHT)}"
                made[f"{module}.lora_A.weight"] = a.clone().contiguous()
                made[f"{module}.lora_B.weight"] = b.clone().contiguous()
    if lost := sorted(set(second) - used):
        raise ProofError(f"the converter lost {len(lost)} of {len(second)} layers with matrices")
    return made


def _write(folder: Path, made: dict[str, Any], rank: int, alpha: int, like: Path) -> None:
    """An adapter as peft writes it."""
    from safetensors.torch import save_file

    folder.mkdir()
    save_file(made, folder / "adapter_model.safetensors", {"format": "pt"})
    facts = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": str(like.absolute()),
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "bias": "none",
        "target_modules": sorted({name.split(".lora_")[0].rpartition(".")[2] for name in made}),
        "inference_mode": True,
    }
    (folder / adapter.CONFIG).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
