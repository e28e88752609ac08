"""Predicts step time and memory of Megatron's parallelism on 8 to 10,000 devices with a cost model.

    python -m benchmarks scaling [--collectives JSON] [--table docs/scaling.md] [--plot docs/scaling.png]

A message of n bytes costs alpha + n beta (Hockney's model). --collectives reads alpha and beta of this machine's ranks
from the file that `python -m benchmarks collectives --json` writes. The figures of a cluster are in `CLUSTER`; replace
them by measured ones.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

from .collectives import alpha_beta

MODELS = Path(__file__).with_name("models.tsv")
HALF, FULL = 2, 4  # bytes per number
OPTIMIZER_BYTES = 12  # per parameter: a float32 master weight and two float32 averages
DEVICES = (8, 64, 512, 1024, 4096, 10240)


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
    """A row of models.tsv. All counts are those of the whole model."""

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
    """A parallel layout of a model. `micro` is sequences per microbatch, `count` microbatches per step and replica."""

    model: Model
    machine: Machine
    devices: int
    tensor: int
    pipeline: int
    micro: int = 1
    count: int = 64
    chunks: int = 1  # virtual pipeline stages per device

    @property
    def data(self) -> int:
        """The number of replicas."""
        return self.devices // (self.tensor * self.pipeline)

    def tokens(self) -> int:
        """Tokens per step."""
        return self.model.sequence * self.micro * self.count * self.data

    # -- time ----------------------------------------------------------------------------------------------
    def _activation(self) -> float:
        return self.model.sequence * self.micro * self.model.hidden * HALF

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
        """Seconds to reduce-scatter the gradients (float32) and all-gather the parameters (16 bits) over the replicas."""
        link = self.machine.link(self.tensor * self.data)
        return link.gather(self.held() * FULL, self.data) + link.gather(self.held() * HALF, self.data)

    def update_time(self) -> float:
        """Seconds of the optimizer, which is limited by memory bandwidth."""
        return 2 * (OPTIMIZER_BYTES + FULL) * self.held() / self.data / self.machine.bandwidth

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


def models() -> list[Model]:
    """The rows of models.tsv."""
    with MODELS.open() as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    return [Model(**{k: v if k == "name" else int(v) for k, v in row.items()}) for row in rows]


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


# -- the page ---------------------------------------------------------------------------------------------------
COUNT, BATCH = 16, 4 << 20
CLOSE = ("llama2_7b", "llama2_70b", "mixtral_8x7b", "gpt3_175B")  # models whose steps are shown part by part
_HEAD = """# Predicted scaling

Written by `python -m benchmarks scaling`; do not edit by hand. This page is the result of a cost model, not of measurements
on a cluster. A message of n bytes costs alpha + n beta. The time of a step is the sum of: the matrix products; the
communication of tensor parallelism (two all-reduces per layer and pass), of experts and between pipeline stages; the pipeline
bubble of (stages - 1) microbatches; the part of the gradient exchange between replicas that does not overlap with the
backward pass; and the optimizer. Memory is the sum of 16-bit weights, float32 gradients, this device's shard of the
distributed optimizer (12 bytes per parameter in all), and activations (attention probabilities are not stored). In weak
scaling each replica has {count} microbatches of one sequence, whatever the number of replicas.

The assumed cluster: {machine};
link inside a node {near}, link between nodes {far};
matrix products reach {busy:.0%} of the peak. These figures are published or assumed.{measured}
"""


def _link(link: Link) -> str:
    return f"{link.alpha * 1e6:.1f} us and {1 / link.beta / 1e9:.2f} GB/s"


def _mix(plan: Plan) -> str:
    return f"{plan.tensor} x {plan.pipeline} x {plan.data}"


def _cell(plan: Plan | None) -> str:
    if plan is None:
        return "-"
    full = "!" if plan.memory()["all"] > plan.machine.memory else ""
    return f"{plan.utilisation():.0%} {_mix(plan)}{full}"


def overview(choose) -> str:
    """A table of every model's utilisation and layout for each number of devices."""
    head = "| model | " + " | ".join(map(str, DEVICES)) + " |\n|" + "---|" * (len(DEVICES) + 1) + "\n"
    rows = [
        f"| {m.name}, {m.parameters() / 1e9:.1f} | " + " | ".join(_cell(choose(m, n)) for n in DEVICES) + " |"
        for m in models()
    ]
    return head + "\n".join(rows) + "\n"


def closely(model: Model, machine: Machine) -> str:
    """A table of the parts of time and memory of a model's fastest layouts."""
    parts = ("compute", "tensor", "experts", "messages", "bubble", "data", "update")
    head = (
        f"### {model.name}\n\n| devices | tensor x pipeline x data | step, s | {' | '.join(parts)} | "
        "weights, GB | optimizer | activations |\n|" + "---|" * (len(parts) + 6) + "\n"
    )
    rows = []
    for plan in filter(None, (best(model, machine, n, COUNT) for n in DEVICES)):
        step, memory = plan.step(), plan.memory()
        shares = " | ".join(f"{step[part] / step['all']:.0%}" for part in parts)
        held = " | ".join(f"{memory[part] / 1e9:.1f}" for part in ("weights", "optimizer", "activations"))
        rows.append(f"| {plan.devices} | {_mix(plan)} | {step['all']:.2f} | {shares} | {held} |")
    return head + "\n".join(rows) + "\n"


def own_mix(machine: Machine, model: Model, devices: int) -> Plan | None:
    """A plan with the model's own tensor and pipeline sizes; None if there are too few devices for them."""
    whole = devices - devices % (model.tensor * model.pipeline)
    return Plan(model, machine, whole, model.tensor, model.pipeline, count=COUNT) if whole else None


def markdown(machine: Machine, measured: Link | None) -> str:
    """The page for all models."""
    note = "" if measured is None else f"\nMeasured on this machine's CPU ranks over MPI: {_link(measured)}."
    page = [
        _HEAD.format(
            count=COUNT,
            machine=machine.name,
            near=_link(machine.near),
            far=_link(machine.far),
            busy=machine.busy,
            measured=note,
        )
    ]
    if measured is not None:
        page.append(_ranks_of_this_machine(measured))
        slow = replace(machine, near=measured, far=measured)
        page += [
            "## Utilisation with the links measured on this machine\n\nEvery link of the cluster is replaced by the link "
            f"between this machine's CPU ranks ({_link(measured)}). This shows how much utilisation slow links cost. Each "
            "cell is the fastest layout that fits into memory.\n",
            overview(lambda model, n: best(model, slow, n, COUNT)),
        ]
    page += [
        "## Utilisation with each model's published layout\n\nThe first column has the model and its billions of "
        "parameters, the other columns are numbers of devices. A cell has the utilisation and the layout, tensor x pipeline "
        "x data. An exclamation mark means that the layout needs more memory than a device has.\n",
        overview(lambda model, n: own_mix(machine, model, n)),
        "## Utilisation with the fastest layout that fits into memory\n",
        overview(lambda model, n: best(model, machine, n, COUNT)),
        f"## Utilisation with {BATCH >> 20} million tokens per step for any number of devices\n",
        overview(lambda model, n: best(model, machine, n, batch=BATCH)),
        "## Parts of a step\n",
        *(closely(model, machine) for model in models() if model.name in CLOSE),
    ]
    return "\n".join(page)


def _ranks_of_this_machine(link: Link) -> str:
    """The time of a small model's step with the measured link."""
    small = Model("GPT of the tests", 4, 128, 8, 8, 512, 0, 128, 4224, 1, 1, 0, 1, 1, 0)
    host = Machine("CPU ranks", link, link, 1 << 30, 40e9, 1.0, 4e9, 5e9)
    rows = []
    for tensor, pipeline, data in ((1, 1, 1), (2, 1, 1), (1, 2, 1), (1, 1, 2), (2, 2, 1), (2, 1, 2)):
        plan = replace(
            Plan(small, host, tensor * pipeline * data, tensor, pipeline), micro=2, count=4 // data
        )
        step = plan.step()
        shares = " | ".join(f"{step[part] * 1e3:.1f}" for part in ("all", "tensor", "bubble", "data"))
        rows.append(f"| {tensor} x {pipeline} x {data} | {shares} |")
    return (
        "## The tests' model on ranks of this machine\n\nTime of a step in milliseconds. Each rank is assumed to have a core "
        "of 40 GFLOP/s.\n\n"
        "| tensor x pipeline x data | all | tensor | bubble | data |\n|---|---|---|---|---|\n"
        + "\n".join(rows)
        + "\n"
    )


def plot(machine: Machine, path: Path) -> None:
    """Draws the utilisation of the fastest layouts over the number of devices."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for model in models():
        plans = [plan for plan in (best(model, machine, n, COUNT) for n in DEVICES) if plan is not None]
        if len(plans) > 2:
            axes.plot(
                [p.devices for p in plans], [p.utilisation() for p in plans], marker=".", label=model.name
            )
    axes.set(xscale="log", xlabel="devices", ylabel="utilisation", title="Predicted weak scaling")
    axes.legend(fontsize=5, ncol=3)
    figure.savefig(path, dpi=120)


def main(argv=None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks scaling", description=__doc__.splitlines()[0])
    parser.add_argument("--collectives", type=Path, help="JSON of `python -m benchmarks collectives`")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args(argv)
    measured = None
    if args.collectives:
        measured = Link(*alpha_beta(json.loads(args.collectives.read_text())["entries"]))
    page = markdown(CLUSTER, measured)
    if args.table:
        args.table.write_text(page)
    else:
        print(page)
    if args.plot:
        plot(CLUSTER, args.plot)
    return 0
