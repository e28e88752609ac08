"""Schedules that combine schedules, one after another or all at once."""

from bisect import bisect_right

from ._cycles import ReduceLROnPlateau
from ._schedule_base import LRScheduler, _assign, _values


def _check_chained(owner, schedulers, optimizer) -> None:
    """Raise PyTorch's errors unless ``owner`` can step every scheduler on ``optimizer``."""
    name = type(owner).__name__
    if len(schedulers) < 1:
        chained = "" if isinstance(owner, SequentialLR) else " to be chained"
        raise ValueError(f"{name} expects at least one scheduler{chained}, but got no scheduler.")
    for i, scheduler in enumerate(schedulers):
        if not hasattr(scheduler, "optimizer"):
            raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
        if isinstance(scheduler, ReduceLROnPlateau):
            raise ValueError(
                f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
            )
        if optimizer != scheduler.optimizer:
            raise ValueError(
                f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )


class SequentialLR(LRScheduler):
    """Uses one scheduler after another. milestones[i] is the first epoch of scheduler i + 1."""

    _not_saved = ("optimizer", "_schedulers")

    def __init__(self, optimizer, schedulers, milestones, last_epoch: int = -1):
        _check_chained(self, schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more "
                "than the "
                f"number of milestone points, but got number of schedulers {len(schedulers)} "
                "and the "
                f"number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        self._restart_first()

    def _restart_first(self):
        # Every scheduler makes a step when it is created. These steps are undone here.
        for group in self.optimizer.param_groups:
            _assign(group, "lr", group["initial_lr"])
        for scheduler in self._schedulers:
            _rewind(scheduler)
        self._schedulers[0]._initial_step()
        self._last_lr = self._schedulers[0].get_last_lr()

    def recursive_undo(self, sched=None):
        """Undo the first step of the inner schedulers, also of nested ones."""
        for scheduler in getattr(sched or self, "_schedulers", [sched]):
            _rewind(scheduler)

    def step(self):
        """Step the scheduler that is in use at the next epoch."""
        self.last_epoch += 1
        turn = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[turn]
        if turn > 0 and self._milestones[turn - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def state_dict(self):
        """Return the attributes, with the states of the inner schedulers."""
        return _nested_state(self)

    def load_state_dict(self, state_dict):
        """Restore the state that state_dict() returned."""
        _load_nested_state(self, state_dict)


def _rewind(scheduler):
    inner = getattr(scheduler, "_schedulers", None)
    if inner is not None:
        for item in inner:
            _rewind(item)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


def _nested_state(scheduler):
    state = {k: v for k, v in scheduler.__dict__.items() if k not in ("optimizer", "_schedulers")}
    state["_schedulers"] = [inner.state_dict() for inner in scheduler._schedulers]
    return state


def _load_nested_state(scheduler, state):
    scheduler.__dict__.update({k: v for k, v in state.items() if k != "_schedulers"})
    for inner, value in zip(scheduler._schedulers, state["_schedulers"], strict=True):
        inner.load_state_dict(value)


class ChainedScheduler(LRScheduler):
    """Several schedulers on one optimizer, which all make a step at the same time."""

    def __init__(self, schedulers, optimizer=None):
        if optimizer is None and schedulers:
            optimizer = schedulers[0].optimizer
        _check_chained(self, schedulers, optimizer)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = _values(optimizer, "lr")

    def step(self):
        """Step every scheduler."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _values(self.optimizer, "lr")

    def state_dict(self):
        """Return the attributes, with the states of the inner schedulers."""
        return _nested_state(self)

    def load_state_dict(self, state_dict):
        """Restore the state that state_dict() returned."""
        _load_nested_state(self, state_dict)
