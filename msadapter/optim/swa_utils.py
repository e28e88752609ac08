"""Averages of a model's weights (stochastic weight averaging, exponential moving averages)."""

import itertools
from copy import deepcopy

from ..autograd import no_grad
from ..nn import Module
from ..tensor import _tensor as factory
from ._swa_schedule import SWALR

__all__ = [
    "AveragedModel",
    "SWALR",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def _check_decay(decay):
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _averages(tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def get_ema_avg_fn(decay=0.999):
    """`f(average, new, count)`: exponential moving average of one tensor."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_param, current_param, num_averaged):
        return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn():
    """`f(average, new, count)`: equally weighted average of one tensor."""

    @no_grad()
    def swa_update(averaged_param, current_param, num_averaged):
        return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


def get_ema_multi_avg_fn(decay=0.999):
    """`f(averages, new, count)`: exponential moving average of a list of tensors, in place."""
    _check_decay(decay)

    @no_grad()
    def ema_update(ema_params, current_params, _):
        for average, current in zip(ema_params, current_params, strict=True):
            if _averages(average):
                average.lerp_(current, 1 - decay)
            else:
                average.copy_(average * decay + current * (1 - decay))

    return ema_update


def get_swa_multi_avg_fn():
    """`f(averages, new, count)`: equally weighted average of a list of tensors, in place."""

    @no_grad()
    def swa_update(averaged_params, current_params, num_averaged):
        count = num_averaged.item() if hasattr(num_averaged, "item") else num_averaged
        for average, current in zip(averaged_params, current_params, strict=True):
            if _averages(average):
                average.lerp_(current, 1 / (count + 1))
            else:
                average.add_((current - average) / (count + 1))

    return swa_update


class AveragedModel(Module):
    """A copy of `model` whose weights are the average of its weights at the calls of update_parameters.

    avg_fn averages one tensor, and multi_avg_fn lists of tensors in place; without both, all weights count
    equally. use_buffers: average buffers too, instead of copying them.
    """

    def __init__(self, model, device=None, avg_fn=None, multi_avg_fn=None, use_buffers=False):
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", factory.tensor(0, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args, **kwargs):
        """Return the output of the averaged model."""
        return self.module(*args, **kwargs)

    def _tensors(self, module):
        return list(
            itertools.chain(module.parameters(), module.buffers())
            if self.use_buffers
            else module.parameters()
        )

    @no_grad()
    def update_parameters(self, model):
        """Add the present weights of `model` to the average."""
        mine = [t.detach() for t in self._tensors(self.module)]
        new = [t.detach().to(device=m.device) for t, m in zip(self._tensors(model), mine, strict=True)]
        if int(self.n_averaged) == 0:
            for average, current in zip(mine, new, strict=True):
                average.copy_(current)
        elif self.multi_avg_fn is not None:
            self.multi_avg_fn(mine, new, self.n_averaged)
        else:
            average_of = self.avg_fn or get_swa_avg_fn()
            for average, current in zip(mine, new, strict=True):
                average.copy_(average_of(average, current, self.n_averaged.to(average.device)))
        if not self.use_buffers:
            for average, current in zip(self.module.buffers(), model.buffers(), strict=True):
                average.detach().copy_(current.detach().to(average.device))
        self.n_averaged += 1


@no_grad()
def update_bn(loader, model, device=None):
    """Recompute the running statistics of batch norm layers with one pass over `loader`."""
    momenta = {
        m: m.momentum
        for m in model.modules()
        if hasattr(m, "running_mean")
        and hasattr(m, "momentum")
        and hasattr(m, "reset_running_stats")
        and m.running_mean is not None
    }
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.reset_running_stats()
        module.momentum = None
    for batch in loader:
        data = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(data.to(device) if device is not None else data)
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)
