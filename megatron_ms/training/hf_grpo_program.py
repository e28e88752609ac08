"""Learns from the rewards of rules with trl's GRPOTrainer. It is started when run.backend is hf and run.task is grpo.

Its flags are those of trl's GRPOConfig, of hf_program.py and of `OwnGrpo`. With rows for validation it writes
`validation.json` into the folder above output_dir: the mean rewards of the most probable completions, before and after.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import hf_program as shared  # Python finds it in the folder of this file

from megatron_ms.convert.steps import write_atomically
from megatron_ms.training import rewards


@dataclass
class OwnGrpo(shared.Own):
    """The rules, and what is validated."""

    rules: list[str] = field(default_factory=list, metadata={"help": "names of rules, or FILE.py:FUNCTION"})
    validation: str = field(
        default="", metadata={"help": "JSON lines whose rewards are measured before and after"}
    )


def main() -> None:
    import datasets
    import trl

    own, options = shared.parsed(trl.GRPOConfig, OwnGrpo)
    tokenizer = shared.tokenizer_of(own)
    if tokenizer is None:
        raise SystemExit(f"{own.tokenizer_folder or own.model_folder}: has no tokenizer, which grpo needs")
    if not shared.has_weights(Path(own.model_folder)):
        raise SystemExit(f"{own.model_folder}: has no weights, and grpo needs a model that has learned")
    try:
        rules = [rewards.find(name) for name in own.rules]
    except ValueError as error:
        raise SystemExit(f"grpo.reward: {error}") from None
    tokenizer.padding_side = "left"
    rows = [row for file in own.rows for row in _prompts(file)]
    held = list(_prompts(own.validation)) if own.validation else []
    model = shared.loaded(own, options)
    trainer = trl.GRPOTrainer(
        model=shared.adapted(model, own) if own.lora_load else model,
        reward_funcs=rules,
        args=options,
        train_dataset=datasets.Dataset.from_list(shared.some(rows, own)),
        processing_class=tokenizer,
        peft_config=shared.lora(own),
        callbacks=[shared.recorder()],
    )
    before = _validated(trainer, tokenizer, rules, held, options)
    shared.finish(trainer, own)
    if held:
        after = _validated(trainer, tokenizer, rules, held, options)
        text = json.dumps({"rows": len(held), "before": before, "after": after}, indent=1)
        write_atomically(Path(options.output_dir).parent / "validation.json", text + "\n")


def _prompts(file: str) -> Sequence[dict[str, Any]]:
    """The rows of JSON lines, each with a prompt: a text, or a list of messages.

    Raises:
        SystemExit: a line is damaged. The message names it.
    """
    found = []
    with open(file, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise SystemExit(f"{file}, line {number}: is not JSON: {error}") from None
            if not isinstance(row, dict) or not isinstance(row.get("prompt"), str | list):
                raise SystemExit(
                    f"{file}, line {number}: has no prompt, which is a text or a list of messages"
                )
            found.append(row)
    return found


def _validated(
    trainer: Any, tokenizer: Any, rules: Sequence[rewards.Rule], rows: list[dict[str, Any]], options: Any
) -> float:
    """The mean reward of the most probable completions of the rows; 0 without rows."""
    import torch

    model, total, size = trainer.model, 0.0, 64
    training = model.training
    model.eval()
    for start in range(0, len(rows), size):
        some = rows[start : start + size]
        texts = [
            row["prompt"]
            if isinstance(row["prompt"], str)
            else tokenizer.apply_chat_template(row["prompt"], add_generation_prompt=True, tokenize=False)
            for row in some
        ]
        batch = tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False).to(model.device)
        with torch.no_grad():
            ids = model.generate(
                input_ids=batch["input_ids"],
                attention_mask=batch["attention_mask"],
                do_sample=False,
                max_new_tokens=options.max_completion_length,
            )[:, batch["input_ids"].shape[1] :]
        given = {
            "prompts": [row["prompt"] for row in some],
            "completions": tokenizer.batch_decode(ids, skip_special_tokens=True),
            "completion_ids": ids.tolist(),
            **{name: [row[name] for row in some] for name in some[0] if name != "prompt"},
        }
        total += sum(sum(rule(**given)) for rule in rules)
    model.train(training)
    return total / len(rows) if rows else 0.0


if __name__ == "__main__":
    main()
