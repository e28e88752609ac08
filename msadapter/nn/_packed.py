"""PackedSequence: the steps of several sequences of different lengths, without padding."""

from __future__ import annotations

from typing import NamedTuple

from .. import ops
from .._values import dtype as dtypes
from ..tensor import Tensor


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


def invert_permutation(permutation):
    """Return the permutation that undoes ``permutation`` (an index tensor (N,)). None gives None."""
    if permutation is None:
        return None
    output = ops.empty_like(permutation)
    output.scatter_(0, permutation, ops.arange(0, permutation.numel(), device=permutation.device))
    return output


class PackedSequence(_Fields):
    """Sequences of different lengths, stored without padding, time step after time step.

    ``data`` holds the rows of all sequences. ``batch_sizes[t]`` (int64, on the CPU) is the number of
    sequences that are longer than t, so the rows of step t are the next ``batch_sizes[t]`` rows of ``data``.
    ``sorted_indices`` sorts the original batch by decreasing length, and ``unsorted_indices`` is the inverse
    of that order. Use ``pack_padded_sequence`` or ``pack_sequence`` to create one.
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
        """Return a packed sequence with the same layout around ``data``.

        ``move`` is applied to both index tensors.
        """
        if data is self.data:
            return self
        return type(self)(
            data,
            self.batch_sizes,
            None if self.sorted_indices is None else move(self.sorted_indices),
            None if self.unsorted_indices is None else move(self.unsorted_indices),
        )

    def to(self, *args, **kwargs):
        """Convert the data like ``Tensor.to``. The indices move to the same device, but keep their dtype."""
        data = self.data.to(*args, **kwargs)
        return self._with(data, lambda index: index.to(data.device))

    def cpu(self, *args, **kwargs):
        """Return a copy on the CPU."""
        return self.to("cpu", *args, **kwargs)

    def cuda(self, *args, **kwargs):
        """Return a copy on the accelerator."""
        return self._with(self.data.cuda(*args, **kwargs), lambda index: index.cuda())

    def npu(self, *args, **kwargs):
        """Return a copy on the accelerator."""
        return self._with(self.data.npu(*args, **kwargs), lambda index: index.npu())

    def pin_memory(self):
        """Return a copy whose data is in pinned memory."""
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
        return self.to(dtypes.ALL[name])

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
