"""The base class of learning rate schedules."""

import warnings
import weakref
from functools import wraps

from ..tensor import Tensor
from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. With an epoch, the closed form is used where there is one."
)
_MORE = "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"


def _values(optimizer, key):
    """Return a hyper-parameter of all groups. Tensors are copied."""
    return [g[key].clone() if isinstance(g[key], Tensor) else g[key] for g in optimizer.param_groups]


def _assign(group, key, value):
    """Set a hyper-parameter. If it is a tensor, its value changes and the object stays."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def _per_group(name, optimizer, value):
    """Return `value` for each group. It is a list of the right length, or one value for all."""
    count = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. "
                f"{name} has {len(value)} values, param_groups has {count}."
            )
        return list(value)
    return [value] * count


def _check_optimizer(optimizer):
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _count_steps(optimizer):
    """Wrap optimizer.step so that it notes its calls, for the warning about the order of steps."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    owner, function = weakref.ref(optimizer), optimizer.step.__func__

    @wraps(function)
    def step(*args, **kwargs):
        target = owner()
        target._opt_called = True
        return function(target, *args, **kwargs)

    step._wrapped_by_lr_sched = True
    optimizer.step = step


class LRScheduler:
    """Base class: `get_lr()` of a subclass computes the rates for `last_epoch`, and `step()` sets them.

    last_epoch is -1 at the start. Another value resumes at this epoch, and the groups must have 'initial_lr'.
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _not_saved = ("optimizer",)

    def __init__(self, optimizer, last_epoch: int = -1):
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\n"
                    "This typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer "
                    "state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs = _values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _count_steps(optimizer)
        self._initial_step()

    def _initial_step(self):
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict:
        """Return all attributes except the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key not in self._not_saved}

    def load_state_dict(self, state_dict: dict) -> None:
        """Restore the attributes that state_dict() returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list:
        """Return the rates that the last step has set."""
        return self._last_lr

    def get_lr(self) -> list:
        """Return the rates for the present epoch."""
        raise NotImplementedError

    def _warn_outside_step(self):
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )

    def step(self, epoch=None) -> None:
        """Go to the next epoch (or to `epoch`) and set the rates of all groups."""
        if self._step_count == 1:
            self._warn_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _warn_order(self):
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warnings.warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                f"`lr_scheduler.step()`. See more details at {_MORE}",
                UserWarning,
                stacklevel=3,
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and "
                "later, you should call them in the opposite order: `optimizer.step()` before "
                "`lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first value of the "
                f"learning rate schedule. See more details at {_MORE}",
                UserWarning,
                stacklevel=3,
            )

    def _update_lr(self, epoch=None):
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = closed() if closed else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._apply(values)

    def _apply(self, values):
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _assign(group, "lr", lr)
        self._last_lr = _values(self.optimizer, "lr")


_LRScheduler = LRScheduler
