"""Last words: when a step fails, the ranks that are left write a checkpoint of the last step that they have finished.

After a failure the ranks cannot talk to each other, so each writes alone: upstream's own save_checkpoint writes the file of this
rank's part of the model, as data parallel rank 0 would, into a folder of this rank. When all ranks have ended, the newest step of
which all parts are there becomes a checkpoint like any other (`last_parts.py`).

This needs a whole copy of each part on one of the ranks that are left, and files that a rank can write alone. So the format must be
`torch` or `safetensors`, without the distributed optimizer, whose states are divided among all ranks.
"""

from __future__ import annotations

import copy
import functools
import os
import random
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..monitor import events
from . import manifest
from .last_parts import ABOUT, FOLDER
from .saving import Saving, together

PATIENCE = 30.0  # seconds that the launcher gives the ranks that are left
_WRITERS = 2  # so many data parallel ranks write each part: one of them may be the rank that has failed
# Where upstream changes more than parameters and the optimizer's state in a step, or divides states among data parallel ranks.
_AGAINST = {
    "use_distributed_optimizer": "the distributed optimizer divides its state among the ranks",
    "data_parallel_random_init": "the random states of all data parallel ranks are in one file",
    "moe_router_enable_expert_bias": "the bias of experts changes before the optimizer's step",
    "fp8": "the scales of fp8 change in the forward pass",
}


def against(arguments: Any) -> str:
    """Why the ranks of a training cannot write alone, by upstream's arguments; "" if they can."""
    if not getattr(arguments, "save", None):
        return "the run writes no checkpoints"
    if getattr(arguments, "use_dist_ckpt", False) or arguments.ckpt_format != "torch":
        return f"the ranks write the format {arguments.ckpt_format} together"
    return next((why for name, why in _AGAINST.items() if getattr(arguments, name, None)), "")


class LastWords:
    """The side of a rank. saving: with which the rank saves otherwise."""

    def __init__(self, saving: Saving, rank: int) -> None:
        self.saving, self.rank = saving, rank
        self.parts: list[str] = []  # of the whole model; empty if this rank writes nothing
        self._part = ""
        self._random: dict[str, Any] = {}  # random states at the begin of the step
        self._rerun: Any = None  # state of upstream's machine that runs steps again, between two steps
        self.whole: int | None = None  # the finished step whose state this rank has now

    def prepare(self, arguments: Any, optimizer: Any) -> None:
        """At the first step. All ranks take part."""
        from megatron.training import checkpointing

        why = against(arguments)
        if why and arguments.save and self.rank == 0:
            self._say(
                f"after a failure the ranks that are left cannot write a checkpoint: {why}. The steps since the last one are then "
                "computed again; with recovery.memory=1 it is one step at most",
                self.saving.newest,
            )
        own = "" if why else Path(checkpointing.get_checkpoint_name("", 0)).parent.name
        found = together(own)
        if not all(found) or found[: self.rank].count(own) >= _WRITERS:
            return
        self._part, self.parts = own, sorted(set(found))
        optimizer.step = functools.partial(self._changing, optimizer.step)
        _ask_patience()

    def begins(self, done: int) -> None:
        """A step begins, after `done` finished ones."""
        if self.parts:
            self.whole, self._random, self._rerun = done, _random_states(), _rerun_state()

    def _changing(self, step: Any, *arguments: Any, **named: Any) -> Any:
        self.whole = None
        return step(*arguments, **named)

    def finished(self, done: int) -> None:
        """Upstream has finished the step with this number."""
        if self.parts:
            self.whole, self._random, self._rerun = done, {}, _rerun_state()

    def speak(
        self,
        model: Any,
        optimizer: Any,
        scheduler: Any,
        operations: float,
        reasons: Callable[[int], tuple[str, ...]],
        told: Mapping[str, Any],
    ) -> None:
        """After a failure: writes this rank's part, if its state is that of a finished step which has no checkpoint yet.

        operations: upstream's count of floating point operations up to that step. reasons(iteration): why a checkpoint of it is
        unhealthy, without asking other ranks. told: the numbers of that step, by the name of the file that should have them.
        """
        from megatron.training import checkpointing, get_args

        number, given = self.whole, get_args()
        if number is None or number <= self.saving.newest:
            return
        if found := reasons(number):
            self._say(f"rank {self.rank} writes nothing before its end: {'; '.join(found)}", number)
            return
        folder = Path(given.save)
        own = folder / FOLDER / f"rank-{self.rank}"
        shutil.rmtree(own, ignore_errors=True)
        manifest.demand(folder)
        own.mkdir(parents=True)
        about = {"part": self._part, "parts": self.parts, **told}
        (own / ABOUT).write_text(events.line_of(about), encoding="utf-8")
        if self._random:
            _set_random_states(self._random)
        given.save = str(own)
        with _alone(self._rerun), self.saving.alone():
            checkpointing.save_checkpoint(number, model, optimizer, scheduler, operations, {})
        place = manifest.place_of(own, number)
        manifest.write(place, manifest.measure(place))
        self._say(f"rank {self.rank} has written {self._part} of checkpoint {number} before its end", number)

    def _say(self, text: str, number: int) -> None:
        print(text, flush=True)
        events.append(self.saving.folder, "last words", text, iteration=number)


@contextmanager
def _alone(rerun: Any) -> Iterator[None]:
    """While it is open, upstream's functions that save wait for nobody, and this rank counts as data parallel rank 0.

    rerun: what the machine that runs steps again saves, which now may be inside of a step.
    """
    import torch
    from megatron.core import parallel_state
    from megatron.core.rerun_state_machine import get_rerun_state_machine

    places: list[tuple[Any, str, Any]] = [(torch.distributed, "barrier", lambda *_, **__: None)]
    for name in ("get_data_parallel_rank", "get_expert_data_parallel_rank"):
        places.append((parallel_state, name, lambda *_, **__: 0))
    places.append((get_rerun_state_machine(), "state_dict", lambda *_, **__: rerun))
    before = [(module, name, getattr(module, name)) for module, name, _ in places]
    try:
        for module, name, function in places:
            setattr(module, name, function)
        yield
    finally:
        for module, name, function in before:
            setattr(module, name, function)


def _rerun_state() -> Any:
    """What a checkpoint has of the machine that runs steps again. Without data, which a new start reads again."""
    from megatron.core.rerun_state_machine import get_rerun_state_machine

    return copy.deepcopy(get_rerun_state_machine().state_dict(None, "torch"))


def _random_states() -> dict[str, Any]:
    """The random states that upstream has in its checkpoints."""
    import numpy
    import torch
    from megatron.core.tensor_parallel import get_cuda_rng_tracker

    return {
        "python": random.getstate(),
        "numpy": numpy.random.get_state(),
        "torch": torch.get_rng_state(),
        "device": torch.cuda.get_rng_state(),
        "tracker": get_cuda_rng_tracker().get_states(),
    }


def _set_random_states(states: dict[str, Any]) -> None:
    import numpy
    import torch
    from megatron.core.tensor_parallel import get_cuda_rng_tracker

    random.setstate(states["python"])
    numpy.random.set_state(states["numpy"])
    torch.set_rng_state(states["torch"])
    torch.cuda.set_rng_state(states["device"])
    get_cuda_rng_tracker().set_states(states["tracker"])


def _ask_patience() -> None:
    """Asks the launcher to let the ranks that are left write after a failure."""
    from torch.distributed import TCPStore

    from msadapter.distributed.meeting import RANKS_PATIENCE

    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        TCPStore(host, port, timeout=timedelta(seconds=60)).set(RANKS_PATIENCE, str(PATIENCE))
