"""The HCCL backend's calls fit the signatures of mindspore.mint.distributed.

Their effect needs an Ascend device.
"""

import inspect

import pytest
from mindspore.mint import distributed as mint

import msadapter as torch
from msadapter.distributed import ReduceOp, hccl_backend


class _Handle:
    def __init__(self):
        self.waited = False

    def wait(self):
        self.waited = True


@pytest.fixture
def calls(monkeypatch):
    """Bind every call to the signature of the real function, and record it."""
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
