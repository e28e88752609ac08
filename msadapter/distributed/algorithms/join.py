"""torch.distributed.algorithms.join: training with different numbers of inputs per process.

Before each step, all processes exchange whether they still have inputs. Processes without inputs run the hooks of the
joinable objects, so that they take part in the collectives of the others.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import NamedTuple

from ... import ops
from .. import collectives
from ..setup import get_rank

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY = 1000  # number of steps without inputs after which a process warns


class JoinHook:
    """The actions of a process that has no inputs left."""

    def main_hook(self) -> None:
        """Called in every step of the other processes."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when no process has inputs left."""


class _JoinConfig(NamedTuple):
    """The settings of a joinable in the active Join block."""

    enable: bool
    throw_on_early_termination: bool
    is_first_joinable: bool

    @staticmethod
    def construct_disabled_join_config():
        """The settings outside of a block."""
        return _JoinConfig(False, False, False)


class Joinable(ABC):
    """Base class of objects for Join. They define `join_hook`, `join_device` and `join_process_group`."""

    _join_config = _JoinConfig.construct_disabled_join_config()

    @abstractmethod
    def join_hook(self, **kwargs) -> JoinHook:
        """The hook of this object."""

    @property
    @abstractmethod
    def join_device(self):
        """The device for the block's messages."""

    @property
    @abstractmethod
    def join_process_group(self):
        """The process group of the block."""


class Join:
    """A block in which processes may have different numbers of inputs.

    enable: if False, the block does nothing. throw_on_early_termination: raise an error on all processes as soon as one has no
    inputs left. kwargs are passed to the hooks. All joinables must have the same process group and device.
    """

    def __init__(self, joinables, enable: bool = True, throw_on_early_termination: bool = False, **kwargs):
        self._joinables = list(joinables)
        if not self._joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._enable, self._throws = enable, throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in self._joinables]
        groups = {id(joinable.join_process_group) for joinable in self._joinables}
        if len(groups) != 1:
            raise ValueError("Using join context manager with multiple process groups")
        if len({str(joinable.join_device) for joinable in self._joinables}) != 1:
            raise ValueError("Using join context manager with multiple devices")
        self._group, self._device = self._joinables[0].join_process_group, self._joinables[0].join_device
        self._rank = get_rank(self._group)
        for i, joinable in enumerate(self._joinables):
            joinable._join_config = _JoinConfig(enable, throw_on_early_termination, i == 0)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        if not self._enable or kind is not None:
            self._leave()
            return
        last, steps = True, 0
        while self._others():
            if self._throws:
                self._stop_others()
            steps += 1
            if steps == _MANY:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank {self._rank} has at least {_MANY} "
                    "fewer inputs than other currently-active ranks. This level of skew could lead to performance degradation "
                    "during training.",
                    stacklevel=2,
                )
            last = False
            for hook in self._hooks:
                hook.main_hook()
        for hook in self._hooks:
            hook.post_hook(last)
        self._leave()

    def _leave(self) -> None:
        for joinable in self._joinables:
            joinable._join_config = _JoinConfig.construct_disabled_join_config()

    def _others(self) -> int:
        """The number of processes that still have inputs."""
        count = ops.zeros(1, device=self._device)
        collectives.all_reduce(count, group=self._group)
        return int(count.item())

    def _stop_others(self) -> None:
        collectives.all_reduce(ops.ones(1, device=self._device), group=self._group)
        raise RuntimeError(f"Rank {self._rank} exhausted all inputs.")

    @staticmethod
    def notify_join_context(joinable: Joinable):
        """Called by a joinable in each step. Only the first joinable of a block communicates; for others it returns None."""
        if not hasattr(joinable, "_join_config"):
            raise AssertionError(
                f"Check that the {type(joinable)} constructor calls the ``Joinable`` constructor"
            )
        config, group = joinable._join_config, joinable.join_process_group
        if not config.is_first_joinable or not config.enable:
            return None
        active = ops.ones(1, device=joinable.join_device)
        work = collectives.all_reduce(active, group=group, async_op=True)
        if config.throw_on_early_termination:
            stopped = ops.zeros(1, device=joinable.join_device)
            collectives.all_reduce(stopped, group=group)
            if stopped.item():
                raise RuntimeError(
                    "Detected at least one rank that exhausted inputs. Throwing across all ranks."
                )
        return work
