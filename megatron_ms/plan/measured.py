"""What a run has measured, for the plan of others: the share of the devices' operations that matrix products reach.

The cost model has one number that no data sheet tells, `busy`. One run of a layout, which may be short, gives it: the share with
which the model's time of that layout's step is the measured one. Then the times of other layouts are predictions.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from statistics import median

from .. import config
from ..errors import UserError
from ..monitor import events, outputs
from ..training import settings as checks
from ..training.settings import Settings
from . import cost, estimate

_FEWEST = 3  # records without which a run says too little of the time of a step
_LEAST_BUSY = 1e-9


def step_time(folder: Path) -> float:
    """The median time of a run's steps in seconds.

    Raises:
        UserError: the folder has too few records of steps.
    """
    lines = events.read(folder, outputs.MEASURED)
    times = [
        line["seconds"] / line.get("steps", 1)
        for line in lines
        if isinstance(line.get("seconds"), float) and line["seconds"] > 0
    ]
    if len(times) < _FEWEST:
        raise UserError(
            f"{folder / outputs.MEASURED}: has the times of {len(times)} steps, and the plan needs {_FEWEST}: "
            "name the folder of a run (runs/NAME/TIME) that was trained with monitoring"
        )
    return median(times)


def fitted(settings: Settings, machine: cost.Machine, seconds: float) -> cost.Machine:
    """The machine with the share `busy` for which a step of this configuration takes so many seconds.

    Raises:
        UserError: not even a share of 1 is so fast, so another figure of the section `plan` is too low.
    """

    def excess(busy: float) -> float:
        return estimate.step(settings, replace(machine, busy=busy))["all"] - seconds

    if excess(1.0) > 0:
        parts = estimate.step(settings, replace(machine, busy=1.0))
        told = ", ".join(f"{name} {part:.3g} s" for name, part in parts.items() if part > 0)
        raise UserError(
            f"plan: a step took {seconds:.3g} s, which is faster than plan.tflops, plan.near, plan.far and plan.bandwidth "
            f"allow ({told}): raise those that are too low for the devices of this run"
        )
    low, high = math.log(_LEAST_BUSY), 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(math.exp(middle)) > 0 else (low, middle)
    return replace(machine, busy=math.exp(high))


def machine_of(folder: Path, machine: cost.Machine) -> tuple[cost.Machine, float]:
    """The machine with the share that a run in this folder has reached, and the seconds of the run's step.

    Raises:
        UserError: the folder is not that of a run, or its steps are faster than the machine's figures allow.
    """
    place = folder / "config.yaml"
    if not place.is_file():
        raise UserError(
            f"{place}: there is no such file: --measured needs the folder of a run, runs/NAME/TIME"
        )
    seconds = step_time(folder)
    return fitted(checks.read(config.load(place)), machine, seconds), seconds
