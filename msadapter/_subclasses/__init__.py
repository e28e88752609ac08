"""torch._subclasses: the tensor classes of PyTorch's tracers. Nothing here makes such tensors; the classes answer isinstance."""

from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
