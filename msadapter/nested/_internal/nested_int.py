"""The length of a ragged dim, under PyTorch's name of the module."""

from ..._values.size import NestedInt as NestedIntNode

__all__ = ["NestedIntNode"]
