"""MindSpore's own Tensor class, where a tensor lives, and what hides from programs that a Tensor is one of those."""

from __future__ import annotations

import threading

from .._host.native import load
from .._host.runtime import native
from . import device as devices
from .device import device as Device

_C = load()
Base = native().TensorPy  # every tensor of MindSpore is one


class Plain(Base):
    """Holds the place of MindSpore's Python class, whose instances have this layout, until that class is there."""


def device_of(tensor) -> Device:
    """Device of a tensor: cpu, or the accelerator under the name that the run asked for."""
    tag = _C.device_tag(tensor)
    if tag == 0:
        return devices.CPU
    if tag == devices.META_TAG:
        return tensor.__dict__.get("_wrapper_device", devices.META)  # a wrapper subclass names another
    return Device(devices.accelerator() or "cuda", tag - 1)


def place(tensor, device):
    """Marks a freshly made tensor as living on ``device``; returns it."""
    d = devices.resolve(device)
    if d.type == "meta":
        return tensor if _C.device_tag(tensor) == devices.META_TAG else _C.to_meta(tensor)
    if d.type == "cpu":
        return tensor
    if d.type not in devices.ACCELERATORS:
        raise RuntimeError(f"PyTorch is not linked with support for {d.type} devices")
    _C.set_device_tag(tensor, d.index + 1)
    return tensor


class Absent:
    """Hides a method that only MindSpore's tensor has."""

    def __init__(self, name: str):
        self.name = name

    def __get__(self, instance, owner=None):
        raise AttributeError(f"'Tensor' object has no attribute '{self.name}'")


class DisableTorchFunction:
    """Inside, subclasses are treated as plain tensors (in this thread)."""

    _thread = threading.local()

    @classmethod
    def active(cls) -> bool:
        return getattr(cls._thread, "depth", 0) > 0

    def __enter__(self):
        self._thread.depth = getattr(self._thread, "depth", 0) + 1

    def __exit__(self, *exc):
        self._thread.depth -= 1
