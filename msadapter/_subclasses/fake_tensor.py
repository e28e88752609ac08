"""FakeTensor: PyTorch's tensor without data that has a device. Tensors without data are meta tensors here."""

from __future__ import annotations

from .._errors import unsupported
from ..tensor import Tensor

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


def _refused(name: str) -> NotImplementedError:
    return unsupported(f"torch._subclasses.{name}", "fake tensors are not supported, use the device 'meta'")


class FakeTensor(Tensor):
    """The class of fake tensors. Creating one raises NotImplementedError."""

    def __new__(cls, *args, **kwargs):
        raise _refused("fake_tensor.FakeTensor")


class FakeTensorMode:
    """The mode in which new tensors are fake. Creating one raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        raise _refused("fake_tensor.FakeTensorMode")


def is_fake(x) -> bool:
    """Return whether ``x`` is a fake tensor."""
    return isinstance(x, FakeTensor)
