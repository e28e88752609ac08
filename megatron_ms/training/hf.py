"""The command line of `hf_program.py`, which trains with transformers' Trainer, for a configuration."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import Document
from ..config.section import Section
from ..config.sections import TRAINING, section_class
from ..config.training import Dataset, Monitor, Resume, Run, Save, Train, Tune, Upstream
from ..convert.steps import digest
from ..errors import UserError
from ..upstream import flags as upstream_flags
from ..upstream.flags import ValueProblem
from ..upstream.trees import Trees
from .settings import existing, name_of

PROGRAM = "hf_program.py"
TRANSFORMERS = "transformers"
_USED = ("run", "dataset", "train", "tune", "save", "resume", "monitor", "upstream")
_LINEAR = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


@dataclass(frozen=True)
class Settings:
    """The sections that transformers' Trainer has use for."""

    document: Document
    run: Run
    dataset: Dataset
    train: Train
    tune: Tune
    save: Save
    resume: Resume
    monitor: Monitor
    upstream: Upstream

    @property
    def name(self) -> str:
        return name_of(self.document)

    @property
    def sections(self) -> dict[str, Section]:
        return {name: getattr(self, name) for name in _USED}


def read(document: Document) -> Settings:
    """Checks the sections.

    Raises:
        UserError: a key is wrong, or belongs to Megatron's programs alone.
    """
    for name in TRAINING:
        if name not in _USED and name in document.values:
            raise document.error(name, "has no effect with run.backend: hf; remove the section")
    settings = Settings(document, **{name: document.section(name, section_class(name)) for name in _USED})
    if settings.run.task == "dpo":
        raise document.error("run.task", "dpo needs the backend megatron, with MindSpeed-LLM")
    if settings.run.world > 1:
        raise document.error(
            "run.processes", "the backend hf trains on one process; use megatron for several"
        )
    each = settings.train.micro_batch
    if (settings.train.global_batch or each) % each:
        message = f"global batch {settings.train.global_batch} is not divisible by micro batch {each}"
        raise document.error("train.global_batch", message)
    return settings


def trees() -> Trees:
    """The place of the program; transformers is that of this Python.

    Raises:
        UserError: it is not installed.
    """
    place = Path(__file__).parent
    try:
        version = importlib.metadata.version(TRANSFORMERS)
        importlib.metadata.version("accelerate")
    except importlib.metadata.PackageNotFoundError as error:
        raise UserError(
            f"the backend hf needs the package {error.name}: pip install transformers accelerate"
        ) from None
    return Trees(TRANSFORMERS, place, (), f"{version} {digest(place / PROGRAM)}")


def command(settings: Settings, folder: Path, resumed: bool) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words of the command, and its variables.

    Raises:
        UserError: files are absent, or a key is no flag of TrainingArguments.
    """
    place = trees()
    flags = upstream_flags.read(place, PROGRAM)
    words = [sys.executable, "-m", "msadapter", str(place.program(PROGRAM))]
    given: set[str] = set()
    for key, flag, value in [*_extras(settings), *_own(settings, folder, resumed)]:
        if flag in given:
            continue  # a flag that is given by its own name counts instead of what we derive
        try:
            words += flags[flag].line(value)
        except ValueProblem as problem:
            raise settings.document.error(key, str(problem)) from None
        given.add(flag)
    variables = place.environment(settings.run.device, 1)
    return tuple(words), variables


Entry = tuple[str, str, Any]


def _extras(settings: Settings) -> Iterator[Entry]:
    for name, section in settings.sections.items():
        for flag, value in (section.model_extra or {}).items():
            yield f"{name}.{flag}", flag, str(value) if isinstance(value, bool) else value


def _own(settings: Settings, folder: Path, resumed: bool) -> Iterator[Entry]:
    train, save, monitor = settings.train, settings.save, settings.monitor
    if settings.resume.load is None:
        raise settings.document.error(
            "resume.load", "is missing: the folder of a Hugging Face model, or of its config.json alone"
        )
    model = existing(settings.document, "resume.load", settings.resume.load)
    if not (model / "config.json").is_file():
        raise settings.document.error("resume.load", f"{model} has no config.json")
    yield "resume.load", "model_folder", str(model)
    yield "dataset.path", "rows", _files(settings)
    if settings.dataset.tokenizer:
        yield (
            "dataset.tokenizer",
            "tokenizer_folder",
            str(existing(settings.document, "dataset.tokenizer", settings.dataset.tokenizer)),
        )
    if settings.run.task == "pretrain":
        yield "dataset.sequence_length", "row_length", settings.dataset.sequence_length
    if settings.run.task == "lora":
        targets = settings.tune.targets if "tune.targets" in settings.document.origins else _LINEAR
        yield "tune.rank", "lora_rank", settings.tune.rank
        yield "tune.alpha", "lora_alpha", settings.tune.alpha
        yield "tune.targets", "lora_targets", targets
    yield "resume", "resumed", str(resumed)
    yield "run.folder", "output_dir", str(folder / "checkpoints")
    yield "train.iterations", "max_steps", train.iterations
    yield "train.micro_batch", "per_device_train_batch_size", train.micro_batch
    yield (
        "train.global_batch",
        "gradient_accumulation_steps",
        (train.global_batch or train.micro_batch) // train.micro_batch,
    )
    yield "train.lr", "learning_rate", train.lr
    yield "train.decay", "lr_scheduler_type", train.decay
    yield "train.warmup", "warmup_steps", train.warmup
    yield "train.weight_decay", "weight_decay", train.weight_decay
    yield "train.clip", "max_grad_norm", train.clip
    yield "train.seed", "seed", train.seed
    yield "monitor.interval", "logging_steps", monitor.interval
    yield "monitor.interval", "disable_tqdm", "True"  # its bar would stand in the log many times
    yield "monitor.tensorboard", "report_to", "tensorboard" if monitor.tensorboard else "none"
    yield "save.interval", "save_strategy", "steps" if save.interval else "no"
    if save.interval:
        yield "save.interval", "save_steps", save.interval
        yield "save.optimizer", "save_only_model", str(not save.optimizer)
    if train.precision != "float32":
        yield "train.precision", train.precision, "True"
    if settings.run.device == "cpu":
        yield "run.device", "use_cpu", "True"


def _files(settings: Settings) -> list[str]:
    """The files of rows: dataset.path, or what the command `data` made in the format jsonl."""
    from ..data.section import Data

    document = settings.document
    given = settings.dataset.path
    if given is None and "data" in document.values:
        made = document.section("data", Data)
        if made.format != "jsonl":
            raise document.error("data.format", "must be jsonl for run.backend: hf")
        given = f"{made.output}.jsonl"
    if given is None:
        raise document.error(
            "dataset.path", "is missing: a file of JSON lines, which `data` with data.format: jsonl makes"
        )
    found = [
        existing(settings.document, "dataset.path", str(one))
        for one in (given if isinstance(given, list) else [given])
    ]
    if wrong := [file for file in found if not file.is_file()]:
        raise UserError(
            f"{document.where('dataset.path')}: dataset.path: {wrong[0]} is no file of JSON lines"
        )
    return [str(file) for file in found]
