"""An optimizer that averages parameters periodically after its steps."""

from __future__ import annotations

import warnings

from ...optim import Optimizer


class PostLocalSGDOptimizer(Optimizer):
    """Wraps any optimizer `optim` and a `PeriodicModelAverager`, whose step counter is part of the state dict."""

    def __init__(self, optim, averager):
        self.optim, self.averager = optim, averager
        self.param_groups, self.defaults = optim.param_groups, optim.defaults
        self._init_hooks()
        self._patch_step_function()

    @property
    def state(self):
        """The optimizer's."""
        return self.optim.state

    def __repr__(self):
        return repr(self.optim)

    def state_dict(self) -> dict:
        """The optimizer's state dict with the averager's step counter."""
        return self.optim.state_dict() | {"step": self.averager.step}

    def load_state_dict(self, state_dict: dict) -> None:
        """Loads the optimizer's state and the averager's step counter."""
        self.optim.load_state_dict({k: v for k, v in state_dict.items() if k != "step"})
        self.param_groups = self.optim.param_groups
        if "step" not in state_dict:
            warnings.warn(
                "Loaded state dict does not contain a step counter for an averager. Setting step counter to 0.",
                stacklevel=2,
            )
        self.averager.step = state_dict.get("step", 0)

    def step(self, closure=None):
        """Runs a step, and then averages the parameters if it is due."""
        loss = self.optim.step(closure) if closure is not None else self.optim.step()
        self.averager.average_parameters(params=self.param_groups)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """The optimizer's."""
        self.optim.zero_grad(set_to_none=set_to_none)

    def add_param_group(self, param_group: dict) -> None:
        """The optimizer's."""
        self.optim.add_param_group(param_group)
