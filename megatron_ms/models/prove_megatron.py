"""Proves at toy size that a family works with upstream's programs, and prints what was measured.

    python -m megatron_ms.models.prove_megatron TREES [FAMILY ...]

TREES is the folder that `bash auto_convert.sh llm` wrote, or one with Megatron-LM alone, which has no LoRA. For each family a toy
model of Hugging Face is converted to Megatron on two ranks, which proves that its logits are the same and that it comes back bit
for bit; the checkpoint continues a text with the greedy tokens of transformers; the recipe trains it for some steps, in which the
loss falls; and what LoRA has learnt, merged or as an adapter of peft, has Megatron's output. For a family whose class transformers
lacks (`foreign.py`), another class of transformers takes its place in these comparisons, after its logits have been compared with
those of `reference.py`, which itself takes the place where there is no such class; such a family has no adapter of peft. A family
without a converter only trains, from random weights. Each takes a few minutes. With MSADAPTER_RECORD_EVIDENCE=1 the proofs are
recorded, each as soon as it has passed.
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
from ..conversion import forward, names, reference
from ..conversion.tools import TOOLS
from ..conversion.work import ProofError
from ..errors import UserError
from ..inference import opening
from ..inference.engine import Engine, provide_torch
from ..inference.section import Generate
from ..training import folder as folders
from ..training import lines
from ..upstream import trees as upstream_trees
from ..upstream.trees import LLM
from . import catalogue, levels
from .foreign import FOREIGN, ForeignToy
from .foreign import VARIANTS as FOREIGN_VARIANTS
from .toys import TOYS, VARIANTS, Toy, small, words_of

SOURCE = "python -m megatron_ms.models.prove_megatron"
_TOKENS, _STEPS, _LENGTH, _SIZE = 12, 6, 32, 256
_PROMPTS = [f"{5 + number} {9 + 3 * number} 13 3 40" for number in range(6)]
# A family, and the layout of its checkpoint: experts on two ranks where there are some, else tensors.
_EXPERTS, _TENSORS = "parallel.expert=2", "parallel.tensor=2"


def make_tokenizer(folder: Path, size: int) -> Path:
    """A folder with a tokenizer whose tokens are the numbers below `size`."""
    provide_torch()
    import tokenizers
    import transformers

    words = tokenizers.models.WordLevel({str(number): number for number in range(size)}, unk_token="0")
    tokenizer = tokenizers.Tokenizer(words)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    special = {"bos_token": "1", "eos_token": "2", "pad_token": str(size - 1), "unk_token": "0"}
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    # The class by a name that the transformers of every release of MindSpeed-LLM knows, not only this one's.
    facts = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    facts["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "tokenizer_config.json").write_text(json.dumps(facts), encoding="utf-8")
    return folder


def make(toy: Toy, folder: Path) -> Path:
    """A folder with the toy and its tokenizer."""
    provide_torch()
    toy.make(folder)
    return _finished(folder)


def make_stand_in(toy: ForeignToy, folder: Path, unit_head: bool) -> float:
    """A folder with the same weights in a class of transformers. Returns how far its logits are from those of `reference.py`.

    folder: the toy as its family writes it is beside it, in `model`. unit_head: divide the rows of the output layer by their
    lengths.

    Raises:
        ProofError: the logits differ.
    """
    import torch

    model = toy.build()
    if unit_head:
        with torch.no_grad():
            head = model.lm_head.weight
            head.div_(head.norm(dim=1, keepdim=True))
    model.save_pretrained(folder)
    _finished(folder)
    ids = forward.sample(_SIZE)
    expected = reference.logits(folder.with_name("model"), ids, unit_head)
    return forward.compare(expected, forward.logits(model), "F32", "the family and its class in transformers")


def _finished(folder: Path) -> Path:
    """The folder, with a tokenizer too."""
    make_tokenizer(folder, _SIZE)
    # Without a token for the end, so that a toy with random weights does not stop at once.
    (folder / "generation_config.json").write_text(json.dumps({"pad_token_id": _SIZE - 1}), encoding="utf-8")
    return folder


def convert(words: list[str]) -> dict[str, Any]:
    """Converts to Megatron. Returns the proofs of the manifest."""
    _run("convert", words)
    return dict(json.loads(Path("megatron/manifest.json").read_text(encoding="utf-8"))["proofs"])


def generates(words: list[str], model: str = "model") -> int:
    """The number of greedy tokens on the ranks, which are those of transformers with the folder `model`.

    Raises:
        ValueError: they differ.
    """
    engine = opening.engine_of(config.load("proof.yaml", words))
    plain = Engine(Generate(model=model, max_new_tokens=_TOKENS))
    plain.tokenizer = (
        engine.tokenizer
    )  # transformers takes its class from the model's, which may be another one
    found, expected = engine.texts(_PROMPTS), plain.texts(_PROMPTS)
    if found != expected:
        raise ValueError(f"generated {found}, and transformers {expected}")
    return len(_PROMPTS) * _TOKENS


def generates_as_reference(words: list[str], unit_head: bool) -> int:
    """The same for a model that no class of transformers computes: the tokens are those of `reference.py` with the folder `model`.

    unit_head: divide the rows of the output layer by their lengths.

    Raises:
        ValueError: they differ.
    """
    engine = opening.engine_of(config.load("proof.yaml", words))
    expected = []
    for prompt in _PROMPTS:
        ids = list(engine.tokenizer(prompt)["input_ids"])
        for _ in range(_TOKENS):
            ids.append(int(reference.logits(Path("model"), ids, unit_head)[-1].argmax()))
        expected.append(engine.tokenizer.decode(ids[-_TOKENS:], skip_special_tokens=True))
    if (found := engine.texts(_PROMPTS)) != expected:
        raise ValueError(f"generated {found}, and the reference {expected}")
    return len(_PROMPTS) * _TOKENS


def trains(words: list[str], name: str = "proof", file: str = "proof.yaml") -> tuple[float, float]:
    """The losses of the first and the last step of a training of that name.

    file: the configuration.

    Raises:
        ValueError: the loss did not fall.
    """
    rows = [" ".join(str(3 + (start + 5 * step) % 200) for step in range(64)) for start in range(40)]
    Path("rows.jsonl").write_text(
        "\n".join(json.dumps({"text": row}) for row in rows) + "\n", encoding="utf-8"
    )
    if not list(Path().glob("texts*")):
        _run("data", [])
    _run("train", [*words, f"name={name}"], file)
    (run,) = folders.runs(Path("runs"), name)
    found = [loss for record in run.records() if (loss := lines.loss_of(record)) is not None]
    if not found or not found[-1] < found[0]:
        raise ValueError(f"the losses of {_STEPS} steps are {found}")
    return found[0], found[-1]


def adapts(words: list[str], merged_alone: bool = False) -> dict[str, float]:
    """Differences of logits as parts of the largest one: of Megatron's model with matrices and the merged model, and the adapter.

    merged_alone: without the adapter.

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
    if _EXPERTS in words:  # upstream asks for this exchange, and experts have no place in an adapter
        lora += ["model.moe_token_dispatcher_type=alltoall_seq", "tune.targets=[linear_qkv,linear_proj]"]
    if any(word.startswith("model.sliding_window=") for word in words):  # which masks padding in no other way
        lora.append("dataset.reset_attention_mask=true")
    _run("train", [*lora, "train.iterations=3"])
    (run,) = Path("runs/adapter").iterdir()
    found = {}
    outputs = {"merged": "huggingface", "adapter": "adapter"}
    # The training moves the experts' biases, so model and adapter are not what was trained.
    if merged_alone or "model.moe_router_enable_expert_bias=True" in words:
        del outputs["adapter"]
    for output, to in outputs.items():
        convert = [
            f"convert.source={run / 'checkpoints'}",
            f"convert.output={output}",
            f"convert.to={to}",
            "convert.like=model",
        ]
        _run("convert", [*lora, *convert])
        proofs = json.loads(Path(output, "manifest.json").read_text(encoding="utf-8"))["proofs"]
        if output == "merged" and proofs.get("adapter") != "merged":
            raise ValueError("the adapter was not merged")
        found[f"{output} logits"] = float(proofs["logits"])
    return found


def _run(command: str, words: list[str], file: str = "proof.yaml") -> None:
    """Runs a command of the toolkit on the configuration of the proof."""
    code = commands.main([command, file, *words])
    if code != 0:
        raise ValueError(f"{command} ended with exit code {code}")


def _configuration(recipe: str, trees: Path, load: str, tokenizer: str = "model") -> str:
    """The YAML file of the proofs. `load` is a line that names the checkpoint with which a training begins, or empty.

    tokenizer: its folder. MindSpeed-LLM would run code that the config.json there names.
    """
    device = "npu" if _upstream(trees) == LLM else "cuda"
    return (
        f"recipe: {recipe}\nrun: {{trees: {json.dumps(str(trees))}, device: {device}, processes: 2}}\n"
        f"data: {{sources: rows.jsonl, tokenizer: {tokenizer}, output: texts}}\n"
        f"dataset: {{sequence_length: {_LENGTH}}}\n"
        f"train: {{iterations: {_STEPS}, micro_batch: 1, global_batch: 8, lr: 3e-3}}\n"
        f"save: {{interval: null}}\n{load}"
        "convert: {source: model, output: megatron, to: megatron}\n"
        f"generate: {{model: model, checkpoint: megatron, max_new_tokens: {_TOKENS}}}\n"
    )


def _layout(sizes: dict[str, Any]) -> str:
    return _EXPERTS if "num_experts" in sizes else _TENSORS


def _whole(name: str, toy: Toy, trees: Path) -> dict[str, Any]:
    """All proofs of an architecture that converts."""
    import transformers

    make(toy, Path("model"))
    found: dict[str, Any] = {}
    foreign = isinstance(toy, ForeignToy)
    computes = "stand-in" if foreign else "model"  # the folder of a model that transformers loads
    if isinstance(toy, ForeignToy):
        if toy.has_class:
            found["stand-in"] = make_stand_in(toy, Path(computes), name == "Baichuan2")
        make_tokenizer(Path("tokenizer"), _SIZE)
    text = _configuration(
        toy.recipe, trees, "resume: {load: megatron}\n", "tokenizer" if foreign else "model"
    )
    Path("proof.yaml").write_text(text, encoding="utf-8")
    words = [*toy.words(), _layout(small(toy.recipe))]
    about = (SOURCE, _release(trees), toy.recipe)
    proofs = convert(words)
    for proof in ("logits", "back"):
        levels.record(name, proof, *about, f"{proofs['layout']}: {_short(proofs[proof])}")
    found |= {"layout": proofs["layout"], "logits": proofs["logits"], "back": proofs["back"]}
    if isinstance(toy, ForeignToy) and not toy.has_class:
        found["tokens"] = generates_as_reference(words, name == "Baichuan2")
    else:
        found["tokens"] = generates(words, computes)
    levels.record(name, "generates", *about, f"{found['tokens']} tokens")
    found["first loss"], found["last loss"] = losses = trains(words)
    levels.record(name, "trains", *about, _losses(losses))
    if _upstream(trees) != LLM:
        return found
    biased = catalogue.content(catalogue.RECIPES / f"{toy.recipe}.yaml")["model"].get(
        "moe_router_enable_expert_bias"
    )
    merged_alone = foreign or getattr(transformers, toy.kind).model_type in names.TABLES
    more = ["model.moe_router_enable_expert_bias=True"] if biased else []
    if not _rotary(toy.recipe):  # else upstream's instruction data has no positions
        more += ["dataset.reset_attention_mask=true", "model.use_flash_attn=true"]
    learned = adapts([*words, *more], merged_alone)
    said = ", ".join(f"{what} {_short(difference)}" for what, difference in learned.items())
    levels.record(name, "lora", *about, said)
    return found | learned


def _rotary(recipe: str) -> bool:
    """Whether a model has other positions than learned ones."""
    return "position_embedding_type" in catalogue.content(catalogue.RECIPES / f"{recipe}.yaml")["model"]


def _release(trees: Path) -> str:
    """The upstream in the folder and its release, as the conversion says it."""
    stated = json.loads((trees / "conversion.json").read_text(encoding="utf-8"))
    return f"{_upstream(trees)} {stated['release']}"


def _upstream(trees: Path) -> str:
    return upstream_trees.find(str(trees)).upstream


def _short(value: object) -> str:
    return f"{value:.1e}" if isinstance(value, float) else str(value)


def _losses(found: tuple[float, float]) -> str:
    return f"loss {found[0]:.3f} to {found[1]:.3f} in {_STEPS} steps"


def _trained_others(name: str, proven: set[str], trees: Path) -> dict[str, tuple[float, float]]:
    """The losses of the family's other architectures, which are not converted. They train from random weights.

    proven: the recipes whose architectures are converted.
    """
    converted = {catalogue.architecture(recipe) for recipe in proven}
    found: dict[str, tuple[float, float]] = {}
    for kind, recipe in _architectures(name).items():
        if kind not in converted:
            found |= _trained(name, recipe, trees)
    return found


def _architectures(family: str) -> dict[tuple[str, ...], str]:
    """The smallest recipe of each architecture of a family: its sizes may have different position embeddings."""
    found: dict[tuple[str, ...], str] = {}
    for recipe in sorted(
        (r for r in catalogue.recipes() if r.family == family), key=lambda r: r.form.parameters()
    ):
        found.setdefault(catalogue.architecture(recipe.name), recipe.name)
    return found


def _trained(name: str, recipe: str, trees: Path) -> dict[str, tuple[float, float]]:
    """The proof of an architecture that does not convert: it trains from random weights."""
    if not Path("tokenizer").exists():
        make_tokenizer(Path("tokenizer"), _SIZE)
    Path("other.yaml").write_text(_configuration(recipe, trees, "", "tokenizer"), encoding="utf-8")
    sizes = small(recipe)
    losses = trains([*words_of(sizes), _layout(sizes)], recipe, "other.yaml")
    levels.record(name, "trains", SOURCE, _release(trees), recipe, _losses(losses))
    return {recipe: losses}


def _converts(name: str) -> bool:
    """Whether there are converters for the family's models."""
    import transformers

    return name in FOREIGN or name in TOYS and getattr(transformers, TOYS[name].kind).model_type in TOOLS


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    """Makes a folder the working directory for a while."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def prove(name: str, trees: Path) -> dict[str, Any]:
    """What was measured of a family, in the present folder. An exception says what is wrong."""
    provide_torch()
    toys: list[Toy] = []
    if _converts(name):
        toys = [(TOYS | FOREIGN)[name], *VARIANTS.get(name, []), *FOREIGN_VARIANTS.get(name, [])]
    found: dict[str, Any] = {}
    for toy in toys:
        Path(toy.recipe).mkdir()
        with _inside(toy.recipe):
            found |= {toy.recipe: _whole(name, toy, trees)}
    Path("others").mkdir()
    with _inside("others"):
        return found | _trained_others(name, {toy.recipe for toy in toys}, trees)


def main(arguments: list[str] | None = None) -> int:
    """Proves the families and returns 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("trees", type=Path, help="the folder that auto_convert.sh wrote")
    known = sorted({recipe.family for recipe in catalogue.recipes()})
    parser.add_argument(
        "families", nargs="*", metavar="FAMILY", help=f"of {', '.join(known)}; all by default"
    )
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.families if name not in known]:
        parser.error(f"there is no family {unknown[0]}")
    failed = []
    trees = given.trees.resolve()
    for name in given.families or known:
        with tempfile.TemporaryDirectory() as folder, _inside(folder):
            try:
                found = prove(name, trees)
            except (
                UserError,
                ProofError,
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
