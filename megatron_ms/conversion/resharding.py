"""A Megatron checkpoint in another layout or format, with the state of its optimizer, by Megatron's own distributed checkpoints.

Upstream's program loads the checkpoint in the layout of its training and writes it in the format torch_dist, which every layout
reads. The result is then brought back to the first layout, and every tensor and number of weights, optimizer and schedule must be
the same.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UserError
from ..training import megatron
from ..training.folder import LATEST
from ..upstream import trees as upstream_trees
from . import checkpoints, states_program
from .work import ProofError, joined, run_program

if TYPE_CHECKING:
    from ..config import Document
    from ..training.settings import Settings


@dataclass(frozen=True)
class _Checkpoint:
    """A checkpoint and the settings with whose layout it was written."""

    place: Path
    settings: Settings


def _is_distributed(checkpoint: _Checkpoint) -> bool:
    return checkpoints.is_distributed(checkpoints.latest(checkpoint.place))


class _Job:
    """The settings of both layouts, and the folder of work."""

    def __init__(self, document: Document, source: Path, work: Path) -> None:
        self.document, self.work = document, work
        self.wanted = checkpoints.settings_of(document)
        self.trees = upstream_trees.find(self.wanted.run.trees)
        megatron.check_trees(self.wanted, self.trees)
        self.environment = self.trees.environment(self.wanted.run.device, 1)
        self.source = joined(work, checkpoints.latest(source), self.environment) or source
        self.layout = self.look(self.source)["layout"]
        self.trained = self._trained()

    def _trained(self) -> Settings:
        """The settings with the layout that the source was trained in."""
        told, wanted = self.layout, self.wanted
        sizes = {
            "tensor": told["tensor_model_parallel_size"],
            "pipeline": told["pipeline_model_parallel_size"],
            "expert": told["expert_model_parallel_size"] or 1,
            "layers_per_virtual_stage": told["num_layers_per_virtual_pipeline_stage"],
        }
        if sizes["expert"] > 1 and told["expert_tensor_parallel_size"]:
            sizes["expert_tensor"] = told["expert_tensor_parallel_size"]
        if sizes["tensor"] == 1:
            sizes["sequence"] = False
        parallel = wanted.parallel.model_copy(update=sizes)
        return checkpoints.in_layout(wanted, parallel)

    def look(self, checkpoint: Path, *what: str) -> dict[str, Any]:
        """What a checkpoint has, in the words of `states_program`."""
        words = [sys.executable, states_program.__file__, checkpoints.latest(checkpoint), *what]
        output = run_program(self.work, words, "reading the checkpoint", self.environment)
        return dict(json.loads(output.rpartition(states_program.MARK)[2]))

    def written(self, settings: Settings, source: _Checkpoint, form: str, name: str) -> _Checkpoint:
        """The checkpoint in another format, as upstream's program writes it on the ranks of a layout that can read it."""
        made = self.work / name
        before = "torch_dist" if _is_distributed(source) else "torch"
        entries = [
            ("convert", "ckpt_format", before),
            ("convert", "ckpt_convert_format", form),
            ("convert", "ckpt_convert_save", str(made)),
            # Megatron ends if it should read the random states of another layout.
            ("convert", "no_load_rng", settings.parallel != source.settings.parallel),
        ]
        program: Sequence[object] = [self.trees.program("pretrain_gpt.py")]
        command = megatron.loading_command(settings, self.trees, program, source.place, entries, states=True)
        what = f"{checkpoints.layout(settings)}: from {before} to {form}"
        output = run_program(self.work, command.words, what, command.variables)
        if not (
            made / form / LATEST
        ).is_file():  # upstream ends with exit code 0 when it refuses a checkpoint
            last = "\n".join("    " + line for line in output.splitlines()[-3:])
            raise ProofError(f"{what} wrote nothing\n{last}")
        return _Checkpoint(made / form, settings)

    def states(self, checkpoint: _Checkpoint, name: str) -> dict[str, Any]:
        """The states of a checkpoint when it is brought into the layout and the optimizer of the source."""
        if checkpoint.settings is self.trained and not _is_distributed(checkpoint):
            return dict(self.look(checkpoint.place, "states")["states"])
        if not _is_distributed(checkpoint):
            checkpoint = self.written(checkpoint.settings, checkpoint, "torch_dist", f"{name}-whole")
        return dict(
            self.look(self.written(self.trained, checkpoint, "torch", name).place, "states")["states"]
        )


def reshard(document: Document, source: Path, work: Path) -> dict[str, Any]:
    """From Megatron to Megatron: writes `result` in the layout `parallel` and the format `save.format`, and returns the proofs."""
    job = _Job(document, source, work)
    form = job.wanted.save.format
    _check(job, form)
    first = _Checkpoint(job.source, job.trained)
    before = job.states(first, "source")
    whole = first if _is_distributed(first) else job.written(job.trained, first, "torch_dist", "whole")
    made = whole if form == "torch_dist" else job.written(job.wanted, whole, form, "made")
    _compare(before, job.states(made, "back"))
    made.place.rename(work / "result")
    same = checkpoints.layout(job.trained) == checkpoints.layout(job.wanted)
    return {
        "from": checkpoints.layout(job.trained),
        "layout": "any" if form == "torch_dist" else checkpoints.layout(job.wanted),
        "states": len(before),
        "back": "bit for bit",
        "random state": "of the source" if same or form == "torch_dist" else "new",
    }


def _check(job: _Job, form: str) -> None:
    """Raises UserError for what cannot be converted, or need not be."""
    source, layout = job.source, job.layout
    folder = checkpoints.latest(source)
    if form == "safetensors":
        raise job.document.error("save.format", "a conversion writes torch or torch_dist")
    if job.trees.only_torch():
        raise job.document.error("run.trees", f"{job.trees.programs} reads and writes the format torch alone")
    if job.wanted.run.task == "lora":
        raise job.document.error("run.task", "matrices of LoRA stay in the layout of their training")
    if megatron.uneven(job.wanted) or megatron.unequal(layout.get("num_layer_list")):
        message = (
            "Megatron's distributed checkpoints number the layers of stages of different lengths wrongly"
        )
        raise job.document.error("convert.to", f"{message}: convert to huggingface and back")
    if job.wanted.flag("embed_layernorm"):
        message = "Megatron's distributed checkpoints leave out the norm of model.embed_layernorm: convert to huggingface and back"
        raise job.document.error("convert.to", message)
    if layout["no_save_optim"]:
        raise job.document.error(
            "convert.source", f"{folder} has no state of an optimizer: convert to huggingface and back"
        )
    precision = "bf16" if layout["bf16"] else "fp16" if layout["fp16"] else "float32"
    _must_be(job, "train.precision", job.wanted.train.precision, precision)
    shared = bool(layout["use_distributed_optimizer"])
    _must_be(job, "parallel.distributed_optimizer", job.wanted.parallel.distributed_optimizer, shared)
    if not checkpoints.is_distributed(folder):
        checkpoints.check_parts(job.trained, folder)
        return
    if form == "torch_dist":
        raise job.document.error(
            "convert.to", f"{folder} has the format torch_dist already, which a training in any layout reads"
        )
    other = checkpoints.layout(job.trained) != checkpoints.layout(job.wanted)
    if layout["use_distributed_optimizer"] and not layout["ckpt_fully_parallel_save"] and other:
        raise UserError(
            f"{folder}: was saved with --no-ckpt-fully-parallel-save, and Megatron reads the distributed optimizer of such a "
            f"checkpoint in its own layout alone ({checkpoints.layout(job.trained)})"
        )


def _must_be(job: _Job, key: str, given: object, found: object) -> None:
    """Raises UserError if a key, on which the form of the optimizer's state depends, is not that of the source's training."""
    if given != found:
        raise job.document.error(key, f"is {given}, but the checkpoint is that of a training with {found}")


def _compare(before: dict[str, Any], after: dict[str, Any]) -> None:
    """Raises ProofError for the first state that is not the same."""
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            raise ProofError(
                f"{name} is {after.get(name)} when the result is brought back to the layout of the source, where it is "
                f"{before.get(name)}"
            )
