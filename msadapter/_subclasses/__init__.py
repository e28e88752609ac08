"""torch._subclasses: the tensor classes of PyTorch's tracers, for isinstance checks.

There are no instances.
"""

from .fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
