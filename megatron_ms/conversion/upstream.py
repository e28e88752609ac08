"""Conversions by MindSpeed-LLM's converters, or our own where it has none, and the proofs that they were right.

A checkpoint is converted back, and every tensor must be the same bit for bit. Then the same ids go through the model of
transformers and through Megatron's on as many ranks as the checkpoint has parts, and the logits must be equal but for rounding.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy

from ..config.training import About
from ..errors import UserError
from ..training import megatron
from ..training.folder import LATEST
from ..upstream import trees as upstream_trees
from ..upstream.trees import LLM
from . import (
    arguments_program,
    checkpoints,
    digest_program,
    forms,
    forward,
    megatron_program,
    merge_program,
    names,
    padding,
    padding_program,
    reference,
    weights,
)
from .tools import tool_for
from .work import ProofError, copy_beside, joined, run_program

if TYPE_CHECKING:
    from ..config import Document
    from .section import Convert

_OUTPUT = "lm_head.weight"
# Kinds of upstream's converters whose embeddings are tied where config.json says nothing.
_TIED = ("gemma", "gemma2")
_MERGE = "merge the matrices, with convert.to=huggingface"
_DTYPES = {"F32": "fp32", "BF16": "bf16", "F16": "fp16"}


class Job:
    """A conversion: the checked configuration, the converter, and the folder of work."""

    def __init__(self, document: Document, keys: Convert, model: Path, work: Path) -> None:
        self.document, self.work, self.model, self.keys = document, work, model, keys
        self.facts = checkpoints.facts_of(model)
        family = document.section("about", About).family
        self.form = forms.form_of(checkpoints.raw_facts_of(model), family, model / "config.json")
        self.settings = checkpoints.settings_of(document)
        self.trees = upstream_trees.find(self.settings.run.trees)
        if self.trees.upstream != LLM and self.facts.get("model_type") not in names.TABLES:
            raise document.error("run.trees", f"the converters are those of {LLM}: bash auto_convert.sh llm")
        checkpoints.check_geometry(self.settings, self.facts, model)
        megatron.check_trees(self.settings, self.trees)
        self.vocabulary = int(self.facts["vocab_size"])
        self.rows = padding.size(self.settings, self.vocabulary)
        self.tool = tool_for(self.trees, self.facts, model / "config.json")
        self._check_own()

    def _check_own(self) -> None:
        """Raises UserError for a layout that our own converter does not write."""
        if not self.tool.own:
            return
        parallel = self.settings.parallel
        if parallel.expert_tensor not in (None, parallel.tensor):
            message = f"is {parallel.expert_tensor}, but a conversion of this family divides experts as all else: leave it out"
            raise self.document.error("parallel.expert_tensor", message)
        if parallel.tensor > 1 and self.table.whole_experts:
            message = f"is {parallel.tensor}, but Megatron does not divide experts with biases"
            raise self.document.error(
                "parallel.tensor", f"{message}: use parallel.expert and parallel.pipeline"
            )
        refused = {"num_layer_list": "stages of the same length", "moe_grouped_gemm": "experts one by one"}
        for flag, wanted in refused.items():
            if self.settings.flag(flag):
                message = f"a conversion of this family has {wanted}: leave {flag} out"
                raise self.document.error(f"model.{flag}", message)

    @property
    def layout(self) -> str:
        return checkpoints.layout(self.settings)

    @property
    def table(self) -> names.Table:
        """The table of our own converter."""
        return names.TABLES[self.tool.name]

    def to_megatron(self, source: Path, dtype: str, result: Path) -> None:
        """Runs the converter from a folder of Hugging Face."""
        view = self.view(source, f"{result.name}-source", self.rows)
        words = [
            "--load-model-type",
            "hf",
            "--save-model-type",
            "mg",
            "--load-dir",
            view,
            "--save-dir",
            result,
        ]
        words += self._sizes()
        if layers := self.settings.flag("num_layer_list"):
            words += ["--num-layer-list", layers]
        if self.tool.builds_models:
            words += ["--tokenizer-model", view / "config.json"]  # it asks for a file, and does not read it
        self.convert(words, dtype)

    def to_huggingface(self, source: Path, dtype: str, result: Path) -> None:
        """Runs the converter from a checkpoint."""
        source = self.understood(source, f"{result.name}-arguments")
        view = self.view(None, f"{result.name}-like", self.rows)
        words = [
            "--load-model-type",
            "mg",
            "--save-model-type",
            "hf",
            "--load-dir",
            source,
            "--save-dir",
            view,
        ]
        if self.tool.own:
            words += self._sizes()
        else:
            words += ["--target-tensor-parallel-size", 1, "--target-pipeline-parallel-size", 1]
        if self.tool.builds_models:
            words += ["--load-hf-from-config"]
        self.convert(words, dtype)
        made = view / "mg2hf"
        result.mkdir()
        place = result if self.form is None else self.work / f"{result.name}-form"
        place.mkdir(exist_ok=True)
        for file in sorted([*(made if made.is_dir() else view).glob("model*.safetensors*")]):
            shutil.move(str(file), place / file.name)
        self.untie(place)
        if self.rows != self.vocabulary:
            padding.leave_out(place, self.vocabulary)
        if self.form is not None:
            forms.restore(place, result, self.form, self.facts)

    def _sizes(self) -> list[object]:
        """The layout of the checkpoint, as flags of a converter."""
        parallel = self.settings.parallel
        words: list[object] = ["--target-tensor-parallel-size", parallel.tensor]
        words += ["--target-pipeline-parallel-size", parallel.pipeline]
        words += ["--target-expert-parallel-size", parallel.expert]
        if parallel.layers_per_virtual_stage:
            words += ["--num-layers-per-virtual-pipeline-stage", parallel.layers_per_virtual_stage]
        return words

    def understood(self, source: Path, name: str) -> Path:
        """The checkpoint, or a copy of it with the arguments that the converter needs."""
        if not self.tool.arguments:
            return source
        made = self.work / name
        words = [checkpoints.latest(source), made / "iter_0000001", json.dumps(self.tool.arguments)]
        self.run([sys.executable, arguments_program.__file__, *words], 1, "changing the arguments")
        (made / LATEST).write_text("1", encoding="utf-8")
        return made

    def untie(self, result: Path) -> None:
        """Removes the output layer of a model whose embeddings are tied. The older converter writes one, with any values."""
        kind = str(self.facts["model_type"])
        usually = names.TABLES[kind].tied if kind in names.TABLES else kind in _TIED
        tied = self.facts.get("tie_word_embeddings", usually)
        if tied and _OUTPUT in weights.tensors(result):
            weights.remove(result, _OUTPUT)

    def convert(self, words: Sequence[object], dtype: str) -> None:
        own: list[object] = ["--model-type-hf", self.tool.name, *self.tool.flags]
        if self.tool.builds_models:
            own += ["--use-mcore-models", "--model-type", "GPT", "--params-dtype", _DTYPES[dtype]]
        if self.settings.flag("moe_grouped_gemm"):
            own += ["--moe-grouped-gemm"]
        program = self.tool.path(self.trees)
        self.run([sys.executable, program, *words, *own], 1, program.name)

    def view(self, source: Path | None, name: str, rows: int | None = None) -> Path:
        """A folder with config.json as the transformers of MindSpeed-LLM writes it, and links to the weights.

        If transformers lacks the family's class, the folder has the weights in the form of another one. rows: of the vocabulary,
        where it is padded.
        """
        folder = self.work / name
        folder.mkdir()
        facts = {**_older(self.facts), "vocab_size": rows or self.vocabulary}
        (folder / "config.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
        if source is not None and self.form is not None:
            forms.write(source, folder, self.form, self.facts)
        elif source is not None:
            index = source / weights.INDEX
            for file in [*weights.files(source), *([index] if index.is_file() else [])]:
                (folder / file.name).symlink_to(file.absolute())
        if source is not None and rows not in (None, self.vocabulary):
            padding.add(folder, rows)
        return folder

    def loaded(self, folder: Path) -> Any:
        """A model of Hugging Face in the class of transformers that computes it."""
        return forward.load(folder if self.form is None else self.view(folder, f"{folder.name}-loaded"))

    def computed(self, folder: Path, forward_pass: bool = True) -> Any:
        """The logits of a model of Hugging Face, in the class of transformers or, where it has none, by `reference`.

        forward_pass: false only opens the model, and returns None.

        Raises:
            ProofError: transformers finds that a weight is missing, or that there is one too many.
        """
        if self.form is not None and self.facts.get(forms.ALIBI):
            ids = forward.sample(self.vocabulary)
            return reference.logits(folder, ids, self.form.unit_head) if forward_pass else None
        model = self.loaded(folder)
        return forward.logits(model) if forward_pass else None

    def refuse_adapters(self) -> None:
        """Raises UserError for a family whose class peft does not have, or whose layers hold other things than Megatron's."""
        if self.form is not None:
            message = (
                f"peft cannot load a model of {self.form.family}, because transformers lacks its class: "
            )
            raise self.document.error("convert.to", message + _MERGE)
        if self.tool.own:
            message = "the converter of this family makes no adapter of peft: "
            raise self.document.error("convert.to", message + _MERGE)

    def logits(self, checkpoint: Path) -> Any:
        """The logits of Megatron's model on its ranks, without those of rows that belong to no token."""
        ids, out = self.work / "ids.json", self.work / "logits.npy"
        ids.write_text(json.dumps(forward.sample(self.vocabulary)), encoding="utf-8")
        program = [megatron_program.__file__, self.trees.programs, ids, out]
        command = megatron.loading_command(self.settings, self.trees, program, checkpoint, self.adapter())
        self.run(command.words, self.settings.run.processes, "the forward pass", command.variables)
        return numpy.load(out)[:, : self.vocabulary]

    def adapter(self) -> list[megatron.Entry]:
        """The flags of LoRA if the checkpoint has its matrices."""
        from_model = self.keys.to == "megatron" and self.model == Path(self.keys.source).absolute()
        if from_model or not megatron.adapts(self.settings):
            return []
        return list(megatron.adapter_flags(self.settings))

    def plain(self, source: Path) -> Path:
        """The checkpoint, or what Megatron makes of one in the format torch_dist in this layout: one in the format torch."""
        folder = checkpoints.latest(source)
        environment = self.trees.environment(self.settings.run.device, 1)
        if made := joined(self.work, folder, environment):
            source, folder = made, checkpoints.latest(made)
        if not checkpoints.is_distributed(folder):
            checkpoints.check_parts(self.settings, folder)
            return source
        made = self.work / "plain"
        entries = [
            ("convert", "ckpt_format", "torch_dist"),
            ("convert", "ckpt_convert_format", "torch"),
            ("convert", "ckpt_convert_save", str(made)),
            *(("convert", flag, True) for flag in ("no_save_optim", "no_save_rng")),
            *self.adapter(),
        ]
        program = [self.trees.program("pretrain_gpt.py")]
        command = megatron.loading_command(self.settings, self.trees, program, source, entries)
        self.run(command.words, self.settings.run.processes, "reading torch_dist", command.variables)
        # Weights alone are the beginning of a training for Megatron, so it numbers them 0, which it then does not read.
        checkpoints.latest(made / "torch").rename(made / "torch" / "iter_0000001")
        (made / "torch" / LATEST).write_text("1", encoding="utf-8")
        return made / "torch"

    def merged(self, checkpoint: Path) -> Path:
        """The checkpoint, or if it has matrices of LoRA, one in which they are added to the weights."""
        if not self.adapter():
            return checkpoint
        made, tune = self.work / "merged", self.settings.tune
        words = [checkpoints.latest(checkpoint), made / "iter_0000001", tune.alpha / tune.rank]
        self.run([sys.executable, merge_program.__file__, *words], 1, "merging LoRA")
        (made / LATEST).write_text("1", encoding="utf-8")
        return made

    def without_padding(self, checkpoint: Path) -> Path:
        """The checkpoint, or if its vocabulary is padded, one with zeros in the rows that belong to no token."""
        if self.rows == self.vocabulary:
            return checkpoint
        made = self.work / "unpadded"
        words = [checkpoints.latest(checkpoint), made / "iter_0000001", self.vocabulary]
        self.run([sys.executable, padding_program.__file__, *words], 1, "leaving out the padding")
        (made / LATEST).write_text("1", encoding="utf-8")
        return made

    def digests(self, checkpoint: Path) -> dict[str, Any]:
        """The hashes of all tensors of a checkpoint."""
        output = self.run(
            [sys.executable, digest_program.__file__, checkpoints.latest(checkpoint)],
            1,
            "reading the checkpoint",
        )
        return dict(json.loads(output.rpartition(digest_program.MARK)[2]))

    def run(
        self, words: Sequence[object], processes: int, what: str, variables: Mapping[str, str] | None = None
    ) -> str:
        """Runs one of upstream's programs. ProofError if it failed, with its last lines."""
        environment = variables or self.trees.environment(self.settings.run.device, processes)
        return run_program(self.work, words, what, environment)


def to_megatron(document: Document, keys: Convert, source: Path, work: Path) -> dict[str, Any]:
    """From Hugging Face to Megatron: writes `result` and returns the proofs."""
    job = Job(document, keys, source, work)
    stored = weights.tensors(source)
    before = {name: tensor for name, tensor in stored.items() if not forms.is_frequency(name)}
    dtype = dtype_of(source, before)
    result, back = work / "result", work / "back"
    job.to_megatron(source, dtype, result)
    job.to_huggingface(result, dtype, back)
    said = "bit for bit" if len(before) == len(stored) else "bit for bit, without frequencies"
    if job.tool.own and any(job.table.named(name) != name for name in before):
        before = {job.table.named(name): tensor for name, tensor in before.items()}
        said += f", names with {job.table.prefix} in front"
    if job.form is not None and job.form.unit_head:
        written = weights.tensors(work / f"{result.name}-source")
        if before.get(forms.HEAD) != written[forms.HEAD]:
            before[forms.HEAD] = written[forms.HEAD]
            said += f", {forms.HEAD} with rows of length one"
    _same(before, weights.tensors(back), "converted there and back")
    found: dict[str, Any] = {"layout": job.layout, "tensors": len(before), "back": said}
    if keys.forward:
        expected = job.computed(source)
        found["logits"] = forward.compare(expected, job.logits(result), dtype, "transformers and Megatron")
    return found


def like_of(document: Document, keys: Convert) -> Path:
    """The folder that `convert.like` names.

    Raises:
        UserError: it names none with a config.json.
    """
    if keys.like is None or not (Path(keys.like) / "config.json").is_file():
        message = "must name a folder with the config.json and the tokenizer of the model"
        raise document.error("convert.like", message)
    return Path(keys.like)


def to_huggingface(document: Document, keys: Convert, source: Path, work: Path) -> dict[str, Any]:
    """From Megatron to Hugging Face: writes `result` and returns the proofs."""
    like = like_of(document, keys)
    job = Job(document, keys, like, work)
    source = job.plain(source)
    merged = job.without_padding(job.merged(source))
    dtype = {"float32": "F32", "bf16": "BF16", "fp16": "F16"}[job.settings.train.precision]
    result = work / "result"
    job.to_huggingface(merged, dtype, result)
    copy_beside(like, result)
    _set_dtype(result / "config.json", job.settings.train.precision)
    made = weights.tensors(result)
    if job.form is not None:
        forms.check_head(result, job.form)
    expected = job.computed(result, keys.forward)
    _compare_back(job, merged, result, dtype)
    found: dict[str, Any] = {"layout": job.layout, "tensors": len(made), "back": "bit for bit"}
    if job.adapter():
        found["adapter"] = "merged"
    if keys.forward:
        found["logits"] = forward.compare(expected, job.logits(source), dtype, "transformers and Megatron")
    return found


def _compare_back(job: Job, source: Path, result: Path, dtype: str) -> None:
    """Raises ProofError unless the result, converted again, is the source bit for bit."""
    again = job.work / "again"
    job.to_megatron(result, dtype, again)
    before, after = job.digests(source), job.digests(again)
    if wrong := next(
        (name for name in sorted({*before, *after}) if before.get(name) != after.get(name)), None
    ):
        raise ProofError(
            f"converted there and back: {wrong} was {before.get(wrong)} and is {after.get(wrong)}"
        )


def _older(facts: Mapping[str, Any]) -> dict[str, Any]:
    """A config.json with the names that transformers 4 and MindSpeed-LLM's converters read."""
    found = {name: value for name, value in facts.items() if name not in ("dtype", "rope_parameters")}
    found.setdefault("torch_dtype", facts.get("dtype", "float32"))
    if "num_local_experts" in facts:
        found.setdefault("num_experts", facts["num_local_experts"])
    rope = facts.get("rope_parameters")
    if isinstance(rope, dict) and "rope_theta" in rope:
        found.setdefault("rope_theta", rope["rope_theta"])
        rest = {name: value for name, value in rope.items() if name != "rope_theta"}
        if rest.get("rope_type", "default") != "default":
            found.setdefault("rope_scaling", rest)
    return found


def _set_dtype(place: Path, precision: str) -> None:
    """Lets config.json name the type of the weights beside it."""
    facts = json.loads(place.read_text(encoding="utf-8"))
    # Code that comes with a model is older than the name `dtype`.
    name = "torch_dtype" if "auto_map" in facts else "dtype"
    for other in ("torch_dtype", "dtype"):
        facts.pop(other, None)
    facts[name] = {"bf16": "bfloat16", "fp16": "float16"}.get(precision, precision)
    place.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def dtype_of(source: Path, found: Mapping[str, weights.Tensor]) -> str:
    """The type of all weights of a model, as safetensors names it.

    Raises:
        UserError: there are several, or one that the converters do not have.
    """
    kinds = {one.dtype for one in found.values()}
    if len(kinds) != 1 or not kinds <= set(_DTYPES):
        raise UserError(
            f"{source}: has weights of the types {', '.join(sorted(kinds))}, and one of {list(_DTYPES)} is wanted"
        )
    return kinds.pop()


def _same(before: dict[str, weights.Tensor], after: dict[str, weights.Tensor], what: str) -> None:
    if wrong := weights.difference(before, after):
        raise ProofError(f"{what}: {wrong}")
