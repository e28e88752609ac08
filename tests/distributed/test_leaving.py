"""How a process leaves its job, with a stand-in for MPI: what it waits for, and what it tells the others."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from datetime import timedelta

import pytest

import msadapter.distributed as dist
from msadapter.distributed import mpi_world, watchdog
from msadapter.distributed.store import HashStore


class _Gone(HashStore):
    """A store whose process has ended."""

    def _update(self, change):
        raise dist.DistNetworkError("the store is gone")

    def set(self, key, value):
        raise ConnectionResetError


class _Barrier:
    """A barrier that has ended after some tests."""

    def __init__(self, tests):
        self.tests = tests

    def Test(self):
        self.tests -= 1
        return self.tests <= 0


@pytest.fixture
def job(monkeypatch):
    """The job of rank 3. No collective is waiting for confirmation."""
    monkeypatch.delattr(sys, "last_value", raising=False)
    monkeypatch.setattr(watchdog.watch, "store", None)
    made = mpi_world._Job()
    made.store, made.rank, made.pid = HashStore(), 3, os.getpid()
    made.store.set_timeout(timedelta(seconds=1))
    made.barrier = _Barrier(4)
    made.mpi = types.SimpleNamespace(COMM_WORLD=types.SimpleNamespace(Ibarrier=lambda: made.barrier))
    return made


def test_who_leaves_waits_for_the_messages_and_says_so(job):
    job.leave()
    assert job.barrier.tests == 0 and job.store.get("left/3") == b"1" and job.store.num_keys() == 1


def test_messages_that_are_never_taken_do_not_hold_a_rank_back(job, monkeypatch):
    monkeypatch.setattr(mpi_world, "_EXIT_PATIENCE", 0.05)
    job.barrier = _Barrier(10**9)
    job.leave()
    assert 1 < 10**9 - job.barrier.tests < 60 and job.store.check(["left/3"])


def test_who_has_failed_or_is_a_fork_leaves_without_a_word(job, monkeypatch):
    job.pid += 1
    job.leave()
    job.pid -= 1
    monkeypatch.setattr(sys, "last_value", ValueError(), raising=False)
    job.leave()
    assert job.barrier.tests == 4 and not job.store.num_keys()


def test_the_store_may_go_first(job):
    job.store = _Gone()
    job.neighbours = {0: 2**22 + 1}  # above the largest process id, so this process has ended
    job.leave()
    job.over()
    assert job.barrier.tests == 0 and job.dead([0]) == []


def test_processes_that_have_ended(job):
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    # an absent process, a process that has ended and was not waited for, this one, and one of another machine
    job.neighbours = {0: 2**22 + 1, 1: child.pid, 2: os.getpid()}
    assert job.dead([0, 1, 2, 5]) == [0, 1] and job.dead([2, 5]) == [] and job.dead([1]) == [1]
    job.store.set("left/0", b"1")
    assert job.dead([0, 1, 2, 5]) == [1]
    child.wait()


def test_the_end_of_the_job_is_recorded_for_each_rank(job):
    job.over()
    assert job.store.get("over/3") == b"1" and job.store.num_keys() == 1
    job.store = None
    job.over()  # before any job


def test_only_ranks_that_have_left_need_not_confirm(job, monkeypatch):
    found = []
    monkeypatch.setattr(watchdog, "confirm", lambda has_left: found.extend(map(has_left, range(3))))
    job.store.set("left/0", b"1")
    job.store.set("over/2", b"1")
    job.confirm()
    assert found == [True, False, True]
    job.store = None
    job.confirm()
    assert len(found) == 3


LATE = """
import os
from msadapter.distributed import mpi_world
from msadapter.distributed.errors import DistBackendError

class Job(mpi_world._Job):
    pid = os.getpid()

    def confirm(self):
        raise DistBackendError("rank 2 has not begun")

print("before")
print(Job()._ends_well())
"""


def test_a_rank_that_others_have_not_followed_ends_with_an_error():
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == "before\n" and done.stderr == "rank 2 has not begun\n"
