"""torch.utils."""

import copyreg
import importlib
import importlib.util

from .._host.native import load
from . import data, hooks

_C = load()

__all__ = ["data", "hooks"]


def set_module(obj, mod) -> None:
    """Set the module name that an object shows."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def swap_tensors(t1, t2) -> None:
    """Exchange the contents of two tensors: elements, attributes, class and requires_grad.

    Each Python object stays the same object.

    A backward pass through a graph that was recorded with one of them before raises RuntimeError.

    Raises:
        RuntimeError: the classes have different slots.
    """
    if type(t1) is not type(t2):
        if set(copyreg._slotnames(type(t1))) != set(copyreg._slotnames(type(t2))):
            raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
        t1.__class__, t2.__class__ = type(t2), type(t1)
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    flags = t1.requires_grad, t2.requires_grad
    for tensor in (t1, t2):
        if tensor.requires_grad and tensor.is_leaf:
            _C.grad_accumulator(tensor).register_prehook(_poisoned)
    for tensor, flag in ((t1, flags[0]), (t2, flags[1])):
        if flag and tensor.is_leaf:
            tensor.requires_grad_(False)  # elements that cannot have a gradient may come in
    t1.data, t2.data = t2.data, t1.data
    t1.requires_grad_(flags[1])
    t2.requires_grad_(flags[0])


def _poisoned(grad_outputs) -> None:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on a "
        "tensor that was swapped. Change the device or dtype of a module before its forward or after its backward, not in between."
    )


def __getattr__(name):
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.utils' has no attribute {name!r}")
