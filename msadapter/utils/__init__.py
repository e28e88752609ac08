"""torch.utils."""

import importlib
import importlib.util

from . import data, hooks

__all__ = ["data", "hooks"]


def set_module(obj, mod) -> None:
    """Set the module name that an object shows."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1, t2) -> None:
    """Exchange the contents of two tensors. Each Python object stays the same object."""
    t1.data, t2.data = t2.data.clone(), t1.data.clone()


def __getattr__(name):
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.utils' has no attribute {name!r}")
