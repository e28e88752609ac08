"""FakeTensor: a tensor without data that knows its device. Shapes without data are meta tensors here."""

from __future__ import annotations

from ..tensor import Tensor

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


def _refused(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"torch._subclasses.{name}: fake tensors are not supported, use the device 'meta' (docs/coverage.md)"
    )


class FakeTensor(Tensor):
    """The class of fake tensors. NotImplementedError: none can be made."""

    def __new__(cls, *args, **kwargs):
        raise _refused("fake_tensor.FakeTensor")


class FakeTensorMode:
    """The mode in which tensors are fake. NotImplementedError: there is no such mode."""

    def __init__(self, *args, **kwargs):
        raise _refused("fake_tensor.FakeTensorMode")


def is_fake(x) -> bool:
    """Whether ``x`` is a fake tensor."""
    return isinstance(x, FakeTensor)
