"""The cost model of Megatron's parallelism: memory on each device and the time of a step, for any number of devices.

A message of n bytes costs alpha + n beta (Hockney's model). The figures of a cluster are in `CLUSTER`; replace them by
measured ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

HALF, FULL = 2, 4  # bytes per number
OPTIMIZER_BYTES = 12  # per parameter: a float32 master weight and two float32 averages


@dataclass(frozen=True)
class Link:
    """A message of n bytes takes alpha + n * beta seconds."""

    alpha: float
    beta: float

    def message(self, size: float) -> float:
        """Seconds of one message of `size` bytes."""
        return self.alpha + size * self.beta

    def gather(self, size: float, ranks: int) -> float:
        """Seconds of an all-gather or reduce-scatter of `size` bytes in total: a ring, or doubling for many ranks."""
        if ranks <= 1:
            return 0.0
        return (
            min(ranks - 1, 2 * math.ceil(math.log2(ranks))) * self.alpha
            + (ranks - 1) / ranks * size * self.beta
        )

    def all_reduce(self, size: float, ranks: int) -> float:
        """Seconds of an all-reduce: a reduce-scatter and an all-gather."""
        return 2 * self.gather(size, ranks)

    def all_to_all(self, size: float, ranks: int) -> float:
        """Seconds of an all-to-all in which every rank sends `size` bytes in equal parts."""
        return 0.0 if ranks <= 1 else (ranks - 1) * self.alpha + (ranks - 1) / ranks * size * self.beta


@dataclass(frozen=True)
class Machine:
    """A cluster.

    `node` is the number of devices per node, `flops` a device's 16-bit operations per second, `busy` the share of them
    that matrix products reach, `memory` in bytes, `bandwidth` of this memory in bytes/s.
    """

    name: str
    near: Link  # inside a node
    far: Link  # between nodes
    node: int
    flops: float
    busy: float
    memory: float
    bandwidth: float

    def link(self, span: int) -> Link:
        """The link between ranks that are at most `span` devices apart."""
        return self.near if span <= self.node else self.far


# Published figures of an 8-device Ascend 910B node on a 200 Gb/s network; latencies and `busy` are assumptions.
CLUSTER = Machine(
    "8-device nodes, 376 TFLOP/s, 64 GB",
    Link(8e-6, 1 / 150e9),
    Link(20e-6, 1 / 22e9),
    8,
    376e12,
    0.5,
    64e9,
    1.6e12,
)


@dataclass(frozen=True)
class Model:
    """The geometry of a model. All counts are those of the whole model."""

    name: str
    layers: int
    hidden: int
    heads: int
    groups: int
    ffn: int
    gated: int
    sequence: int
    vocabulary: int
    experts: int
    active: int
    untied: int
    tensor: int
    pipeline: int
    recompute: int

    def attention(self) -> float:
        """Parameters of a layer's attention."""
        return self.hidden**2 * (2 + 2 * self.groups / self.heads)

    def mlp(self) -> float:
        """Parameters of one expert, or of the MLP."""
        return self.hidden * self.ffn * (3 if self.gated else 2)

    def parameters(self) -> float:
        """All parameters of the model."""
        embeddings = self.vocabulary * self.hidden * (1 + self.untied)
        return self.layers * (self.attention() + self.mlp() * self.experts) + embeddings

    def layer_flops(self) -> float:
        """Forward operations of a layer for one token: two per parameter, plus the products of attention."""
        return 2 * (self.attention() + self.mlp() * self.active) + 4 * self.sequence * self.hidden

    def token_flops(self) -> float:
        """Forward and backward operations of the model for one token, without recomputation."""
        return 3 * (self.layers * self.layer_flops() + 2 * self.vocabulary * self.hidden)


@dataclass(frozen=True)
class Plan:
    """A parallel layout of a model.

    micro: sequences per microbatch. count: microbatches per step and replica. number: bytes of a weight and of an activation.
    sharded: whether the replicas share the optimizer's state (Megatron's distributed optimizer).
    """

    model: Model
    machine: Machine
    devices: int
    tensor: int
    pipeline: int
    micro: int = 1
    count: int = 64
    chunks: int = 1  # virtual pipeline stages per device
    number: int = HALF
    sharded: bool = True

    @property
    def data(self) -> int:
        """The number of replicas."""
        return self.devices // (self.tensor * self.pipeline)

    def tokens(self) -> int:
        """Tokens per step."""
        return self.model.sequence * self.micro * self.count * self.data

    # -- time ----------------------------------------------------------------------------------------------
    def _activation(self) -> float:
        return self.model.sequence * self.micro * self.model.hidden * self.number

    def compute(self) -> float:
        """Seconds of a microbatch's matrix products on a device, forward and backward."""
        passes = 4 if self.model.recompute else 3
        here = self.model.layers / self.pipeline * self.model.layer_flops() * passes
        logits = 6 * self.model.vocabulary * self.model.hidden / self.pipeline
        per_token = (here + logits) / self.tensor
        return per_token * self.model.sequence * self.micro / (self.machine.flops * self.machine.busy)

    def tensor_time(self) -> float:
        """Seconds of a microbatch's tensor parallel communication: two all-reduces per layer and pass."""
        passes = 3 if self.model.recompute else 2
        one = self.machine.link(self.tensor).all_reduce(self._activation(), self.tensor)
        return 2 * passes * self.model.layers / self.pipeline * one

    def expert_time(self) -> float:
        """Seconds of a microbatch's expert parallel communication: two all-to-alls per layer and pass."""
        if self.model.experts == 1:
            return 0.0
        ranks = min(self.model.experts, self.data)
        size = self._activation() * self.model.active / self.tensor
        link = self.machine.link(ranks * self.tensor)
        return (
            2
            * (3 if self.model.recompute else 2)
            * self.model.layers
            / self.pipeline
            * link.all_to_all(size, ranks)
        )

    def message_time(self) -> float:
        """Seconds of a microbatch's messages to the next pipeline stage and back."""
        if self.pipeline == 1:
            return 0.0
        link = self.machine.link(self.tensor * 2)
        return 2 * self.chunks * link.message(self._activation() / self.tensor)

    def data_time(self) -> float:
        """Seconds to exchange the gradients (float32) and the parameters over the replicas.

        With a shared optimizer gradients are reduce-scattered and parameters all-gathered, else gradients are all-reduced.
        """
        link = self.machine.link(self.tensor * self.data)
        if not self.sharded:
            return link.all_reduce(self.held() * FULL, self.data)
        return link.gather(self.held() * FULL, self.data) + link.gather(self.held() * self.number, self.data)

    def update_time(self) -> float:
        """Seconds of the optimizer, which is limited by memory bandwidth."""
        mine = self.held() / self.data if self.sharded else self.held()
        return 2 * (OPTIMIZER_BYTES + FULL) * mine / self.machine.bandwidth

    def step(self) -> dict[str, float]:
        """Seconds of each part of a step, and their sum under "all"."""
        micro = self.compute() + self.tensor_time() + self.expert_time() + self.message_time()
        hidden = self.compute() * self.count * 2 / 3  # the replicas' exchange overlaps with the backward pass
        parts = {
            "compute": self.compute() * self.count,
            "tensor": self.tensor_time() * self.count,
            "experts": self.expert_time() * self.count,
            "messages": self.message_time() * self.count,
            "bubble": micro * (self.pipeline - 1) / self.chunks,
            "data": max(self.data_time() - hidden, 0.05 * self.data_time()),
            "update": self.update_time(),
        }
        return parts | {"all": sum(parts.values())}

    def utilisation(self) -> float:
        """Useful operations divided by the operations that the devices could do in the time of a step."""
        return (
            self.tokens()
            * self.model.token_flops()
            / (self.step()["all"] * self.devices * self.machine.flops)
        )

    # -- memory --------------------------------------------------------------------------------------------
    def held(self) -> float:
        """Parameters on a device of the first pipeline stage, which holds the embedding."""
        model = self.model
        experts = model.mlp() * model.experts / min(model.experts, max(self.data, 1))
        layers = model.layers / self.pipeline * (model.attention() + experts)
        return (layers + model.vocabulary * model.hidden) / self.tensor

    def memory(self) -> dict[str, float]:
        """Bytes on a device: weights and gradients, optimizer state, activations of the microbatches in flight, and "all"."""
        size = self.model.sequence * self.micro * self.model.hidden
        layers, under_way = self.model.layers / self.pipeline, min(self.count, self.pipeline)
        width = (
            2 if self.model.recompute else 10 + 24 * self.model.ffn / (4 * self.model.hidden)
        )  # Korthikanti et al., with
        parts = {  # attention's probabilities never stored
            "weights": (HALF + FULL) * self.held(),
            "optimizer": OPTIMIZER_BYTES * self.held() / self.data,
            "activations": width * size * layers * under_way / self.tensor
            + 2
            * FULL
            * self.model.sequence
            * self.micro
            * self.model.vocabulary
            / self.tensor
            / self.pipeline,
        }
        return parts | {"all": sum(parts.values())}


def best(model: Model, machine: Machine, devices: int, count: int = 64, batch: int = 0) -> Plan | None:
    """The fastest plan that fits into memory; None if none fits. `batch` gives tokens per step instead of `count`."""
    found = []
    for tensor in (1, 2, 4, 8):
        for pipeline in range(1, model.layers + 1):
            whole = (
                devices % (tensor * pipeline) == 0
                and model.layers % pipeline == 0
                and model.heads % tensor == 0
            )
            plan = Plan(model, machine, devices, tensor, pipeline, count=count)
            if batch and plan.data:
                plan = replace(plan, count=max(1, round(batch / model.sequence / plan.data)))
            if whole and plan.data >= 1 and plan.memory()["all"] <= 0.9 * machine.memory:
                found.append(plan)
    return min(found, key=lambda plan: plan.step()["all"] / plan.tokens(), default=None)
