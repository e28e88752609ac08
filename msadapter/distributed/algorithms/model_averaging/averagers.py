"""Averagers, which decide when parameters are averaged."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ...process_group import resolve
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Base class of the averagers. `step` counts the calls."""

    def __init__(self, process_group=None):
        self.process_group = resolve(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params) -> None:
        """Called after each step of the optimizer."""


class PeriodicModelAverager(ModelAverager):
    """Averages every ``period`` calls after the first ``warmup_steps`` calls."""

    def __init__(self, period: int, warmup_steps: int = 0, process_group=None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params) -> None:
        """Averages the parameters if this call is due."""
        if self.step >= self.warmup_steps and (self.step - self.warmup_steps) % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
