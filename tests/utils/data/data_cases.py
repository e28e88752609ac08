"""Loaders and samplers whose order depends on seeds, which run on PyTorch (golden data) and on msadapter."""

import random

import numpy as np

LOADERS = {
    "plain": {},
    "shuffled": {"batch_size": 4, "shuffle": True},
    "drop_last": {"batch_size": 5, "drop_last": True},
    "unbatched": {"batch_size": None},
}


def make_datasets(torch):
    """Return (a dataset of nested samples, a dataset of random numbers, a stream shared between workers)."""

    class Nested(torch.utils.data.Dataset):
        def __len__(self):
            return 11

        def __getitem__(self, i):
            return {"x": torch.full((3,), float(i)), "y": (i, str(i), float(i)), "n": np.arange(2) + i}

    class Noise(torch.utils.data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return i, random.random(), torch.rand(1), np.random.rand()

    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            info = torch.utils.data.get_worker_info()
            return iter(range(20)) if info is None else iter(range(info.id, 20, info.num_workers))

    return {"nested": Nested(), "noise": Noise(), "stream": Stream()}


def plain(value):
    """Return data in which tensors and dtypes are replaced by plain values."""
    if hasattr(value, "numel"):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value.tolist() if isinstance(value, np.ndarray) else value


def run_loader(torch, dataset: str, loader: str, workers: int, persistent: bool = False) -> list:
    """Return two epochs, and the random number that is drawn after them."""
    torch.manual_seed(7)
    random.seed(3)
    np.random.seed(1)
    options = dict(LOADERS[loader])
    if dataset == "stream":
        options.pop("shuffle", None)
    data = make_datasets(torch)[dataset]
    batches = torch.utils.data.DataLoader(data, num_workers=workers, persistent_workers=persistent, **options)
    return [[plain(batch) for batch in batches] for _ in range(2)] + [torch.rand(1).item()]


SAMPLERS = {
    "random": lambda d: d.RandomSampler(range(23), num_samples=50),
    "replacement": lambda d: d.RandomSampler(range(23), True, 70),
    "subset": lambda d: d.SubsetRandomSampler([5, 6, 7, 9]),
    "weighted": lambda d: d.WeightedRandomSampler([0.1, 0.2, 0.3], 10),
    "distributed": lambda d: d.DistributedSampler(range(23), 4, 1),
    "distributed_drop": lambda d: d.DistributedSampler(range(23), 4, 3, shuffle=False, drop_last=True),
    "batch": lambda d: d.BatchSampler(d.SequentialSampler(range(23)), 4, False),
    "split": lambda d: [list(part) for part in d.random_split(range(23), [0.3, 0.3, 0.4])],
}


def run_sampler(torch, name: str) -> list:
    """Return all indices."""
    torch.manual_seed(1)
    return list(SAMPLERS[name](torch.utils.data))


CASES = [(d, ld, w) for d in ("nested", "noise", "stream") for ld in LOADERS for w in (0, 2)]


def golden_cases() -> dict:
    loaders = {"loader " + "|".join(map(str, case)): lambda t, c=case: run_loader(t, *c) for case in CASES}
    return loaders | {f"sampler {name}": lambda t, n=name: run_sampler(t, n) for name in SAMPLERS}
