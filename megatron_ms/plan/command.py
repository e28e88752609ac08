"""The command `plan`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands import add_config_arguments

if TYPE_CHECKING:
    from ..training.settings import Settings
    from . import cost
    from .estimate import Memory

HELP = "memory on each device and the time of a step, before anything runs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    parser.add_argument("--mixes", action="store_true", help="also compare other tensor and pipeline sizes")
    parser.add_argument(
        "--measured",
        type=Path,
        metavar="RUN",
        help="the folder of a run on these devices (runs/NAME/TIME), whose time of a step takes the place of plan.busy",
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints the tables."""
    from .. import config
    from ..training import settings as checks
    from . import estimate

    document = config.load(arguments.config, arguments.overrides)
    settings = checks.read(document)
    machine = document.section("plan", estimate.Devices).machine()
    if arguments.measured:
        machine = _measured(arguments.measured, machine)
    form = estimate.shape(settings)
    active = f", of which a token uses {form.active_parameters() / 1e9:.3f}" if form.experts else ""
    print(f"{settings.name}: {form.parameters() / 1e9:.3f} billion parameters{active}")
    print(f"{_mix(settings)} on {settings.run.world} devices, {settings.train.precision}\n")
    print("stage   parameters   weights  gradients  optimizer  activations      all, GB")
    stages = estimate.stages(settings)
    for number, memory in enumerate(stages):
        print(f"{number:5}   {memory.parameters:>10}  {_row(memory)}")
    print()
    _print_step(settings, machine)
    if arguments.mixes:
        _print_mixes(settings, machine)
    most = max(memory.all for memory in stages)
    if most > machine.memory:
        print(
            f"\nThis needs {most / 1e9:.1f} GB on a device, which has {machine.memory / 1e9:.0f} (plan.memory)."
        )
    return 0


def _measured(run: Path, machine: cost.Machine) -> cost.Machine:
    """The machine with the share that a run has reached. It is printed as the key that holds it."""
    from . import measured

    found, seconds = measured.machine_of(run, machine)
    print(
        f"{run}: a step took {seconds:.3g} s, so matrix products reach {found.busy:.2g} of {found.flops / 1e12:g} TFLOP/s "
        f"(plan.busy={found.busy:.3g})\n"
    )
    return found


def _row(memory: Memory) -> str:
    sizes = (memory.weights, memory.gradients, memory.optimizer, memory.activations, memory.all)
    return "  ".join(f"{size / 1e9:>9.4g}" for size in sizes)


def _mix(settings: Settings) -> str:
    parallel = settings.parallel
    sizes = {
        "tensor": parallel.tensor,
        "pipeline": parallel.pipeline,
        "context": parallel.context,
        "data": settings.replicas,
    }
    return " x ".join(f"{name} {size}" for name, size in sizes.items() if name != "context" or size > 1)


def _print_step(settings: Settings, machine: cost.Machine) -> None:
    from . import estimate

    parts = estimate.step(settings, machine)
    tokens = settings.global_batch * settings.dataset.sequence_length
    shares = ", ".join(
        f"{name} {share / parts['all']:.0%}" for name, share in parts.items() if name != "all" and share > 0
    )
    print(
        f"step: {parts['all']:.3g} s ({shares}), {tokens / parts['all'] / settings.run.world:.0f} tokens/s on each device"
    )


def _print_mixes(settings: Settings, machine: cost.Machine) -> None:
    from . import estimate

    rows = []
    for other in estimate.mixes(settings):
        most = max(memory.all for memory in estimate.stages(other))
        rows.append((most > machine.memory, estimate.step(other, machine)["all"], most, _mix(other)))
    print("\n  step, s   GB on a device")
    for full, seconds, most, mix in sorted(rows):
        print(f"{seconds:>9.3g}   {most / 1e9:>14.4g}   {mix}{'   (does not fit)' if full else ''}")
