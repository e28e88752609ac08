"""Memory on each device and the time of a step, for a configuration and for other layouts on the same number of devices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from ..config.section import Section, key
from ..errors import UserError
from ..training.settings import Settings
from . import activations, cost, geometry

_GIGA = 1e9


class Devices(Section):
    """The devices that `plan` computes with. The defaults are published figures of nodes of eight Ascend 910B."""

    level: ClassVar[str] = "advanced"

    memory: float = key(cost.CLUSTER.memory / _GIGA, "memory of a device in GB", gt=0)
    tflops: float = key(cost.CLUSTER.flops / 1e12, "16-bit TFLOP/s of a device", gt=0)
    busy: float = key(cost.CLUSTER.busy, "share of them that matrix products reach", gt=0, le=1)
    bandwidth: float = key(cost.CLUSTER.bandwidth / _GIGA, "GB/s of a device's memory", gt=0)
    per_node: int = key(cost.CLUSTER.node, "devices in a machine", gt=0)
    near: float = key(1 / cost.CLUSTER.near.beta / _GIGA, "GB/s between devices of a machine", gt=0)
    far: float = key(1 / cost.CLUSTER.far.beta / _GIGA, "GB/s between machines", gt=0)

    def machine(self) -> cost.Machine:
        """The same for the cost model."""
        near = cost.Link(cost.CLUSTER.near.alpha, 1 / (self.near * _GIGA))
        far = cost.Link(cost.CLUSTER.far.alpha, 1 / (self.far * _GIGA))
        flops, memory, speed = self.tflops * 1e12, self.memory * _GIGA, self.bandwidth * _GIGA
        return cost.Machine("devices", near, far, self.per_node, flops, self.busy, memory, speed)


@dataclass(frozen=True)
class Memory:
    """Bytes on a process of a pipeline stage. Parameters, gradients and optimizer are exact but for padding of buckets.

    activations: what the forward pass leaves for the backward, at most.
    """

    parameters: int  # their number
    weights: int
    gradients: int
    optimizer: int
    activations: float

    @property
    def all(self) -> float:
        return self.weights + self.gradients + self.optimizer + self.activations


def flags_of(settings: Settings) -> dict[str, Any]:
    """The flags of all sections."""
    return {
        name: value for one in settings.sections().values() for name, value in (one.model_extra or {}).items()
    }


def shape(settings: Settings) -> geometry.Geometry:
    """The model's geometry.

    Raises:
        UserError: the vocabulary is not given.
    """
    if not settings.model.vocab_size:
        raise settings.document.error(
            "model.vocab_size", "is missing: without it the embeddings have no size"
        )
    return geometry.of(settings.model, settings.dataset.sequence_length, flags_of(settings))


def stages(settings: Settings) -> list[Memory]:
    """The memory on a process of each pipeline stage."""
    form, parallel = shape(settings), settings.parallel
    tensor, count = parallel.tensor, parallel.pipeline
    if form.layers % count:
        raise settings.document.error(
            "parallel.pipeline", "plan knows only stages with the same number of layers"
        )
    experts_on = parallel.expert * (parallel.expert_tensor or tensor)
    replicas = settings.replicas * parallel.context
    of_experts = settings.run.world // (experts_on * count)
    full = settings.train.precision == "float32"
    half_gradients = settings.train.precision == "fp16"
    flags = flags_of(settings)
    found = []
    for number in range(count):
        whole = form.stage(number, tensor, count)
        dense, sparse = whole.dense(tensor), whole.experts // experts_on
        shards = (replicas, of_experts) if parallel.distributed_optimizer else (1, 1)
        stated = dense / shards[0] + sparse / shards[1]
        found.append(
            Memory(
                dense + sparse,
                (dense + sparse) * (cost.FULL if full else cost.HALF),
                (dense + sparse) * (cost.HALF if half_gradients else cost.FULL),
                round(stated * _state_bytes(settings)),
                activations.stage(settings, form, flags, number),
            )
        )
    return found


def checkpoint(settings: Settings) -> int:
    """Bytes of a checkpoint of the whole model."""
    weights = cost.FULL if settings.train.precision == "float32" else cost.HALF
    return shape(settings).parameters() * (
        weights + (_state_bytes(settings) if settings.save.optimizer else 0)
    )


def _state_bytes(settings: Settings) -> int:
    """Bytes of the optimizer's state for a parameter. In float32 the weights themselves are the master weights."""
    full = settings.train.precision == "float32"
    return cost.OPTIMIZER_BYTES - cost.FULL if full else cost.OPTIMIZER_BYTES


def _cost_plan(settings: Settings, form: geometry.Geometry, machine: cost.Machine) -> cost.Plan:
    """The configuration as the cost model sees it."""
    parallel, train = settings.parallel, settings.train
    count = max(1, settings.global_batch // (train.micro_batch * settings.replicas))
    virtual = parallel.layers_per_virtual_stage
    chunks = form.layers // parallel.pipeline // virtual if virtual else 1
    return cost.Plan(
        _cost_model(settings, form),
        machine,
        settings.run.world,
        parallel.tensor,
        parallel.pipeline,
        train.micro_batch,
        count,
        chunks,
        cost.FULL if train.precision == "float32" else cost.HALF,
        parallel.distributed_optimizer,
    )


def _cost_model(settings: Settings, form: geometry.Geometry) -> cost.Model:
    parallel, length = settings.parallel, settings.dataset.sequence_length
    recompute = int(settings.recompute.granularity == "full")
    return cost_model(
        settings.name, form, length // parallel.context, parallel.tensor, parallel.pipeline, recompute
    )


def cost_model(
    name: str, form: geometry.Geometry, length: int, tensor: int, pipeline: int, recompute: int
) -> cost.Model:
    """A geometry as the cost model sees it. length: tokens of a sample that are on one process."""
    return cost.Model(
        name,
        form.layers,
        form.hidden,
        form.heads,
        form.groups,
        form.expert_ffn if form.experts else form.ffn,
        int(form.gated),
        length,
        form.vocabulary,
        max(1, form.experts),
        form.active,
        int(form.untied),
        tensor,
        pipeline,
        recompute,
    )


def step(settings: Settings, machine: cost.Machine) -> dict[str, float]:
    """Seconds of the parts of a step, and their sum under "all"."""
    return _cost_plan(settings, shape(settings), machine).step()


def mixes(settings: Settings) -> Iterator[Settings]:
    """The same training with other tensor and pipeline sizes on as many devices, as far as the sizes fit."""
    from ..training.settings import check_sizes

    world = settings.run.world
    for tensor in (size for size in (1, 2, 4, 8) if size <= world):
        for pipeline in range(1, world // tensor + 1):
            parallel = settings.parallel.model_copy(update={"tensor": tensor, "pipeline": pipeline})
            other = settings.with_parallel(parallel)
            try:
                check_sizes(other)
            except UserError:
                continue  # this mix does not fit the model
            yield other
