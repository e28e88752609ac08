"""Predicts step time and memory of Megatron's parallelism on 8 to 10,000 devices with a cost model.

    python -m benchmarks scaling [--collectives JSON] [--table docs/scaling.md] [--plot docs/scaling.png]

The cost model and the figures of the cluster are in megatron_ms.plan.cost. --collectives reads alpha and beta of this
machine's ranks from the file that `python -m benchmarks collectives --json` writes.
"""

from __future__ import annotations

import argparse
import csv
import functools
import json
from dataclasses import replace
from pathlib import Path

from megatron_ms.models import catalogue
from megatron_ms.plan.cost import CLUSTER, Link, Machine, Model, Plan, best
from megatron_ms.plan.estimate import cost_model

from .collectives import alpha_beta

MODELS = Path(__file__).with_name("models.tsv")
DEVICES = (8, 64, 512, 1024, 4096, 10240)


@functools.cache
def models() -> list[Model]:
    """The recipes that models.tsv names, with their published layouts; `layers` stands for a model of fewer layers."""
    with MODELS.open() as stream:
        return [_model(row) for row in csv.DictReader(stream, delimiter="\t")]


def _model(row: dict[str, str]) -> Model:
    recipe = catalogue.read(row["recipe"])
    layers = int(row["layers"] or recipe.form.layers)
    name = recipe.name if layers == recipe.form.layers else f"{recipe.name}, {layers} layers"
    layout = int(row["tensor"]), int(row["pipeline"]), int(row["recompute"])
    return cost_model(name, replace(recipe.form, layers=layers), recipe.length, *layout)


# -- the page ---------------------------------------------------------------------------------------------------
COUNT, BATCH = 16, 4 << 20
CLOSE = ("llama2-7b", "llama2-70b", "mixtral-8x7b", "gpt3-175b")  # models whose steps are shown part by part
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
