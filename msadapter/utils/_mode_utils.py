"""Helpers of modes."""

import contextlib

from ..overrides import DisableTorchFunction
from ._python_dispatch import _DisableTorchDispatch


@contextlib.contextmanager
def no_dispatch():
    """A block in which operators run on subclasses of Tensor as on plain tensors."""
    guard = _DisableTorchDispatch()
    try:
        with DisableTorchFunction():
            yield
    finally:
        del guard


def all_same_mode(modes) -> bool:
    """Return whether all modes are the same object."""
    return all(mode is modes[0] for mode in modes)
