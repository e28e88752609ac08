"""Proves at toy size that a family works with run.backend: hf, and prints what was measured.

    python -m megatron_ms.models.prove [FAMILY ...]

For each family that transformers has: LoRA's matrices are trained with the program of the backend and the loss falls; the greedy
tokens of `generate`, which keeps keys and values, are those of whole forward passes; and the merged model has the output of model
and adapter. With MSADAPTER_RECORD_EVIDENCE=1 the proofs are recorded.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from ..conversion import adapter
from ..inference.engine import provide_torch
from . import levels
from .toys import TOYS, VARIANTS, Toy

_STEPS, _LENGTH, _PROMPT = 12, 12, [5, 9, 13, 2, 40]
SOURCE = "python -m megatron_ms.models.prove"


def generates(model: Any) -> int:
    """The number of greedy tokens that equal those of whole forward passes.

    Raises:
        ValueError: they differ.
    """
    import torch

    ids = torch.tensor([_PROMPT])
    with torch.inference_mode():
        found = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=_LENGTH,
            min_new_tokens=_LENGTH,
            do_sample=False,
        )
        for place in range(len(_PROMPT), found.shape[1]):
            logits = model(found[:, :place]).logits[0, -1].float()
            logits[model.config.eos_token_id] = -float("inf")  # as min_new_tokens asks for
            chosen = float(logits[found[0, place]])
            if chosen < float(logits.max()) - 1e-4:
                raise ValueError(f"token {place} of generate is not the likeliest one")
    return int(found.shape[1]) - len(_PROMPT)


def trains(model: Any, folder: Path) -> tuple[float, float]:
    """Trains an adapter and writes it. Returns the losses of the first and the last step.

    Raises:
        ValueError: the loss did not fall.
    """
    import transformers

    from ..training import hf_program

    own = hf_program.Own(model_folder="", lora_rank=4, lora_alpha=16)
    tuned = hf_program.adapted(model, own)
    rows = [[(start + 3 * step) % 250 for step in range(16)] for start in range(0, 32, 4)]
    options = transformers.TrainingArguments(
        str(folder), max_steps=_STEPS, per_device_train_batch_size=len(rows), learning_rate=1e-2, logging_steps=1,
        lr_scheduler_type="constant", report_to="none", save_strategy="no", disable_tqdm=True, use_cpu=True,
    )  # fmt: skip
    trainer = transformers.Trainer(
        model=tuned,
        args=options,
        train_dataset=[{"input_ids": row, "labels": row} for row in rows],
        data_collator=hf_program.Padded(0),
    )
    trainer.remove_callback(transformers.PrinterCallback)
    trainer.train()
    losses = [log["loss"] for log in trainer.state.log_history if "loss" in log]
    if not losses[-1] < losses[0]:
        raise ValueError(f"the loss is {losses[0]:.4f} before and {losses[-1]:.4f} after {_STEPS} steps")
    tuned.save_pretrained(folder)
    return losses[0], losses[-1]


def prove(toy: Toy, folder: Path) -> dict[str, Any]:
    """What was measured of a family. An exception says what is wrong."""
    provide_torch()
    base = toy.make(folder / "model")
    tokens = generates(toy.build())
    first, last = trains(toy.build(), folder / "adapter")
    merged = adapter.merge(folder / "adapter", base, folder / "merged", True)
    return {"tokens": tokens, "first loss": first, "last loss": last, "merged logits": merged["logits"]}


def _said(found: dict[str, Any]) -> str:
    losses = f"loss {found['first loss']:.3f} to {found['last loss']:.3f} in {_STEPS} steps"
    return f"{found['tokens']} tokens, {losses}, merged logits {found['merged logits']:.1e}"


def main(names: list[str]) -> int:
    """Proves the families and returns 1 if one failed."""
    failed = []
    listed = [(name, toy) for name in names or TOYS for toy in [TOYS[name], *VARIANTS.get(name, [])]]
    for name, toy in listed:
        with tempfile.TemporaryDirectory() as folder:
            try:
                found = prove(toy, Path(folder))
            except Exception as error:  # the other families are still to be proven
                failed.append(name)
                print(f"{toy.recipe}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
                continue
        print(f"{toy.recipe}: {json.dumps(found)}", flush=True)
        release = f"transformers {importlib.metadata.version('transformers')}"
        levels.record(name, "hf", SOURCE, release, toy.recipe, _said(found))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
