"""torchrun: logs, failures, restarts, signals, several nodes; ranks without a launcher."""

import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from tests.distributed.ranks import PATIENCE, ROOT, TORCHRUN, environment, left, torchrun

# without torch, python starts fast, and the agent treats the ranks in the same way
PLAIN = """
import os, sys, time
rank, attempt = int(os.environ['RANK']), os.environ['TORCHELASTIC_RESTART_COUNT']
def say(*words, to=1):  # in one piece: two ranks share the pipe
    os.write(to, (' '.join(map(str, words)) + '\\n').encode())
"""


@pytest.fixture
def script(tmp_path):
    def write(text, head=PLAIN):
        path = tmp_path / "job.py"
        path.write_text(head + text)
        return path

    return write


@pytest.fixture
def start():
    """Start torchrun in the background. Processes that a failed test leaves are killed."""
    jobs = []

    def begin(*arguments, **extra):
        jobs.append(
            subprocess.Popen(
                [sys.executable, *TORCHRUN, *map(str, arguments)],
                stdout=subprocess.PIPE,
                text=True,
                stderr=subprocess.STDOUT,
                env=environment(**extra),
            )
        )
        return jobs[-1]

    yield begin
    for job in jobs:
        job.kill()
        job.communicate()


def _gone(mark) -> bool:
    return _becomes(lambda: not left(mark))


def _becomes(true, seconds=PATIENCE) -> bool:
    """Whether a condition becomes true within a number of seconds. A busy machine may need some."""
    end = time.monotonic() + seconds
    while not (held := true()) and time.monotonic() < end:
        time.sleep(0.05)
    return held


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def test_environment_of_ranks(script):
    names = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK", "TORCHELASTIC_RUN_ID")
    done = torchrun(
        "--standalone",
        "--nproc-per-node=2",
        "--rdzv-id",
        "me",
        script(f"say(*[os.environ[n] for n in {names}], sys.argv[1:])\n"),
        "--flag",
        "3",
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{r} {r} 2 2 0 me ['--flag', '3']" for r in (0, 1)]


def test_the_launcher_under_safe_path(script):
    """PYTHONSAFEPATH keeps Python from adding the folder of the launcher to sys.path, from which the launcher takes it."""
    done = torchrun("--standalone", script("say('up')\n"), PYTHONSAFEPATH=1)
    assert done.returncode == 0 and done.stdout == "up\n", done.stderr


def test_the_old_launcher_gives_the_local_rank(script):
    path = script("say(sys.argv[1:])\n")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "msadapter",
            "-m",
            "torch.distributed.launch",
            "--nproc_per_node=2",
            str(path),
            "-x",
        ],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE,
        check=True,
    )
    assert sorted(done.stdout.splitlines()) == [f"['--local-rank={r}', '-x']" for r in (0, 1)]


def test_logs_with_prefixes(script, tmp_path):
    done = torchrun(
        "--nproc-per-node",
        2,
        "--tee",
        "0:3",
        "--redirects",
        "1:1",
        "--log-dir",
        tmp_path / "logs",
        "--rdzv-id",
        "run",
        script("say('hello')\nsay('bad', to=2)\n"),
    )
    assert done.stdout == "[default0]:hello\n"
    assert sorted(done.stderr.splitlines()) == ["[default0]:bad", "bad"]
    assert (tmp_path / "logs/run/attempt_0/0/stdout.log").read_text() == "hello\n"
    assert (tmp_path / "logs/run/attempt_0/1/stdout.log").read_text() == "hello\n"


def test_a_failed_rank_ends_the_job(script):
    done = torchrun("--nproc-per-node", 2, script("if rank == 1: raise SystemExit(7)\ntime.sleep(600)\n"))
    assert done.returncode == 7 and "rank 1" in done.stderr and "exit code 7" in done.stderr


def test_a_killed_rank_ends_the_job(script):
    done = torchrun("--nproc-per-node", 2, script("if rank == 0: os.kill(os.getpid(), 9)\ntime.sleep(600)\n"))
    assert done.returncode == 137 and "SIGKILL" in done.stderr


def test_a_rank_that_ignores_sigterm_and_has_children(script):
    text = (
        "import signal, subprocess\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "subprocess.Popen(['sleep', '600'])\nif rank == 1: sys.exit(3)\ntime.sleep(600)\n"
    )
    assert torchrun("--nproc-per-node", 2, script(text)).returncode == 3


def test_restarts_are_bounded(script):
    text = "say('attempt', attempt, rank)\nif attempt == '0' and rank: sys.exit(1)\n"
    done = torchrun("--nproc-per-node", 2, "--max-restarts", 2, script(text))
    assert done.returncode == 0 and {"attempt 1 0", "attempt 1 1"} <= set(done.stdout.splitlines())
    done = torchrun(
        "--nproc-per-node", 1, "--max-restarts", 2, script("say('attempt', attempt)\nsys.exit(4)\n")
    )
    assert done.returncode == 4 and done.stdout.split() == ["attempt", "0", "attempt", "1", "attempt", "2"]


@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_signal_to_the_launcher_leaves_no_rank(start, script, number, code):
    mark = f"signal-{os.getpid()}-{number}"
    job = start("--nproc-per-node", 2, script("say('up')\ntime.sleep(600)\n"), MSADAPTER_TEST_JOB=mark)
    assert [job.stdout.readline() for _ in range(2)] == ["up\n", "up\n"]
    job.send_signal(number)
    assert job.wait(PATIENCE) == code and _gone(mark)


def test_what_ranks_have_started_dies_with_the_launcher(start, script):
    mark = f"grandchildren-{os.getpid()}"
    text = "import subprocess\nsubprocess.Popen(['sleep', '600'], stdout=subprocess.DEVNULL)\nsay('up')\ntime.sleep(600)\n"
    job = start("--nproc-per-node", 2, script(text), MSADAPTER_TEST_JOB=mark)
    assert [job.stdout.readline() for _ in range(2)] == ["up\n", "up\n"]
    # launcher, guard, two ranks, two children; for a moment after exec a process shows no environment
    assert _becomes(lambda: len(left(mark)) >= 6)
    job.send_signal(signal.SIGKILL)
    assert job.wait(PATIENCE) == -9 and _gone(mark)


def test_two_nodes(start, script):
    port = _port()
    path = script("say('rank', rank, os.environ['LOCAL_RANK'], os.environ['WORLD_SIZE'])\n")
    jobs = [
        start("--nnodes", 2, "--node-rank", node, "--nproc-per-node", node + 1, "--master-port", port, path)
        for node in (1, 0)
    ]
    outputs = [job.communicate(timeout=PATIENCE)[0] for job in jobs]
    assert [job.returncode for job in jobs] == [0, 0]
    assert sorted("".join(outputs).splitlines()) == ["rank 0 0 3", "rank 1 0 3", "rank 2 1 3"]


def test_a_failure_on_another_node_ends_this_one(start, script):
    port = _port()
    path = script("if rank == 1: sys.exit(5)\ntime.sleep(600)\n")
    jobs = [
        start("--nnodes", 2, "--rdzv-backend", "c10d", "--rdzv-endpoint", f"localhost:{port}", path)
        for _ in range(2)
    ]
    outputs = [job.communicate(timeout=PATIENCE)[0] for job in jobs]
    assert sorted(job.returncode for job in jobs) == [1, 5], outputs


ELASTIC = """
sys.stdout.write(f"{os.environ['TORCHELASTIC_RESTART_COUNT']}: {rank} of {os.environ['WORLD_SIZE']}\\n")
sys.stdout.flush()
while not os.path.exists(sys.argv[1] + os.environ['WORLD_SIZE']): time.sleep(0.05)
"""


def _elastic(start, port, *arguments):
    conf = "last_call_timeout=0.5,keep_alive_timeout=6,join_timeout=120"
    return start(
        "--nnodes",
        "1:2",
        "--max-restarts",
        1,
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        f"localhost:{port}",
        "--rdzv-conf",
        conf,
        *arguments,
    )


def _said(job) -> str:
    """Return the next line of a rank, without the lines of the launchers."""
    while (line := job.stdout.readline()).startswith("torchrun"):
        pass
    return line


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_machines_come_and_go(start, script, tmp_path, end):
    port, path, done = _port(), script(ELASTIC), tmp_path / "done"
    first = _elastic(start, port, path, done)
    assert _said(first) == "0: 0 of 1\n"
    second = _elastic(start, port, path, done)  # comes late, so that all ranks start again together with it
    both = sorted([_said(first), _said(second)])
    assert both == ["1: 0 of 2\n", "1: 1 of 2\n"]
    second.send_signal(end)
    assert second.wait(PATIENCE) != 0
    assert _said(first) == "2: 0 of 1\n"
    (tmp_path / "done1").touch()
    assert first.wait(PATIENCE) == 0


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_job_ends_with_the_machine_of_the_store(start, script, tmp_path, end):
    """Launchers cannot meet without the store, so the others end their ranks and say why. The job has to be started again."""
    port, path, done = _port(), script("print(os.getpid())\n" + ELASTIC), tmp_path / "done"
    first = _elastic(start, port, path, done)
    _said(first)
    assert _said(first) == "0: 0 of 1\n"
    second = _elastic(start, port, path, done)
    rank = int(_said(second))
    _said(second)
    first.send_signal(end)
    assert first.wait(PATIENCE) != 0
    output, _ = second.communicate(timeout=PATIENCE)
    assert second.returncode == 1 and not os.path.exists(f"/proc/{rank}")
    reason = "received SIGTERM" if end == signal.SIGTERM else "the launcher that keeps the store is gone"
    assert reason in output


def test_too_few_machines_is_an_error_that_says_so(script):
    done = torchrun(
        "--nnodes",
        "2:3",
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        f"localhost:{_port()}",
        "--rdzv-conf",
        "join_timeout=1",
        script(""),
    )
    assert done.returncode == 1 and "1 of at least 2 machines have arrived" in done.stderr


def _msrun(*arguments):
    return subprocess.run(
        [sys.executable, ROOT / "msadapter/distributed/_torchrun.py", "--as-msrun", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        env=environment(),
        check=False,
    )


def test_msrun_forms(script, tmp_path):
    path = script(
        "say(sys.argv[1:], *(os.environ[n] for n in ('RANK_ID', 'DEVICE_ID', 'RANK_SIZE', 'WORLD_SIZE')))\n"
    )
    done = _msrun(
        "--worker_num=2",
        "--local_worker_num=2",
        "--master_port",
        _port(),
        f"--log_dir={tmp_path / 'logs'}",
        "--join=True",
        "--tail_worker_log=1",
        "--bind_core=True",
        path,
        "--lr",
        1,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['--lr', '1'] 1 1 2 2"]
    assert (tmp_path / "logs/worker_0.log").read_text() == "['--lr', '1'] 0 0 2 2\n"


def test_msrun_on_two_machines(script, tmp_path):
    path, port = script("say(rank)\n"), _port()
    command = [
        sys.executable,
        ROOT / "msadapter/distributed/_torchrun.py",
        "--as-msrun",
        "--worker_num",
        "4",
        "--local_worker_num",
        "2",
        "--master_port",
        str(port),
        "--log_dir",
        tmp_path,
    ]
    jobs = [
        subprocess.Popen([*command, "--node_rank", str(node), path], env=environment()) for node in (1, 0)
    ]
    assert [job.wait(PATIENCE) for job in jobs] == [0, 0]
    assert [(tmp_path / f"worker_{rank}.log").read_text() for rank in range(4)] == [
        f"{rank}\n" for rank in range(4)
    ]


def test_msrun_says_what_does_not_fit(script):
    assert (
        "must be a multiple of --local_worker_num 2"
        in _msrun("--worker_num", 3, "--local_worker_num", 2, script("")).stderr
    )
    assert "--sim_level is not supported" in _msrun("--sim_level", 1, script("")).stderr


JOB = """
import os, sys, time, torch
import torch.distributed as dist
from datetime import timedelta
"""


def test_the_traceback_of_a_rank_is_seen(script):
    text = (
        "dist.init_process_group('gloo')\nif dist.get_rank() == 1: raise ValueError('boom')\ndist.barrier()\n"
    )
    done = torchrun("--nproc-per-node", 2, script(text, JOB))
    assert done.returncode == 1 and "ValueError: boom" in done.stderr and "rank 1" in done.stderr


@pytest.mark.parametrize(
    "what, text",
    [
        ("missing", "if rank == 0: dist.all_reduce(torch.ones(3))\nelse: time.sleep(600)\n"),
        ("stopped", "if rank: os.kill(os.getpid(), 19)\ndist.barrier()\n"),
    ],
    ids=["missing", "stopped"],
)
def test_a_late_rank_is_named(script, what, text):
    head = (
        "dist.init_process_group('nccl', timeout=timedelta(seconds=120))\nrank = dist.get_rank()\ndist.barrier()\n"
        "dist.distributed_c10d._set_pg_timeout(timedelta(seconds=3))\n"
    )
    done = torchrun("--nproc-per-node", 2, script(head + text, JOB))
    assert done.returncode == 1
    assert "Watchdog caught collective operation timeout" in done.stderr
    assert "Ranks that have not arrived: [1]" in done.stderr
    assert ("time.sleep(600)" if what == "missing" else "Rank 1 does not answer") in done.stderr


def test_monitored_barrier_names_who_is_missing(script):
    text = (
        "dist.init_process_group('gloo')\nif dist.get_rank(): time.sleep(600)\n"
        "dist.monitored_barrier(timeout=timedelta(seconds=1), wait_all_ranks=True)\n"
    )
    done = torchrun("--nproc-per-node", 2, script(text, JOB))
    assert done.returncode == 1 and "Ranks 1 failed to pass monitoredBarrier in 1000 ms" in done.stderr


def test_debug_mode_finds_a_mismatch(script):
    text = (
        "dist.init_process_group('gloo')\ndist.all_reduce(torch.ones(2))\n"
        "dist.all_reduce(torch.ones(3 if dist.get_rank() else 4))\n"
    )
    done = torchrun("--nproc-per-node", 2, script(text, JOB), TORCH_DISTRIBUTED_DEBUG="DETAIL")
    assert done.returncode == 1 and "Detected mismatch between collectives on ranks" in done.stderr
    assert "[3]" in done.stderr and "[4]" in done.stderr


def test_ranks_without_a_launcher(script, tmp_path):
    path = script(
        "dist.init_process_group('gloo', init_method=sys.argv[1], rank=int(sys.argv[2]), world_size=2)\n"
        "t = torch.ones(1)\ndist.all_reduce(t)\nprint(t.item())\n",
        JOB,
    )
    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", "msadapter", str(path), f"file://{tmp_path}/meet", str(rank)],
            text=True,
            env=environment(),
            stdout=subprocess.PIPE,
        )
        for rank in (0, 1)
    ]
    assert [job.communicate(timeout=PATIENCE)[0] for job in jobs] == ["2.0\n", "2.0\n"]


def test_a_dead_neighbour_is_noticed_without_a_launcher(script):
    port = _port()
    path = script("dist.init_process_group('gloo')\nif dist.get_rank(): os._exit(3)\ndist.barrier()\n", JOB)
    jobs = [
        subprocess.Popen(
            [sys.executable, "-m", "msadapter", str(path)],
            text=True,
            stderr=subprocess.PIPE,
            env=environment(RANK=rank, WORLD_SIZE=2, MASTER_ADDR="localhost", MASTER_PORT=port),
        )
        for rank in (0, 1)
    ]
    errors = [job.communicate(timeout=PATIENCE)[1] for job in jobs]
    assert [job.returncode for job in jobs] == [1, 3]
    assert "the processes of ranks [1] have ended" in errors[0]


def test_spawned_ranks(script):
    text = """
import torch.multiprocessing as mp
def work(rank, port):
    dist.init_process_group('gloo', init_method=f'tcp://localhost:{port}', rank=rank, world_size=2)
    t = torch.tensor([rank + 1.0])
    dist.all_reduce(t)
    dist.destroy_process_group()
    if rank == 1:
        raise RuntimeError(f'the sum is {t.item()}')
if __name__ == '__main__':
    mp.spawn(work, args=(PORT,), nprocs=2)
"""
    path = script(text.replace("PORT", str(_port())), JOB)
    done = subprocess.run(
        [sys.executable, "-m", "msadapter", str(path)],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 1 and "the sum is 3.0" in done.stderr
