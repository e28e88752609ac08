"""Trains a causal language model with transformers' Trainer. The command `train` starts it when run.backend is hf.

Its flags are those of TrainingArguments and of `Own`. It prints a line `record: {JSON}` for each of the Trainer's logs.
hf_dpo_program.py, which learns preferences, and hf_grpo_program.py, which learns from rules, share the model, the flags and
the lines with it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from megatron_ms import whole

# Code in the folder of a model is never run, and the user is not asked about it.
SAFELY: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}


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
    lora_load: str = field(
        default="", metadata={"help": "folder of an adapter whose matrices the training starts from"}
    )
    profile_first: int = field(
        default=0, metadata={"help": "the first step that is recorded; 0 records none"}
    )
    profile_count: int = field(default=0, metadata={"help": "steps that are recorded"})
    profile_folder: str = field(default="", metadata={"help": "the folder for the trace"})
    resumed: str = field(default="", metadata={"help": "the checkpoint from which the training goes on"})


def main() -> None:
    import transformers

    own, options = parsed(transformers.TrainingArguments)
    rows = list(_cut(_rows(own.rows), own.row_length) if own.row_length else _rows(own.rows))
    model = loaded(own, options)
    filler = _filler(own, model)
    collator = Padded(filler)
    finish(
        transformers.Trainer(
            model=adapted(model, own),
            args=options,
            train_dataset=some(rows, own),
            data_collator=collator,
            callbacks=[recorder()],
        ),
        own,
    )


def parsed(kind: Any, ours: Any = Own) -> tuple[Any, Any]:
    """Our flags, and those of a class of training arguments. Seeds all random numbers."""
    import transformers

    own, options = transformers.HfArgumentParser((ours, kind)).parse_args_into_dataclasses()
    transformers.set_seed(options.seed)
    return own, options


def some(rows: list[Any], own: Own) -> list[Any]:
    """The rows. SystemExit if there is none."""
    if not rows:
        raise SystemExit(f"{', '.join(own.rows)}: there is no row to train on")
    return rows


def finish(trainer: Any, own: Own) -> None:
    """Trains, from a checkpoint if the run goes on, and saves the model or the adapter."""
    if own.profile_first:
        trainer.add_callback(_profiler(own))
    trainer.train(resume_from_checkpoint=own.resumed or None)
    if trainer.args.save_strategy != "no":
        trainer.save_model(str(Path(trainer.args.output_dir) / "final"))


def _rows(files: Iterable[str]) -> Iterator[dict[str, list[int]]]:
    """The rows of the files. Without labels, all tokens are learned."""
    for row in columns(files, "input_ids", others=("labels",)):
        yield {"labels": row["input_ids"], **row}


def columns(
    files: Iterable[str], *names: str, others: tuple[str, ...] = ()
) -> Iterator[dict[str, list[int]]]:
    """The rows of JSON lines with these keys of ids, and those of `others` that they have.

    Raises:
        SystemExit: a line is damaged. The message names it.
    """
    for file in files:
        with open(file, encoding="utf-8") as stream:
            for number, line in enumerate(stream, 1):
                try:
                    row = json.loads(line)
                    wanted = [*names, *(name for name in others if name in row)]
                    yield {name: [int(one) for one in row[name]] for name in wanted}
                except (ValueError, KeyError, TypeError) as error:
                    message = f"{file}, line {number}: no row with {', '.join(names)}: {error!r}"
                    raise SystemExit(message) from None


def _cut(rows: Iterable[dict[str, list[int]]], length: int) -> Iterator[dict[str, list[int]]]:
    """Joins documents and cuts them into rows of one length; the rest is left out, as in Megatron's data sets."""
    held: list[int] = []
    for row in rows:
        held += row["input_ids"]
        while len(held) >= length:
            yield {"input_ids": held[:length], "labels": held[:length]}
            held = held[length:]


def loaded(own: Own, options: Any) -> Any:
    """The model in float32; with LoRA in bf16, where its own weights do not change, in bf16. SystemExit if a weight is missing."""
    import transformers

    place = Path(own.model_folder)
    lora = own.lora_rank or own.lora_load
    dtype = "bfloat16" if lora and options.bf16 else "float32"
    if has_weights(place):
        model, found = transformers.AutoModelForCausalLM.from_pretrained(
            place, dtype=dtype, output_loading_info=True, **SAFELY
        )
        if missing := whole.missing(found):
            raise SystemExit(f"{place}: {missing}")
        return model
    config = transformers.AutoConfig.from_pretrained(place, **SAFELY)
    return transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, trust_remote_code=False)


def has_weights(place: Path) -> bool:
    return any(True for kind in ("*.safetensors", "*.bin") for _ in place.glob(kind))


def lora(own: Own) -> Any:
    """peft's description of LoRA's matrices; None without them. The default is every linear layer but the last."""
    if not own.lora_rank or own.lora_load:
        return None
    import peft

    targets = own.lora_targets or "all-linear"
    return peft.LoraConfig(
        r=own.lora_rank, lora_alpha=own.lora_alpha, target_modules=targets, task_type="CAUSAL_LM"
    )


def adapted(model: Any, own: Own) -> Any:
    """The model with LoRA's matrices, new ones or those of a folder. Without LoRA it is the model itself."""
    if own.lora_load:
        import peft

        return peft.PeftModel.from_pretrained(model, own.lora_load, is_trainable=True)
    options = lora(own)
    if options is None:
        return model
    import peft

    return peft.get_peft_model(model, options)


def tokenizer_of(own: Own) -> Any:
    """The tokenizer; None if no folder has one."""
    import transformers

    place = Path(own.tokenizer_folder or own.model_folder)
    if not (place / "tokenizer_config.json").is_file():
        return None
    return transformers.AutoTokenizer.from_pretrained(place, **SAFELY)


def _filler(own: Own, model: Any) -> int:
    """The id that fills short rows. Their labels say that it is not learned."""
    tokenizer = tokenizer_of(own)
    if tokenizer is not None:
        found = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        if found is not None:
            return int(found)
    end = getattr(model.config, "eos_token_id", None)
    return int(end) if isinstance(end, int) else 0


class Padded:
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


def recorder() -> Any:
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


def _profiler(own: Own) -> Any:
    import torch
    import transformers

    steps = torch.profiler.schedule(wait=own.profile_first - 1, warmup=0, active=own.profile_count, repeat=1)
    recorded = torch.profiler.profile(
        schedule=steps, on_trace_ready=torch.profiler.tensorboard_trace_handler(own.profile_folder)
    )

    class Profiler(transformers.TrainerCallback):
        """Records some steps of the Trainer."""

        def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            recorded.start()

        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            recorded.step()

        def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            recorded.stop()

    return Profiler()


if __name__ == "__main__":
    main()
