"""The HCCL backend's calls fit the signatures of mindspore.mint.distributed.

Their effect needs an Ascend device.
"""

import inspect

import pytest

import msadapter as torch
import msadapter.distributed as dist
from msadapter.distributed import ReduceOp, hccl_backend
from msadapter.distributed.backend import SingleProcess
from msadapter.distributed.store import HashStore


class _Handle:
    def __init__(self):
        self.waited = False

    def wait(self):
        self.waited = True


@pytest.fixture
def calls(monkeypatch):
    """Bind every call to the signature of the real function, and record it."""
    from mindspore.mint import distributed as mint  # late: to load MindSpore's package takes seconds

    made = []

    class Recorder:
        def __getattr__(self, name):
            signature = inspect.signature(getattr(mint, name))

            def call(*args):
                made.append((name, signature.bind(*args).arguments, _Handle()))
                return made[-1][2]

            return call

    monkeypatch.setattr(hccl_backend, "_comm", Recorder)
    return made


T = torch.ones(4)
CALLS = {
    "allreduce": (T, ReduceOp.AVG),
    "reduce": (T, 1, ReduceOp.MAX),
    "broadcast": (T, 1),
    "allgather": ([T, T], T),
    "allgather_into": (torch.ones(8), T),
    "gather": ([T, T], T, 0),
    "scatter": (T, [T, T], 0),
    "barrier": (),
    "reduce_scatter": (T, [T, T], ReduceOp.SUM),
    "reduce_scatter_into": (T, torch.ones(8), ReduceOp.SUM),
    "alltoall": ([T, T], [T, T]),
    "alltoall_single": (T, T, [1, 3], [3, 1]),
    "send": (T, 1, 5),
    "recv": (T, 1, 5),
}


@pytest.mark.parametrize("name", CALLS)
def test_call_fits_the_signature_of_mindspore(calls, name):
    backend = hccl_backend.HcclBackend(0, [4, 6], "pair", None)
    work = getattr(backend, name)(*CALLS[name])
    ((_, arguments, handle),) = calls
    assert arguments["group"] == "pair" and not handle.waited
    assert work.wait() and handle.waited
    for key in ("dst", "src"):  # these are ranks of the job, not of the group
        assert arguments.get(key, 4) in (4, 6)
    assert arguments.get("op", "sum") in ("sum", "avg", "max") and arguments.get("async_op", True) is True


def test_refusals():
    backend = hccl_backend.HcclBackend(0, [0, 1], "pair", None)
    with pytest.raises(NotImplementedError, match="BAND"):
        backend.allreduce(torch.ones(2), ReduceOp.BAND)
    with pytest.raises(NotImplementedError, match="any rank"):
        backend.recv(torch.ones(2), -1, 0)
    assert not hccl_backend.present()


def test_results_that_were_received_elsewhere_are_written(calls, monkeypatch):
    """A tensor that is not contiguous gets its result when the program waits for the operation."""
    backend = hccl_backend.HcclBackend(0, [4, 6], "pair", None)
    for name, arguments in (CALLS | {"reduce": (T, 0, ReduceOp.MAX)}).items():
        if name in ("barrier", "send"):
            continue
        held = (
            torch.zeros(16)[::2]
            if name.endswith("_into") and name.startswith("allg")
            else torch.zeros(8)[::2]
        )
        targets = [held, torch.zeros(8)[::2]] if isinstance(arguments[0], list) else held
        calls.clear()
        work = getattr(backend, name)(targets, *arguments[1:])
        ((_, given, _),) = calls
        rooms = next(
            v for k, v in given.items() if k not in ("group", "async_op", "op") and _is_room(v, targets)
        )
        for room in rooms if isinstance(rooms, list) else [rooms]:
            room.fill_(3)
        work.wait()
        for target in targets if isinstance(targets, list) else [targets]:
            assert target.eq(3).all(), name
    target = torch.zeros(8)[::2]
    calls.clear()
    work = backend.reduce(target, 1, ReduceOp.MAX)  # another rank is the root
    next(v for v in calls[0][1].values() if hasattr(v, "fill_")).fill_(3)
    work.wait()
    assert target.eq(0).all() and backend.sequence == len(CALLS) - 1


def _is_room(value, targets) -> bool:
    """Whether an argument is memory for results: zeros, in a list if the targets are a list."""
    parts = value if isinstance(value, list) else [value]
    return all(hasattr(p, "fill_") and not p.any() for p in parts) and isinstance(value, list) == isinstance(
        targets, list
    )


def test_factors_copies_and_the_end_of_a_group(calls):
    backend = hccl_backend.HcclBackend(1, [4, 6], "pair", None)
    x = torch.arange(4.0)
    work = backend.allreduce(x, dist._make_nccl_premul_sum(0.5))
    assert calls[-1][1]["op"] == "sum"
    work.wait()
    assert x.tolist() == [0, 0.5, 1, 1.5]
    sent = backend.send(x, 0, 3)
    x.zero_()
    assert sent.data.sum() == 3 and calls[-1][1]["tag"] == 3 and calls[-1][1]["dst"] == 4
    assert backend.send(x, 0, 3, own=False).data.data_ptr() == x.data_ptr()
    assert backend.recv(x, 0, 3).source_rank() == 0
    backend.close()
    assert calls[-1][0] == "destroy_process_group" and list(calls[-1][1].values()) == ["pair"]
    backend.alltoall_single(x, x, [], None)
    assert [calls[-1][1].get(k) for k in ("output_split_sizes", "input_split_sizes")] == [None, None]


def test_groups_are_created(calls, monkeypatch):
    store = HashStore()
    joined = []
    monkeypatch.setattr(hccl_backend.mpi_world, "join", lambda *given: joined.append(given) or "host")
    assert isinstance(hccl_backend.create(0, 1, [0], store, None), SingleProcess)
    part = hccl_backend.create(1, 2, (4, 6), store, None, parent=object())
    assert calls[-1][0] == "new_group" and list(calls[-1][1].values()) == [[4, 6]] and part.ranks == [4, 6]
    with pytest.raises(
        NotImplementedError, match=r"torch.distributed.new_group: .* ranks \[6, 4\] is not supp"
    ):
        hccl_backend.create(0, 2, (6, 4), store, None, parent=object())  # MindSpore would sort them
    whole = hccl_backend.create(0, 2, [0, 1], store, "timeout")
    address = store.get("hccl").decode()
    assert address.startswith("tcp://") and int(address.rpartition(":")[2]) > 0
    name, given, _ = calls[-1]
    assert name == "init_process_group" and list(given.values()) == ["hccl", address, "timeout", 2, 0]
    assert (whole.rank, whole.size, whole.timeout) == (0, 2, "timeout")
    # Groups of the host, such as those with backend="gloo", are made of the host's communicator of all ranks.
    assert whole.comm == "host" and joined == [(store, 0, 2, "timeout")]
    other = hccl_backend.create(1, 2, [0, 1], store, "timeout")
    assert other.rank == 1 and store.get("hccl").decode() == address
