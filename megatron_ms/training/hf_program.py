"""Trains a causal language model with transformers' Trainer. The command `train` starts it when run.backend is hf.

Its flags are those of TrainingArguments and of `Own`. It prints a line `record: {JSON}` for each of the Trainer's logs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Own:
    """What is trained on what."""

    model_folder: str = field(
        metadata={"help": "a folder with config.json; without weights the model is new"}
    )
    rows: list[str] = field(
        default_factory=list, metadata={"help": "files of JSON lines with input_ids, and labels"}
    )
    tokenizer_folder: str = field(
        default="", metadata={"help": "the tokenizer's folder (default: the model's)"}
    )
    row_length: int = field(
        default=0, metadata={"help": "cut joined documents into rows of this length (pretraining)"}
    )
    lora_rank: int = field(default=0, metadata={"help": "rank of LoRA's matrices; 0 trains all weights"})
    lora_alpha: int = field(default=16, metadata={"help": "LoRA adds alpha / rank times their product"})
    lora_targets: list[str] = field(
        default_factory=list, metadata={"help": "layers that get LoRA's matrices"}
    )
    resumed: bool = field(default=False, metadata={"help": "go on from the last checkpoint in output_dir"})


def main() -> None:
    import transformers

    parser = transformers.HfArgumentParser((Own, transformers.TrainingArguments))
    own, options = parser.parse_args_into_dataclasses()
    transformers.set_seed(options.seed)
    rows = list(_cut(_rows(own.rows), own.row_length) if own.row_length else _rows(own.rows))
    if not rows:
        raise SystemExit(f"{', '.join(own.rows)}: there is no row to train on")
    model = _model(own)
    trainer = transformers.Trainer(
        model=model,
        args=options,
        train_dataset=rows,
        data_collator=_Padded(_filler(own, model)),
        callbacks=[_recorder()],
    )
    trainer.train(resume_from_checkpoint=own.resumed or None)
    if options.save_strategy != "no":
        trainer.save_model(str(Path(options.output_dir) / "final"))


def _rows(files: Iterable[str]) -> Iterator[dict[str, list[int]]]:
    """The rows of the files. Without labels, all tokens are learned."""
    for file in files:
        with open(file, encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    row = json.loads(line)
                    ids = [int(one) for one in row["input_ids"]]
                    yield {"input_ids": ids, "labels": [int(one) for one in row.get("labels", ids)]}
                except (ValueError, KeyError, TypeError) as error:
                    raise SystemExit(f"{file}, line {number}: no row with input_ids: {error!r}") from None


def _cut(rows: Iterable[dict[str, list[int]]], length: int) -> Iterator[dict[str, list[int]]]:
    """Joins documents and cuts them into rows of one length; the rest is left out, as in Megatron's data sets."""
    held: list[int] = []
    for row in rows:
        held += row["input_ids"]
        while len(held) >= length:
            yield {"input_ids": held[:length], "labels": held[:length]}
            held = held[length:]


def _model(own: Own) -> Any:
    import transformers

    place = Path(own.model_folder)
    if list(place.glob("*.safetensors")) or list(place.glob("*.bin")):
        model = transformers.AutoModelForCausalLM.from_pretrained(place)
    else:
        model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(place))
    if not own.lora_rank:
        return model
    import peft

    targets = own.lora_targets or "all-linear"
    options = peft.LoraConfig(
        r=own.lora_rank, lora_alpha=own.lora_alpha, target_modules=targets, task_type="CAUSAL_LM"
    )
    return peft.get_peft_model(model, options)


def _filler(own: Own, model: Any) -> int:
    """The id that fills short rows. Their labels say that it is not learned."""
    import transformers

    place = Path(own.tokenizer_folder or own.model_folder)
    if (place / "tokenizer_config.json").is_file():
        tokenizer = transformers.AutoTokenizer.from_pretrained(place)
        found = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        if found is not None:
            return int(found)
    end = getattr(model.config, "eos_token_id", None)
    return int(end) if isinstance(end, int) else 0


class _Padded:
    """Makes a batch of rows of different lengths."""

    def __init__(self, filler: int) -> None:
        self.filler = filler

    def __call__(self, rows: list[dict[str, list[int]]]) -> dict[str, Any]:
        import torch

        longest = max(len(row["input_ids"]) for row in rows)

        def filled(name: str, filler: int) -> list[list[int]]:
            return [row[name] + [filler] * (longest - len(row[name])) for row in rows]

        mask = [[1] * len(row["input_ids"]) + [0] * (longest - len(row["input_ids"])) for row in rows]
        return {
            "input_ids": torch.tensor(filled("input_ids", self.filler)),
            "labels": torch.tensor(filled("labels", -100)),
            "attention_mask": torch.tensor(mask),
        }


def _recorder() -> Any:
    import transformers

    class Recorder(transformers.TrainerCallback):
        """Prints the Trainer's logs in one line each."""

        def on_log(
            self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any
        ) -> None:
            if state.is_world_process_zero and logs and "loss" in logs:
                numbers = {name: float(value) for name, value in logs.items()}
                found = {"iteration": state.global_step, "of": state.max_steps, **numbers}
                sys.stdout.write("record: " + json.dumps(found) + "\n")
                sys.stdout.flush()

    return Recorder()


if __name__ == "__main__":
    main()
