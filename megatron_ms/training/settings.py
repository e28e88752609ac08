"""The checked sections of a training's configuration, and the sizes that must fit one another."""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass, fields, replace
from math import prod
from pathlib import Path
from typing import TypeVar

from ..config import Document
from ..config.section import Section, at_home
from ..config.sections import TRAINING
from ..config.training import (
    Dataset,
    Health,
    Model,
    Monitor,
    Overlap,
    Parallel,
    Profile,
    Recompute,
    Recovery,
    Resume,
    Run,
    Save,
    Train,
    Tune,
    Upstream,
)
from ..errors import UserError


def name_of(document: Document) -> str:
    """The name of the runs: the key `name`, else that of the file."""
    name = str(document.values.get("name") or document.path.stem)
    if not re.fullmatch(r"\w[\w.-]*", name):
        message = f"{name!r} must be letters, digits, dots and dashes, because a folder gets it"
        raise document.error("name", message)
    return name


@dataclass(frozen=True)
class Common:
    """The sections that every backend has use for."""

    document: Document
    run: Run
    dataset: Dataset
    train: Train
    tune: Tune
    save: Save
    resume: Resume
    monitor: Monitor
    profile: Profile
    upstream: Upstream

    @property
    def name(self) -> str:
        return name_of(self.document)

    @classmethod
    def names(cls) -> list[str]:
        """The names of the sections."""
        own = {field.name for field in fields(cls)}
        return [name for name in TRAINING if name in own]

    def sections(self) -> dict[str, Section]:
        return {name: getattr(self, name) for name in self.names()}

    def flag(self, name: str) -> object:
        """The value of one of upstream's flags, in whatever section it stands; None if it is not given."""
        return next(
            (extra[name] for one in self.sections().values() if name in (extra := one.model_extra or {})),
            None,
        )

    def check_length(self, other: str) -> None:
        """Raises UserError unless the length of the training is given, by train.iterations or by another flag."""
        if self.train.iterations is None and self.flag(other) is None:
            message = f"is missing: give the number of optimizer steps, or train.{other}"
            raise self.document.error("train.iterations", message)


@dataclass(frozen=True)
class Settings(Common):
    """All sections of a training with Megatron's programs."""

    model: Model
    parallel: Parallel
    health: Health
    recompute: Recompute
    overlap: Overlap
    recovery: Recovery

    @property
    def replicas(self) -> int:
        """Copies of the model, which see different samples."""
        return self.run.world // (self.parallel.tensor * self.parallel.pipeline * self.parallel.context)

    @property
    def global_batch(self) -> int:
        return self.train.global_batch or self.train.micro_batch * self.replicas

    def with_parallel(self, parallel: Parallel) -> Settings:
        """The same with other parallel sizes."""
        return replace(self, parallel=parallel)


C = TypeVar("C", bound=Common)


def checked(document: Document, kind: type[C]) -> C:
    """The sections of a training, each checked by itself.

    Raises:
        UserError: with a line for each wrong key.
    """
    from ..config.sections import section_class

    found, wrong = {}, []
    for name in kind.names():
        try:
            found[name] = document.section(name, section_class(name))
        except UserError as error:
            wrong.append(str(error))
    if wrong:
        raise UserError("\n".join(wrong))
    settings = kind(document, **found)
    _once(settings)
    return settings


def read(document: Document) -> Settings:
    """Checks all sections and the sizes.

    Raises:
        UserError: with a line for each wrong key, or the first size that does not fit.
    """
    settings = checked(document, Settings)
    if settings.run.task == "grpo":
        raise document.error("run.task", "grpo needs run.backend: hf; the command grpo sets both")
    _check_names(settings)
    _check_recovery(settings)
    check_sizes(settings)
    _check_fewer_machines(settings)
    return settings


def _check_names(settings: Settings) -> None:
    """Raises UserError for a key of this toolkit that is written as a flag of upstream, which has no such flag."""
    if settings.flag("peak_tflops") is not None:
        message = "is not a flag of upstream: write monitor.peak_tflops"
        raise settings.document.error(_key_of(settings, "peak_tflops"), message)


def _key_of(settings: Settings, flag: str) -> str:
    """The key under which a flag of upstream is given."""
    sections = settings.sections().items()
    return next(f"{name}.{flag}" for name, section in sections if flag in (section.model_extra or {}))


def _check_recovery(settings: Settings) -> None:
    """Raises UserError for a key of monitoring or recovery that needs another one."""
    if settings.recovery.memory is not None:
        needs = {
            "save.interval": settings.save.interval is not None,
            "monitor.watch: true": settings.monitor.watch,
        }
        for need, there in needs.items():
            if not there:
                raise settings.document.error("recovery.memory", f"needs {need}")
    if not settings.monitor.watch:
        if settings.save.format == "safetensors" and settings.save.interval is not None:
            raise settings.document.error("save.format", "safetensors needs monitor.watch: true")
        return
    for key, package in (("tensorboard", "tensorboard"), ("prometheus", "prometheus_client")):
        if getattr(settings.monitor, key) not in (None, False) and importlib.util.find_spec(package) is None:
            message = (
                "needs a package that is not installed: pip install 'msadapter[toolkit]', or leave it out"
            )
            raise settings.document.error(f"monitor.{key}", message)
    if settings.flag("async_save"):
        message = "writes files after the manifest: leave it out, or set monitor.watch: false"
        raise settings.document.error(_key_of(settings, "async_save"), message)


def check_window_applies(settings: Settings) -> None:
    """Raises UserError unless flash attention is on, which alone applies model.sliding_window in MindSpeed-LLM."""
    if not settings.flag("use_flash_attn"):
        message = "must be true: nothing else in MindSpeed-LLM applies sliding_window"
        raise settings.document.error("model.use_flash_attn", message)


def _check_fewer_machines(settings: Settings) -> None:
    """Raises UserError if the training cannot go on with each number of machines from run.min_nodes to run.nodes."""
    run, document = settings.run, settings.document
    if run.fewest == run.nodes:
        return
    needs = {
        "recovery.restarts, because all ranks start again when a machine leaves": settings.recovery.restarts
        > 0,
        "save.interval, because they go on from a checkpoint": settings.save.interval is not None,
        "train.global_batch, because the batch would change with the machines": settings.train.global_batch,
        "save.format: torch_dist, because other formats divide the state of parallel.distributed_optimizer for a fixed number of"
        " processes": settings.save.format == "torch_dist" or not settings.parallel.distributed_optimizer,
    }
    for need, there in needs.items():
        if not there:
            raise document.error("run.min_nodes", f"needs {need}")
    for nodes in range(run.fewest, run.nodes):
        try:
            check_sizes(replace(settings, run=run.model_copy(update={"nodes": nodes})))
        except UserError as error:
            count = "1 machine" if nodes == 1 else f"{nodes} machines"
            raise document.error(
                "run.min_nodes", f"allows {count}, with which a size does not fit: {error}"
            ) from None


def _once(settings: Common) -> None:
    """Keeps one of a flag that stands in two sections: the command line's, else the file's, else the recipe's.

    Raises:
        UserError: one layer gives both.
    """
    sections = settings.sections()
    seen: dict[str, str] = {}
    for name, section in sections.items():
        for flag in list(section.model_extra or {}):
            other = seen.setdefault(flag, name)
            if other == name:
                continue
            before, now = (settings.document.layer(f"{place}.{flag}") for place in (other, name))
            if before == now:
                where = settings.document.where(f"{other}.{flag}")
                raise settings.document.error(
                    f"{name}.{flag}", f"is also given in {other} ({where}): keep one"
                )
            sections[other if before < now else name].model_extra.pop(flag)
            seen[flag] = name if before < now else other


def _product(**sizes: int) -> str:
    """Factors that are not 1 and their product, such as "tensor 2 x pipeline 2 = 4"."""
    shown = [f"{name.replace('_', ' ')} {size}" for name, size in sizes.items() if size > 1]
    return " x ".join(shown) + (f" = {prod(sizes.values())}" if len(shown) > 1 else "")


_UNEVEN = (  # flags that divide layers among stages in another way
    "num_layer_list",
    "noop_layers",
    "pipeline_num_transformer_layers",
    "decoder_first_pipeline_num_layers",
    "decoder_last_pipeline_num_layers",
    "account_for_embedding_in_pipeline_split",
    "account_for_loss_in_pipeline_split",
    "pipeline_model_parallel_layout",
    "schedules_method",
)


def check_sizes(settings: Settings) -> None:
    """Raises UserError for the first size that does not fit. The message names the product that fails."""
    run, model, parallel, train = settings.run, settings.model, settings.parallel, settings.train
    sizes = {"tensor": parallel.tensor, "pipeline": parallel.pipeline, "context": parallel.context}
    _divides(settings, "run.processes", f"world size {run.world}", run.world, **sizes)
    heads, groups = model.num_attention_heads, model.num_query_groups
    _divides(settings, "model.num_attention_heads", f"{heads} heads", heads, tensor=parallel.tensor)
    if groups:
        _divides(settings, "model.num_attention_heads", f"{heads} heads", heads, groups=groups)
        _divides(settings, "model.num_query_groups", f"{groups} query groups", groups, tensor=parallel.tensor)
    if not model.kv_channels:
        _divides(
            settings, "model.hidden_size", f"hidden size {model.hidden_size}", model.hidden_size, heads=heads
        )
    _check_layers(settings)
    if parallel.expert > 1 and not model.num_experts:
        raise settings.document.error(
            "parallel.expert", f"is {parallel.expert}, but the model has no experts (model.num_experts)"
        )
    if model.num_experts:
        experts = model.num_experts
        _divides(settings, "model.num_experts", f"{experts} experts", experts, expert=parallel.expert)
        whole = {"expert": parallel.expert, "expert_tensor": parallel.expert_tensor or parallel.tensor}
        _divides(
            settings,
            "run.processes",
            f"world size {run.world}",
            run.world,
            **whole,
            pipeline=parallel.pipeline,
        )
        if model.moe_router_topk > experts:
            raise settings.document.error(
                "model.moe_router_topk", f"{model.moe_router_topk} of {experts} experts cannot be chosen"
            )
    length = settings.dataset.sequence_length
    if parallel.sequence:
        _divides(
            settings, "dataset.sequence_length", f"sequence length {length}", length, tensor=parallel.tensor
        )
    if parallel.context > 1:
        _divides(
            settings,
            "dataset.sequence_length",
            f"sequence length {length}",
            length,
            context=parallel.context,
            halves=2,
        )
    if not settings.flag("rampup_batch_size"):
        batch = settings.global_batch
        _divides(
            settings,
            "train.global_batch",
            f"global batch {batch}",
            batch,
            micro_batch=train.micro_batch,
            replicas=settings.replicas,
        )


def _check_layers(settings: Settings) -> None:
    layers, parallel = settings.model.num_layers, settings.parallel
    if any(settings.flag(name) is not None for name in _UNEVEN):
        return
    _divides(settings, "model.num_layers", f"{layers} layers", layers, pipeline=parallel.pipeline)
    if parallel.layers_per_virtual_stage:
        key = "parallel.layers_per_virtual_stage"
        if parallel.pipeline == 1:
            raise settings.document.error(key, "needs parallel.pipeline of 2 or more")
        sizes = {"pipeline": parallel.pipeline, "layers_of_a_chunk": parallel.layers_per_virtual_stage}
        _divides(settings, key, f"{layers} layers", layers, **sizes)


def _divides(settings: Settings, key: str, what: str, number: int, **sizes: int) -> None:
    if number % prod(sizes.values()):
        raise settings.document.error(key, f"{what} is not divisible by {_product(**sizes)}")


def gives_matrices(document: Document) -> bool:
    """Whether the section `tune` has keys of LoRA's matrices, by our names or upstream's. It may have numbers of DPO alone."""
    given = document.values.get("tune")
    return isinstance(given, dict) and any(
        name in Tune.model_fields or name.startswith("lora") for name in given
    )


def existing(document: Document, key: str, path: str) -> Path:
    """The absolute path of something that a key names.

    Raises:
        UserError: it does not exist.
    """
    place = place_of(document, key, path)
    if not place.exists():
        raise document.error(key, f"there is no {place}")
    return place


def place_of(document: Document, key: str, path: str) -> Path:
    """The absolute path of a value that is not checked as a path, with `~` for the user's folder.

    Raises:
        UserError: the folder of the user is not known.
    """
    try:
        return Path(at_home(path)).absolute()
    except ValueError as error:
        raise document.error(key, str(error)) from None
