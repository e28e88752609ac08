"""PackedSequence: the steps of several sequences of different lengths, without padding."""

from __future__ import annotations

from typing import NamedTuple

from .. import ops
from ..tensor import Tensor


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation):
    """The permutation that undoes ``permutation``; None for None."""
    if permutation is None:
        return None
    output = ops.empty_like(permutation)
    output.scatter_(0, permutation, ops.arange(0, permutation.numel(), device=permutation.device))
    return output


class PackedSequence(_Fields):
    """Rows of a batch step by step: at step t, the ``batch_sizes[t]`` sequences that are still going.

    ``sorted_indices`` is the order (longest first) of the original batch, ``unsorted_indices`` its inverse.
    Made by ``pack_padded_sequence`` and ``pack_sequence``.
    """

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a (data, batch_sizes) tuple")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be "
                "created manually. They should be instantiated by functions like pack_sequence and "
                "pack_padded_sequences in nn.utils.rnn. "
                "https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def __reduce__(self):
        return type(self), tuple(self)

    def _with(self, data, move):
        """Same packing around ``data``; indices follow it through ``move``."""
        if data is self.data:
            return self
        return type(self)(
            data,
            self.batch_sizes,
            None if self.sorted_indices is None else move(self.sorted_indices),
            None if self.unsorted_indices is None else move(self.unsorted_indices),
        )

    def to(self, *args, **kwargs):
        """``Tensor.to`` of the data; the indices move to its device."""
        data = self.data.to(*args, **kwargs)
        return self._with(data, lambda index: index.to(data.device))

    def cpu(self, *args, **kwargs):
        """On the CPU."""
        return self.to("cpu", *args, **kwargs)

    def cuda(self, *args, **kwargs):
        """On the accelerator."""
        return self._with(self.data.cuda(*args, **kwargs), lambda index: index.cuda())

    def npu(self, *args, **kwargs):
        """On the accelerator."""
        return self._with(self.data.npu(*args, **kwargs), lambda index: index.npu())

    def pin_memory(self):
        """With pinned data."""
        return self._with(self.data.pin_memory(), lambda index: index.pin_memory())

    @property
    def is_cuda(self):
        """Whether the data is on the accelerator."""
        return self.data.is_cuda

    def is_pinned(self):
        """Whether the data is pinned."""
        return self.data.is_pinned()


def _cast(name):
    def method(self):
        return self.to(getattr(ops, name))

    return method


for _method, _dtype in {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "char": "int8",
    "byte": "uint8",
}.items():
    setattr(PackedSequence, _method, _cast(_dtype))
    getattr(PackedSequence, _method).__name__ = _method
