"""Jobs that mpiexec starts: they end, whoever comes to the end first and whoever fails."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.distributed.ranks import PATIENCE, environment

MPIEXEC = Path(sys.executable).with_name("mpiexec")
JOB = """
import os, time, torch
import torch.distributed as dist
dist.init_process_group('mpi')
rank, size = dist.get_rank(), dist.get_world_size()
"""


def mpiexec(script: Path, text: str) -> subprocess.CompletedProcess:
    """Run a job on two ranks to its end. It fails if the job does not end."""
    pytest.importorskip("mpi4py")
    if not MPIEXEC.exists():
        pytest.skip(f"needs {MPIEXEC}, which pip installs with mpich")
    script.write_text(JOB + text)
    words = [str(MPIEXEC), "-n", "2", sys.executable, "-m", "msadapter", str(script)]
    if (
        os.geteuid() == 0
        and b"Open MPI" in subprocess.run([str(MPIEXEC), "--version"], capture_output=True).stdout
    ):
        words.insert(1, "--allow-run-as-root")
    return subprocess.run(
        words, env=environment(), capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.mark.parametrize("late", [0, 1])
def test_a_rank_that_is_last_still_finds_the_store(tmp_path, late):
    """Rank 0 keeps the store, and is at its end long before the other. So it must not stop answering."""
    text = (
        "t = torch.ones(3)\ndist.all_reduce(t)\ndist.broadcast(t, 0)\n"
        "named = [x for x in open('/proc/self/maps') if '/mpich_shm_' in x and '(deleted)' not in x]\n"
        "assert not named, named\n"  # a job that is killed would leave it
        f"if rank == {late}: time.sleep(1)\n"
        "dist.destroy_process_group()\nos.write(1, f'{rank} {t.tolist()}\\n'.encode())\n"
    )
    done = mpiexec(tmp_path / "job.py", text)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 [2.0, 2.0, 2.0]", "1 [2.0, 2.0, 2.0]"]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_rank_that_fails_ends_the_job(tmp_path, failing):
    """The other waits for it in a collective, with the usual timeout of half an hour."""
    done = mpiexec(tmp_path / "job.py", f"if rank == {failing}: raise ValueError('boom')\ndist.barrier()\n")
    assert done.returncode != 0 and "ValueError: boom" in done.stderr


def test_operations_in_the_background_at_the_end(tmp_path):
    """A message for which no thread waits is polled by a thread, which must not use MPI after its end."""
    text = (
        "if rank == 0: work = dist.isend(torch.ones(3), 1)\n"
        "else:\n    t = torch.zeros(3)\n    work = dist.irecv(t, 0)\n"
    )
    done = mpiexec(tmp_path / "job.py", text)
    assert done.returncode == 0, done.stderr
