"""Proves at toy size that a family works with MindSpeed-LLM's programs, and prints what was measured.

    python -m megatron_ms.models.prove_megatron TREES [FAMILY ...]

TREES is the folder that `bash auto_convert.sh llm` wrote. For each family a toy model of Hugging Face is converted to Megatron on
two ranks, which proves that its logits are the same and that it comes back bit for bit; the checkpoint continues a text with the
greedy tokens of transformers; the recipe trains it for some steps, in which the loss falls; and a model that was merged with an
adapter of LoRA has the output of both. Each takes a few minutes. With MSADAPTER_RECORD_EVIDENCE=1 the proofs are recorded, each
as soon as it has passed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import commands, config
from ..errors import UserError
from ..inference import opening
from ..inference.engine import Engine, provide_torch
from ..inference.section import Generate
from ..training import folder as folders
from ..training import lines
from . import levels
from .toys import TOYS, Toy

SOURCE = "python -m megatron_ms.models.prove_megatron"
_TOKENS, _STEPS, _LENGTH = 12, 6, 32
_PROMPTS = [f"{5 + number} {9 + 3 * number} 13 3 40" for number in range(6)]
# A family, and the layout of its checkpoint: experts on two ranks where there are some, else tensors.
_EXPERTS, _TENSORS = "parallel.expert=2", "parallel.tensor=2"


def make(toy: Toy, folder: Path) -> Path:
    """A folder with the toy and a tokenizer whose tokens are the numbers below the vocabulary."""
    provide_torch()
    import tokenizers
    import transformers

    toy.make(folder)
    size = int(json.loads((folder / "config.json").read_text(encoding="utf-8"))["vocab_size"])
    words = tokenizers.models.WordLevel({str(number): number for number in range(size)}, unk_token="0")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    special = {"bos_token": "1", "eos_token": "2", "pad_token": str(size - 1), "unk_token": "0"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    # The class by a name that the transformers of every release of MindSpeed-LLM knows, not only this one's.
    facts = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    facts["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(facts), encoding="utf-8")
    # Without a token for the end, so that a toy with random weights does not stop at once.
    (folder / "generation_config.json").write_text(json.dumps({"pad_token_id": size - 1}), encoding="utf-8")
    return folder


def convert(words: list[str]) -> dict[str, Any]:
    """Converts to Megatron. Returns the proofs of the manifest."""
    _run("convert", words)
    return dict(json.loads(Path("megatron/manifest.json").read_text(encoding="utf-8"))["proofs"])


def generates(words: list[str]) -> int:
    """The number of greedy tokens on the ranks, which are those of transformers.

    Raises:
        ValueError: they differ.
    """
    plain = Engine(Generate(model="model", max_new_tokens=_TOKENS)).texts(_PROMPTS)
    engine = opening.engine_of(config.load("proof.yaml", words))
    found = engine.texts(_PROMPTS)
    if found != plain:
        raise ValueError(f"generated {found}, and transformers {plain}")
    return len(_PROMPTS) * _TOKENS


def trains(words: list[str]) -> tuple[float, float]:
    """The losses of the first and the last step of a training from the converted checkpoint.

    Raises:
        ValueError: the loss did not fall.
    """
    rows = [" ".join(str(3 + (start + 5 * step) % 200) for step in range(64)) for start in range(40)]
    Path("rows.jsonl").write_text(
        "\n".join(json.dumps({"text": row}) for row in rows) + "\n", encoding="utf-8"
    )
    _run("data", [])
    _run("train", words)
    (run,) = folders.runs(Path("runs"))
    found = [loss for record in run.records() if (loss := lines.loss_of(record)) is not None]
    if not found or not found[-1] < found[0]:
        raise ValueError(f"the losses of {_STEPS} steps are {found}")
    return found[0], found[-1]


def adapts(words: list[str]) -> float:
    """The largest difference of logits between model with adapter and merged model, as a part of the largest logit.

    Raises:
        ValueError: the training or the merging failed.
    """
    rows = [
        {"instruction": f"{number} 5", "input": "", "output": f"{number} 5 {number} 5"}
        for number in range(40)
    ]
    Path("instructions.json").write_text(json.dumps(rows), encoding="utf-8")
    data = [
        "data.task=instruction",
        "data.sources=instructions.json",
        "data.output=rows",
        "data.template=default",
    ]
    _run("data", [*data, f"data.seq_length={_LENGTH}"])
    lora = [*words, *data, "run.task=lora", "name=adapter", "tune.rank=4", "tune.alpha=8", "save.interval=3"]
    _run("train", [*lora, "train.iterations=3"])
    (run,) = Path("runs/adapter").iterdir()
    convert = [f"convert.source={run / 'checkpoints'}", "convert.output=merged", "convert.to=huggingface"]
    _run("convert", [*lora, *convert, "convert.like=model"])
    proofs = json.loads(Path("merged/manifest.json").read_text(encoding="utf-8"))["proofs"]
    if proofs.get("adapter") != "merged":
        raise ValueError("the adapter was not merged")
    return float(proofs["logits"])


def _run(command: str, words: list[str]) -> None:
    """Runs a command of the toolkit on the configuration of the proof."""
    code = commands.main([command, "proof.yaml", *words])
    if code != 0:
        raise ValueError(f"{command} ended with exit code {code}")


def prove(name: str, trees: Path) -> dict[str, Any]:
    """What was measured of a family, in the present folder. An exception says what is wrong."""
    toy = TOYS[name]
    make(toy, Path("model"))
    Path("proof.yaml").write_text(
        f"recipe: {toy.recipe}\nrun: {{trees: {json.dumps(str(trees))}, device: npu, processes: 2}}\n"
        f"data: {{sources: rows.jsonl, tokenizer: model, output: texts}}\n"
        f"dataset: {{sequence_length: {_LENGTH}}}\n"
        f"train: {{iterations: {_STEPS}, micro_batch: 1, global_batch: 8, lr: 3e-3}}\n"
        "save: {interval: null}\nresume: {load: megatron}\n"
        "convert: {source: model, output: megatron, to: megatron}\n"
        f"generate: {{model: model, checkpoint: megatron, max_new_tokens: {_TOKENS}}}\n",
        encoding="utf-8",
    )
    words = [*toy.words(), _EXPERTS if "num_experts" in toy.model else _TENSORS]
    proofs = convert(words)
    for proof in ("logits", "back"):
        levels.record(name, proof, SOURCE)
    found: dict[str, Any] = {"layout": proofs["layout"], "logits": proofs["logits"], "back": proofs["back"]}
    found["tokens"] = generates(words)
    levels.record(name, "generates", SOURCE)
    found["first loss"], found["last loss"] = trains(words)
    levels.record(name, "trains", SOURCE)
    found["merged logits"] = adapts(words)
    levels.record(name, "lora", SOURCE)
    return found


@contextlib.contextmanager
def _elsewhere() -> Iterator[None]:
    """The present folder is a new one, which is removed at the end."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def main(arguments: list[str] | None = None) -> int:
    """Proves the families and returns 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trees", type=Path, help="the folder that auto_convert.sh llm wrote")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=f"of {', '.join(TOYS)}; all by default")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.families if name not in TOYS]:
        parser.error(f"there is no toy of {unknown[0]}")
    failed = []
    trees = given.trees.resolve()
    for name in given.families or TOYS:
        with _elsewhere():
            try:
                found = prove(name, trees)
            except (
                UserError,
                ValueError,
                KeyError,
                OSError,
            ) as error:  # the other families are still to be proven
                failed.append(name)
                print(f"{name}: {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
                continue
        print(f"{name}: {json.dumps(found)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
