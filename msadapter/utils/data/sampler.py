"""Samplers, which determine the order in which samples are taken."""

import itertools

from ... import ops
from ..._values.dtype import float64, int64
from ...ops._generator import Generator
from ...tensor import _tensor as factory

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


def draw_seed(generator=None) -> int:
    """Return a 63-bit number from a generator. Without a generator, the default one advances as in PyTorch."""
    return int(ops.empty((), dtype=int64).random_(generator=generator).item())


def _new_generator(seed):
    generator = Generator()
    generator.manual_seed(seed)
    return generator


class Sampler:
    """The base class of samplers. __iter__ yields indices, or lists of indices."""

    def __init__(self, data_source=None):
        pass

    def __class_getitem__(cls, item):
        return cls

    def __iter__(self):
        raise NotImplementedError


class SequentialSampler(Sampler):
    """Yields the indices 0, 1, 2, ... in order."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler):
    """Yields the indices in random order, or draws them with replacement."""

    def __init__(self, data_source, replacement: bool = False, num_samples=None, generator=None):
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got replacement={replacement}")
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        # a dataset may grow while it is used
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        count, wanted = len(self.data_source), self.num_samples
        generator = self.generator if self.generator is not None else _new_generator(draw_seed())
        if self.replacement:
            for _ in range(wanted // 32):
                yield from ops.randint(high=count, size=(32,), dtype=int64, generator=generator).tolist()
            yield from ops.randint(high=count, size=(wanted % 32,), dtype=int64, generator=generator).tolist()
            return
        for _ in range(wanted // count if count else 0):
            yield from ops.randperm(count, generator=generator).tolist()
        if count:
            yield from ops.randperm(count, generator=generator).tolist()[: wanted % count]

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Yields the given indices in random order."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in ops.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Draws indices with probabilities proportional to the given weights."""

    def __init__(self, weights, num_samples: int, replacement: bool = True, generator=None):
        if not isinstance(num_samples, int) or isinstance(num_samples, bool) or num_samples <= 0:
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got replacement={replacement}")
        weights = factory.as_tensor(weights, dtype=float64)
        if weights.dim() != 1:
            raise ValueError(
                f"weights should be a 1d sequence but given weights have shape {tuple(weights.shape)}"
            )
        self.weights = weights
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self):
        drawn = ops.multinomial(self.weights, self.num_samples, self.replacement, generator=self.generator)
        yield from iter(drawn.tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """Yields lists of batch_size indices of another sampler. With drop_last, an incomplete last list is omitted."""

    def __init__(self, sampler, batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if self.drop_last and len(batch) < self.batch_size:
                return
            yield batch

    def __len__(self):
        count = len(self.sampler)
        return (
            count // self.batch_size if self.drop_last else (count + self.batch_size - 1) // self.batch_size
        )
