"""The class of shuffled DataPipes."""

from __future__ import annotations

from ....._errors import unsupported
from ...dataset import IterableDataset

__all__ = ["ShufflerIterDataPipe"]


class ShufflerIterDataPipe(IterableDataset):
    """Not supported: raises NotImplementedError when it is made. PyTorch has deprecated DataPipes.

    Libraries such as accelerate ask whether a data set is one.
    """

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.utils.data.datapipes.iter.combinatorics.ShufflerIterDataPipe")
