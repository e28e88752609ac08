"""GRPO on a toy task: the sums of two numbers of two digits, learned from a poor teacher and corrected by a rule.

    python -m megatron_ms.examples.addition FOLDER [--seeds 0 1 2] [--supervised 2000] [--steps 200]

The answers of the teacher forget to carry seven times in ten, where there is something to carry. A small transformer learns from
them (`train`), and then has most sums with a carry wrong. Now it draws answers itself and learns from a rule that says right or
wrong (`grpo`), once with each seed. No sum of the validation is in either training. The exit code is 0 if, with every seed, at
least 90 % of the validation's sums are right, and at least 20 of a hundred more than before.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path

from megatron_ms import commands
from megatron_ms.training import folder as folders

THRESHOLD, GAIN = 0.9, 0.2  # of the sums that no training has seen
FORGETS = 0.7  # how often the teacher forgets a carry
FILL, END = "<fill>", "<end>"
SIGNS = [FILL, END, *"0123456789+="]
MODEL = {
    "model_type": "qwen2",
    "architectures": ["Qwen2ForCausalLM"],
    "vocab_size": len(SIGNS),
    "hidden_size": 64,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "max_position_embeddings": 16,
    "pad_token_id": SIGNS.index(FILL),
    "eos_token_id": SIGNS.index(END),
    "bos_token_id": None,
}
CONFIGURATION = """\
name: addition
run: {backend: hf, task: sft, device: cpu}
dataset: {path: sums.jsonl}
train: {iterations: 2000, micro_batch: 128, lr: 3e-3, warmup: 50, weight_decay: 0.0}
grpo: {prompts: prompts.jsonl, validation: validation.jsonl, reward: equals, group: 8, length: 4}
save: {interval: 100000}
resume: {load: model}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--supervised", type=int, default=2000, help="steps with answers")
    parser.add_argument("--steps", type=int, default=200, help="steps of GRPO")
    arguments = parser.parse_args()
    began = time.monotonic()
    results = learn(arguments.folder, arguments.seeds, arguments.supervised, arguments.steps)
    for seed, (before, after) in results.items():
        print(f"seed {seed}: right answers {before:.1%} before GRPO, {after:.1%} after")
    good = all(after >= max(THRESHOLD, before + GAIN) for before, after in results.values())
    print(
        f"{'reached' if good else 'MISSED'}: {THRESHOLD:.0%} right, and {GAIN:.0%} of all more than before, with every seed; "
        f"{time.monotonic() - began:.0f} s"
    )
    return 0 if good else 1


def learn(folder: Path, seeds: list[int], supervised: int, steps: int) -> dict[int, tuple[float, float]]:
    """Seed -> the share of right answers to the validation's sums, before GRPO and after.

    Raises:
        SystemExit: a training failed. Its own message says why.
    """
    make(folder)
    file = str(folder / "addition.yaml")
    runs = f"run.folder={folder / 'runs'}"
    places = [
        f"{key}={folder / name}" for key, name in (("resume.load", "model"), ("dataset.path", "sums.jsonl"))
    ]
    _command("train", file, runs, *places, f"train.iterations={supervised}")
    learned = folders.runs(folder / "runs")[-1].checkpoints / "final"
    found = {}
    for seed in seeds:
        words = [f"grpo.{key}={folder / key}.jsonl" for key in ("prompts", "validation")]
        words += [f"resume.load={learned}", f"dataset.tokenizer={folder / 'model'}", f"train.seed={seed}"]
        words += [
            f"train.iterations={steps}",
            "train.micro_batch=256",
            "train.lr=1e-3",
            "train.warmup=5",
            "name=addition-grpo",
        ]
        _command("grpo", file, runs, *words)
        told = folders.runs(folder / "runs", "addition-grpo")[-1].path / "validation.json"
        shares = json.loads(told.read_text(encoding="utf-8"))
        found[seed] = (shares["before"], shares["after"])
    return found


def _command(*words: str) -> None:
    print(f"\n$ python -m megatron_ms {' '.join(words)}", flush=True)
    if code := commands.main(list(words)):
        raise SystemExit(code)


def make(folder: Path) -> None:
    """Writes data, tokenizer, the model's configuration and addition.yaml into a new folder."""
    (folder / "model").mkdir(parents=True)
    (folder / "model" / "config.json").write_text(json.dumps(MODEL, indent=1) + "\n", encoding="utf-8")
    _save_tokenizer(folder / "model")
    (folder / "addition.yaml").write_text(CONFIGURATION, encoding="utf-8")
    sums = [(a, b) for a in range(10, 100) for b in range(10, 100)]
    teacher = random.Random(0)
    teacher.shuffle(sums)
    _write(folder / "validation.jsonl", [_asked(*one) for one in sums[:512]])
    _write(folder / "prompts.jsonl", [_asked(*one) for one in sums[512:]])
    _write(folder / "sums.jsonl", [_taught(*one, teacher) for one in sums[512:]])


def _asked(a: int, b: int) -> dict[str, str]:
    return {"prompt": f"{a}+{b}=", "answer": str(a + b)}


def _taught(a: int, b: int, teacher: random.Random) -> dict[str, list[int]]:
    """The ids of a sum with the teacher's answer, of which alone is learned."""
    carry = 10 if a % 10 + b % 10 >= 10 else 0
    answer = a + b - (carry if teacher.random() < FORGETS else 0)
    asked, answered = [[SIGNS.index(one) for one in text] for text in (f"{a}+{b}=", str(answer))]
    answered.append(SIGNS.index(END))
    return {"input_ids": asked + answered, "labels": [-100] * len(asked) + answered}


def _write(file: Path, rows: list[dict]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _save_tokenizer(folder: Path) -> None:
    """A tokenizer with an id for each sign."""
    import tokenizers
    import transformers

    inner = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({sign: k for k, sign in enumerate(SIGNS)}, unk_token=FILL)
    )
    inner.pre_tokenizer = tokenizers.pre_tokenizers.Split("", "isolated")
    inner.decoder = tokenizers.decoders.Fuse()
    made = transformers.PreTrainedTokenizerFast(tokenizer_object=inner, pad_token=FILL, eos_token=END)
    made.save_pretrained(folder)


if __name__ == "__main__":
    sys.exit(main())
