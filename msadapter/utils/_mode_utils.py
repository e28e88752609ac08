"""Helpers of modes."""

from ..overrides import DisableTorchFunction


def no_dispatch():
    """A block in which operators run on subclasses of Tensor as on plain tensors."""
    return DisableTorchFunction()


def all_same_mode(modes) -> bool:
    """Return whether all modes are the same object."""
    return all(mode is modes[0] for mode in modes)
