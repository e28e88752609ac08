"""The base class of Tensor, which is MindSpore's, and the device of a tensor."""

from __future__ import annotations

import threading

from .._host import extensions
from .._host.native import load
from .._host.runtime import native
from . import device as devices
from .device import device as Device

_C = load()
Base = native().TensorPy  # the base class of all MindSpore tensors


class Plain(Base):
    """Stands in for MindSpore's Python tensor class until that is imported.

    Both have the same memory layout.
    """


def as_leaf(tensor, wanted: bool = True):
    """Set ``requires_grad`` of a new tensor, and return it.

    The package uses it instead of ``requires_grad_``, which is refused inside of a function that torch.func transforms.
    """
    if not wanted or tensor.is_leaf:  # the result of an operation requires grad already
        tensor.requires_grad = wanted
    return tensor


def is_batched(tensor) -> bool:
    """Return whether a tensor is one inside of vmap.

    Its class has methods of its own. `torch.Tensor.detach(x)` is not one of them, so that function has to ask, and to call
    `x.detach()` instead.
    """
    batches = extensions.batches.value
    return batches is not None and type(tensor) is batches.kind


def device_of(tensor) -> Device:
    """Return the device of a tensor: cpu, or the accelerator under the name that this run uses."""
    tag = _C.device_tag(tensor)
    if tag == 0:
        return devices.CPU
    if tag == devices.META_TAG:
        # a wrapper subclass reports its own device
        return tensor.__dict__.get("_wrapper_device", devices.META)
    return Device(devices.accelerator() or "cuda", tag - 1)


def place(tensor, device):
    """Return a new tensor on ``device``: itself, or its copy where the device has memory of its own."""
    d = devices.resolve(device)
    if d.type == "meta":
        return tensor if _C.device_tag(tensor) == devices.META_TAG else _C.to_meta(tensor)
    if d.type == "cpu":
        return tensor
    if d.type not in devices.ACCELERATORS:
        raise RuntimeError(f"PyTorch is not linked with support for {d.type} devices")
    return _C.placed(tensor, d.index + 1)


class Absent:
    """Hides a method that MindSpore's tensor has and torch's does not have."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance, owner=None):
        raise AttributeError(f"'Tensor' object has no attribute '{self.name}'")


class _NoSpecialMethod(TypeError, AttributeError):
    """What Python's built-in functions raise, and what hasattr takes for no."""


class AbsentSpecial(Absent):
    """Hides a special method, which built-in functions such as round() look up in the class."""

    def __get__(self, instance, owner=None):
        raise _NoSpecialMethod(f"type Tensor doesn't define {self.name} method")


class DisableTorchFunction:
    """Inside this block, this thread treats tensor subclasses as plain tensors."""

    _thread = threading.local()

    @classmethod
    def active(cls) -> bool:
        return getattr(cls._thread, "depth", 0) > 0

    def __enter__(self):
        self._thread.depth = getattr(self._thread, "depth", 0) + 1

    def __exit__(self, *exc):
        self._thread.depth -= 1
