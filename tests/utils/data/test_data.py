"""Loaders and samplers against PyTorch: the same seeds give the same batches."""

import os
import threading
import time
from pathlib import Path

import pytest

import msadapter as torch
from tests.golden.answers import cases_of
from tests.golden.verdict import check, compare
from tests.utils.data import data_cases as cases
from tests.utils.data import seed_cases


@pytest.mark.parametrize("case", cases.CASES, ids=lambda case: "-".join(map(str, case)))
def test_loader(case):
    compare("data", "loader " + "|".join(map(str, case)), cases.run_loader(torch, *case))


def test_persistent_workers_give_the_same_batches():
    fresh = cases.run_loader(torch, "nested", "drop_last", 2)
    assert cases.run_loader(torch, "nested", "drop_last", 2, persistent=True)[0] == fresh[0]


@pytest.mark.parametrize("name", cases.SAMPLERS)
def test_sampler(name):
    compare("data", f"sampler {name}", cases.run_sampler(torch, name))


@pytest.mark.parametrize("name", cases_of(seed_cases))
def test_seeds(name):
    check("data", name, cases_of(seed_cases)[name], torch)


class _Broken(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        if i == 5:
            raise KeyError("five")
        return i


@pytest.mark.parametrize("workers", [0, 2])
def test_error_of_the_dataset_arrives(workers):
    seen = []
    with pytest.raises(KeyError) as caught:
        for batch in torch.utils.data.DataLoader(_Broken(), num_workers=workers):
            seen.append(batch.item())
    assert seen == [0, 1, 2, 3, 4]
    if workers:
        assert "in DataLoader worker process" in str(caught.value)
        assert "Traceback" in str(caught.value)


class _Dying(_Broken):
    def __getitem__(self, i):
        os._exit(3)


class _Slow(_Broken):
    def __getitem__(self, i):
        time.sleep(30)


def test_death_of_a_worker_is_an_error():
    with pytest.raises(RuntimeError, match="exited unexpectedly"):
        list(torch.utils.data.DataLoader(_Dying(), num_workers=1))


def test_timeout():
    with pytest.raises(RuntimeError, match="timed out after 1 seconds"):
        list(torch.utils.data.DataLoader(_Slow(), num_workers=1, timeout=1))


def _unsent(kind: str):
    """Return what cannot be sent to another process, or raise what cannot."""

    class Local(Exception):
        pass

    if kind == "local error":
        raise Local("its class has no name that another process could look up")
    return {"lock": threading.Lock, "graph": lambda: torch.ones(2, requires_grad=True) * 2}[kind]()


@pytest.mark.parametrize(
    ("kind", "error", "text"),
    [
        ("lock", TypeError, "cannot pickle"),
        ("graph", RuntimeError, "non-leaf tensor"),
        ("local error", RuntimeError, "Local: its class has no name"),
    ],
)
def test_an_answer_that_cannot_be_sent_is_an_error(kind, error, text):
    """Without one, the loader would wait for the answer for ever, or until its timeout."""
    samples = torch.utils.data.DataLoader(
        [kind], batch_size=None, num_workers=1, timeout=60, collate_fn=_unsent
    )
    with pytest.raises(error, match=text) as caught:
        next(iter(samples))
    assert "in DataLoader worker process 0" in str(caught.value)


def test_large_tensors_pass_whole_and_leave_nothing():
    rows = [torch.randn(300, 300) for _ in range(6)]
    got = torch.cat(list(torch.utils.data.DataLoader(rows, num_workers=2, batch_size=2)))
    assert torch.equal(got, torch.stack(rows))
    folder = Path("/dev/shm")
    assert not folder.is_dir() or not list(folder.glob(f"msadapter-{os.getpid()}-*"))


def test_worker_info_and_init():
    class Info(torch.utils.data.Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, i):
            info = torch.utils.data.get_worker_info()
            return info.id, info.num_workers, int(os.environ["WORKER"])

    def start(worker_id):
        os.environ["WORKER"] = str(worker_id + 10)

    rows = list(torch.utils.data.DataLoader(Info(), batch_size=None, num_workers=2, worker_init_fn=start))
    assert [list(row) for row in rows] == [[0, 2, 10], [1, 2, 11], [0, 2, 10], [1, 2, 11]]
    assert torch.utils.data.get_worker_info() is None


@pytest.mark.parametrize(
    "options, text",
    [
        ({"num_workers": -1}, "num_workers option should be non-negative"),
        ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batching"),
        ({"shuffle": True, "sampler": [0]}, "sampler option is mutually exclusive with shuffle"),
        ({"multiprocessing_context": "fork"}, "can only be used with multi-process loading"),
        ({"num_workers": 1, "multiprocessing_context": "bad"}, "should specify a valid start method in"),
        ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in multiprocessing"),
    ],
)
def test_wrong_options(options, text):
    with pytest.raises(ValueError, match=text):
        torch.utils.data.DataLoader([1], **options)


def test_a_context_of_multiprocessing():
    with pytest.raises(TypeError, match="should be a valid context object"):
        torch.utils.data.DataLoader([1], num_workers=1, multiprocessing_context=3)
    loader = torch.utils.data.DataLoader([1, 2], num_workers=1, multiprocessing_context="fork")
    assert loader.multiprocessing_context.get_start_method() == "fork" and len(list(loader)) == 2
    loader.multiprocessing_context = None
    assert loader.multiprocessing_context is None


def test_a_stream_that_is_longer_than_it_says():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(3))

        def __len__(self):
            return 1

    for workers, hint in ((0, "fetched. $"), (1, "not properly configuring")):
        loader = torch.utils.data.DataLoader(Stream(), num_workers=workers)
        assert len(loader) == 1
        with pytest.warns(UserWarning, match=hint) as found:
            assert len(list(loader)) == 3
        assert len(found) == 2


def test_an_iterator_has_pytorchs_names_for_its_parts():
    """MindSpeed-LLM finds the dataset of a running iterator by these names when it rolls a training back."""
    loader = torch.utils.data.DataLoader(list(range(6)), batch_size=2, drop_last=True)
    running = iter(loader)
    assert running._dataset is loader.dataset and running._index_sampler is loader.batch_sampler
    assert running._auto_collation and running._drop_last and running._collate_fn is loader.collate_fn
