"""Ranks that disagree are told so; a stopped rank, a dead guard or a stray variable neither hang nor end a job in silence."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.distributed.ranks import JOBS, PATIENCE, ROOT, TORCHRUN, environment, torchrun

JOB = """
import os, signal, sys, torch
import torch.distributed as dist
from datetime import timedelta
dist.init_process_group('gloo', timeout=timedelta(seconds=120))
rank, size = dist.get_rank(), dist.get_world_size()
def say(*words):  # in one piece: the ranks share the pipe
    os.write(1, (' '.join(map(str, words)) + '\\n').encode())
"""


@pytest.fixture(autouse=True)
def mpi():
    pytest.importorskip("mpi4py")


@pytest.mark.parametrize(
    "size, extra",
    [(2, {}), pytest.param(3, {}, marks=pytest.mark.extended), (2, {"MSADAPTER_TEST_MPI": "1"})],
)
def test_a_mismatch_is_an_error_on_every_rank(size, extra):
    """Through shared memory, and through MPI alone, as between several machines."""
    done = torchrun("--standalone", "--nproc-per-node", size, JOBS / "disagreement.py", **extra)
    assert done.returncode == 0, done.stderr[-3000:]
    assert sorted(done.stdout.splitlines()) == [f"rank {rank}: 152 cases" for rank in range(size)], (
        done.stdout
    )


@pytest.mark.parametrize(
    ("call", "end"),
    [
        ("dist.broadcast(torch.ones(4), 0)", "dist.destroy_process_group()"),
        ("dist.gather(torch.ones(4), parts, 1)", ""),
        pytest.param("dist.broadcast(torch.ones(4), 0)", "", marks=pytest.mark.extended),
        pytest.param(
            "dist.gather(torch.ones(4), parts, 1)",
            "dist.destroy_process_group()",
            marks=pytest.mark.extended,
        ),
    ],
)
def test_a_small_operation_with_a_stopped_rank_ends_the_job(tmp_path, call, end):
    """Rank 0 has nothing to wait for. It must not leave rank 1 behind, for which the launcher would wait forever."""
    script = tmp_path / "job.py"
    script.write_text(
        JOB + "parts = [torch.ones(4)] * size if rank == 1 else None\ndist.barrier()\n"
        "dist.distributed_c10d._set_pg_timeout(timedelta(seconds=3))\n"
        f"if rank == 1: os.kill(os.getpid(), signal.SIGSTOP)\n{call}\n{end}\n"
    )
    done = torchrun("--standalone", "--nproc-per-node", 2, script)
    assert done.returncode == 1
    assert "Rank 1 does not answer" in done.stderr, done.stderr[-3000:]


def test_a_root_that_ends_before_the_others_have_come(tmp_path):
    """A late rank still receives what the root has sent, whether it destroys the job or not."""
    script = tmp_path / "job.py"
    script.write_text(
        JOB
        + "import time\nif rank: time.sleep(1)\nt = torch.full((4,), float(rank + 1))\ndist.broadcast(t, 0)\n"
        "if rank: dist.destroy_process_group()\nsay(t.tolist())\n"
    )
    done = torchrun("--standalone", "--nproc-per-node", 2, script)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["[1.0, 1.0, 1.0, 1.0]"] * 2


def test_the_death_of_the_guard_is_no_failure_of_the_job(tmp_path):
    script = tmp_path / "job.py"
    script.write_text(
        "import os, time\nos.write(1, b'up\\n')\nwhile not os.path.exists('go'): time.sleep(0.05)\nos.write(1, b'end\\n')\n"
    )
    words = [sys.executable, *TORCHRUN, "--standalone", "--nproc-per-node", "2", str(script)]
    job = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(), cwd=tmp_path
    )
    try:
        assert [job.stdout.readline() for _ in range(2)] == ["up\n", "up\n"]
        children = (ROOT / f"/proc/{job.pid}/task/{job.pid}/children").read_text().split()
        (guard,) = [
            int(pid) for pid in children if os.getpgid(int(pid)) == int(pid) and _is_guard(int(pid), script)
        ]
        os.kill(guard, signal.SIGKILL)
        time.sleep(0.2)
        (tmp_path / "go").touch()
        out, err = job.communicate(timeout=PATIENCE)
    finally:
        job.kill()
    assert job.returncode == 0 and out.split() == ["end", "end"], err
    assert "Traceback" not in err
    assert "the guard" in err and "The job goes on" in err


def _is_guard(pid: int, script) -> bool:
    """Whether a process is the guard, which is a copy of the launcher. A rank's command begins with the script's interpreter and
    -u.
    """
    with open(f"/proc/{pid}/cmdline", "rb") as stream:
        return b"--standalone" in stream.read()


@pytest.mark.parametrize(
    "stray",
    [
        {"PMI_RANK": "0", "PMIX_RANK": "1"},
        {"PMI_RANK": "5", "PMI_SIZE": "7", "PMI_FD": "1", "OMPI_COMM_WORLD_RANK": "1"},
    ],
)
def test_a_rank_number_of_another_manager_is_not_believed(tmp_path, stray):
    """Variables of a process manager can come from an allocation in which torchrun was started, or be left by a script.

    If they were used, no process would answer MPI.
    """
    script = tmp_path / "job.py"
    script.write_text(
        JOB + "t = torch.ones(1)\ndist.all_reduce(t)\nsay(t.item(), os.environ.get('PMI_RANK'))\n"
    )
    done = torchrun("--standalone", "--nproc-per-node", 2, script, **stray)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [f"2.0 {stray.get('PMI_RANK')}"] * 2
    alone = subprocess.run(
        [sys.executable, "-m", "msadapter", str(script)],
        env=environment(**stray) | {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "0"},
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert alone.returncode == 0 and alone.stdout.startswith("1.0"), alone.stderr[-2000:]


def test_groups_that_only_their_members_make(tmp_path):
    """use_local_synchronization: ranks 0 and 1 create more groups than rank 2, and later all ranks create one together."""
    script = tmp_path / "job.py"
    script.write_text(
        JOB
        + "def total(group):\n    t = torch.tensor([rank + 1.0])\n    dist.all_reduce(t, group=group)\n    return t.item()\n"
        "if rank < 2:\n    for _ in range(2):\n        pair = dist.new_group([0, 1], use_local_synchronization=True)\n"
        "        assert total(pair) == 3\n"
        "else:\n    assert dist.new_group([0, 1], use_local_synchronization=True) is None\n"
        "assert total(dist.new_group([0, 2])) == 4 if rank != 1 else dist.new_group([0, 2]) is not None\n"
        "everyone = dist.new_group(pg_options=dist.ProcessGroupNCCL.Options())\n"
        "assert total(everyone) == 6\n"
        "options = dist.ProcessGroupNCCL.Options()\noptions._timeout = timedelta(seconds=7)\n"
        "assert dist.new_group(pg_options=options).timeout == timedelta(seconds=7)\n"
        "local = {'use_local_synchronization': True, 'backend': 'mpi'}\n"
        "for words, error in (({'pg_options': {'a': 1}}, TypeError), (local, ValueError)):\n"
        "    try:\n        dist.new_group([0, 1], **words)\n    except error as err:\n        assert list(words)[0] in str(err)\n"
        "    else:\n        raise AssertionError(words)\n"
        "dist.barrier()\nsay('well')\n"
    )
    done = torchrun("--standalone", "--nproc-per-node", 3, script)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["well"] * 3
