"""The command line of the programs that train with transformers' Trainer and with trl's, for a configuration."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config import Document
from ..config.document import unknown
from ..config.section import said_of
from ..config.sections import TRAINING
from ..config.training import Grpo
from ..convert.steps import digest
from ..errors import UserError, see
from ..upstream import flags as upstream_flags
from ..upstream.flags import ValueProblem
from ..upstream.trees import Trees
from . import rewards, trainer_checkpoints
from .settings import Common, checked, existing, gives_matrices

PROGRAM = "hf_program.py"
TRANSFORMERS = "transformers"
_PROGRAMS = {"dpo": "hf_dpo_program.py", "grpo": "hf_grpo_program.py"}  # task -> program, with trl
# pip would install PyTorch for some of them, so they are installed without what they ask for.
REQUIREMENTS = Path(__file__).with_name("requirements-hf.txt")
_NO_RECIPE = "leave the recipe out, because the folder in resume.load says which model it is"


@dataclass(frozen=True)
class Settings(Common):
    """The sections that transformers' Trainer and trl have use for."""

    grpo: Grpo


def read(document: Document) -> Settings:
    """Checks the sections.

    Raises:
        UserError: a key is wrong, or belongs to Megatron's programs alone.
    """
    for name in TRAINING:
        if name not in Settings.names() and name in document.values:
            remedy = "remove the section" if document.layer(name) else _NO_RECIPE
            raise document.error(name, f"has no effect with run.backend: hf; {remedy}")
    settings = checked(document, Settings)
    for name, section in settings.sections().items():
        for key in section.model_fields_set & set(type(section).model_fields):
            if said_of(type(section), key, "megatron_only"):
                raise document.error(f"{name}.{key}", "has no effect with run.backend: hf; remove the key")
    if settings.run.world > 1:
        raise document.error(
            "run.processes", "the backend hf trains on one process; use megatron for several"
        )
    each = settings.train.micro_batch
    if (settings.train.global_batch or each) % each:
        message = f"global batch {settings.train.global_batch} is not divisible by micro batch {each}"
        raise document.error("train.global_batch", message)
    if settings.run.task == "grpo" and (settings.train.global_batch or each) % settings.grpo.group:
        message = f"{settings.train.global_batch or each} completions are not whole groups of {settings.grpo.group} (grpo.group)"
        raise document.error("train.global_batch", f"{message} {see('whole-groups')}")
    return settings


def trees(task: str) -> Trees:
    """The place of the programs; transformers is that of this Python.

    Raises:
        UserError: a package is not installed.
    """
    place = Path(__file__).parent
    packages = [TRANSFORMERS, "accelerate"]
    packages += ["peft"] if task == "lora" or task in _PROGRAMS else []
    packages += ["trl"] if task in _PROGRAMS else []
    try:
        versions = [importlib.metadata.version(name) for name in packages]
    except importlib.metadata.PackageNotFoundError as error:
        raise UserError(
            f"the backend hf needs the package {error.name}: pip install --no-deps -r {REQUIREMENTS} {see('hf-packages')}"
        ) from None
    programs = [place / name for name in (PROGRAM, *_PROGRAMS.values())]
    return Trees(TRANSFORMERS, place, (), " ".join([*versions, digest(*programs)]))


def command(settings: Settings, folder: Path, resumed: bool) -> tuple[tuple[str, ...], dict[str, str]]:
    """The words of the command, and its variables.

    Raises:
        UserError: files are absent, or a key is not a flag of TrainingArguments.
    """
    task = settings.run.task
    place, program = trees(task), _PROGRAMS.get(task, PROGRAM)
    flags = upstream_flags.read(place, program)
    words = [sys.executable, "-m", "msadapter", str(place.program(program))]
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
    for name, section in settings.sections().items():
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
    if settings.run.task == "grpo":
        yield from _grpo(settings)
    else:
        yield "dataset.path", "rows", _files(settings)
    if settings.dataset.tokenizer:
        yield (
            "dataset.tokenizer",
            "tokenizer_folder",
            str(existing(settings.document, "dataset.tokenizer", settings.dataset.tokenizer)),
        )
    if settings.run.task == "pretrain":
        yield "dataset.sequence_length", "row_length", settings.dataset.sequence_length
    yield from _lora(settings)
    last = trainer_checkpoints.last(folder / "checkpoints") if resumed else None
    yield "resume", "resumed", None if last is None else str(last[1])
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
    yield "dataset.workers", "dataloader_num_workers", settings.dataset.workers
    yield "monitor.interval", "logging_steps", monitor.interval
    yield "monitor.interval", "disable_tqdm", "True"  # its bar would stand in the log many times
    events = monitor.tensorboard and "monitor.tensorboard" in settings.document.origins
    yield "monitor.tensorboard", "report_to", "tensorboard" if events else "none"
    yield "save.interval", "save_strategy", "steps" if save.interval else "no"
    if save.interval:
        yield "save.interval", "save_steps", save.interval
        yield "save.optimizer", "save_only_model", str(not save.optimizer)
    if settings.profile.steps is not None:
        first, after = settings.profile.steps
        yield "profile.steps", "profile_first", first
        yield "profile.steps", "profile_count", after - first
        yield "profile.steps", "profile_folder", str(folder / "profile")
    for kind in ("bf16", "fp16"):  # trl's default is bf16
        yield "train.precision", kind, str(train.precision == kind)
    if settings.run.task in _PROGRAMS:
        yield "run.task", "gradient_checkpointing", "False"  # trl's default would compute everything twice
    if settings.run.device == "cpu":
        yield "run.device", "use_cpu", "True"


def _lora(settings: Settings) -> Iterator[Entry]:
    """LoRA's matrices. With dpo and grpo, keys of the section `tune` for them add them."""
    document, tune = settings.document, settings.tune
    if settings.run.task != "lora" and not (settings.run.task in _PROGRAMS and gives_matrices(document)):
        return
    yield "tune.rank", "lora_rank", tune.rank
    yield "tune.alpha", "lora_alpha", tune.alpha
    if "tune.targets" in document.origins:
        yield "tune.targets", "lora_targets", tune.targets
    if tune.load:
        adapter = existing(document, "tune.load", tune.load)
        if not (adapter / "adapter_config.json").is_file():
            raise document.error(
                "tune.load", f"{adapter} has no adapter_config.json: is it an adapter of peft?"
            )
        yield "tune.load", "lora_load", str(adapter)


def _grpo(settings: Settings) -> Iterator[Entry]:
    """The prompts, the rules, and trl's flags."""
    document, grpo = settings.document, settings.grpo
    if grpo.prompts is None:
        raise document.error("grpo.prompts", "is missing: a file of JSON lines with `prompt`")
    files = [grpo.prompts] if isinstance(grpo.prompts, str) else grpo.prompts
    yield "grpo.prompts", "rows", [str(_file(document, "grpo.prompts", one)) for one in files]
    rules = [grpo.reward] if isinstance(grpo.reward, str) else grpo.reward
    yield "grpo.reward", "rules", [_rule(document, one) for one in rules]
    if grpo.validation:
        yield "grpo.validation", "validation", str(_file(document, "grpo.validation", grpo.validation))
    yield "grpo.group", "num_generations", grpo.group
    yield "grpo.length", "max_completion_length", grpo.length
    yield "grpo.temperature", "temperature", grpo.temperature
    yield "grpo.beta", "beta", grpo.beta
    yield "grpo.clip", "epsilon", grpo.clip
    yield "grpo.updates", "num_iterations", grpo.updates


def _rule(document: Document, name: str) -> str:
    """The rule as the program gets it: with the absolute path of its file."""
    own = rewards.split(name)
    if own is not None:
        return f"{_file(document, 'grpo.reward', str(own[0]))}:{own[1]}"
    if name not in rewards.RULES:
        message = unknown(name, rewards.RULES, "rule")
        raise document.error("grpo.reward", f"{message} ({', '.join(rewards.RULES)}, or FILE.py:FUNCTION)")
    return name


def _file(document: Document, key: str, path: str) -> Path:
    """The absolute path of a file that a key names."""
    place = existing(document, key, path)
    if not place.is_file():
        raise document.error(key, f"{place} is not a file")
    return place


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
            f"{document.where('dataset.path')}: dataset.path: {wrong[0]} is not a file of JSON lines"
        )
    return [str(file) for file in found]
