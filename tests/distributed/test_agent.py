"""The launcher's agent by itself, without ranks: what it makes of failures, and what it gives to ranks."""

from __future__ import annotations

import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest

from msadapter.distributed import agent
from msadapter.distributed.errors import DistStoreError
from msadapter.distributed.meeting import JobEnded, NewRound, Round
from tests.distributed.ranks import PATIENCE, environment


class _Meeting:
    """The coordination of the machines, with given answers: it notes what it is asked."""

    store = SimpleNamespace(port=4321)

    def __init__(self, restarts=0):
        self.asked, self.restarts, self.patience = [], restarts, 0.0

    def join(self):
        self.asked.append("join")
        return Round(len(self.asked) - 1, 1, 2, 2, 4)

    def agree_on_end(self):
        self.asked.append("end")

    def patience_of_ranks(self):
        return self.patience

    def failed(self, what):
        self.asked.append(what)
        self.restarts -= 1
        return self.restarts >= 0

    def leave(self, why):
        self.asked.append(why)


class _Guard:
    closed = 0

    def close(self):
        _Guard.closed += 1


def _failed(status=3):
    rank = SimpleNamespace(number=2, local=0, process=SimpleNamespace(returncode=status, pid=99), started=0.0)
    return agent.RankFailed([rank], agent.Job(["python", "x.py"]))


@pytest.fixture
def made(monkeypatch):
    """Make an agent whose ranks end as given, one after the other: an error to raise, or None."""

    def make(*ends, restarts=0, meeting=None, **settings):
        monkeypatch.setattr(agent, "Guard", _Guard)
        met = _Meeting(restarts)
        monkeypatch.setattr(agent, "Meeting", meeting or (lambda job: met))
        found, coming = agent.Agent(agent.Job(["x"], **settings)), iter(ends)
        found.ended = []

        def watch():
            if (error := next(coming)) is not None:
                raise error

        monkeypatch.setattr(found, "_start", lambda: None)
        monkeypatch.setattr(found, "_watch", watch)
        monkeypatch.setattr(found, "_end_ranks", lambda grace=0: found.ended.append(grace))
        return found, met

    return make


def test_ends_of_a_job(made, capfd):
    number, closed = signal.getsignal(signal.SIGTERM), _Guard.closed
    found, met = made(None)
    assert found.run() == 0 and met.asked == ["join", "end"] and _Guard.closed == closed + 1
    found, met = made(_failed())
    assert found.run() == 3 and met.asked[0] == "join" and "rank 2 (local rank 0, pid 99)" in met.asked[1]
    assert "ended with exit code 3" in capfd.readouterr().err and found.ended == [agent._GRACE, 0]
    found, met = made(_failed())
    met.patience = 90.0  # what ranks have asked for, to write a checkpoint
    assert found.run() == 3 and found.ended == [90.0, 0]
    capfd.readouterr()
    found, met = made(_failed(-9), None, restarts=1)
    assert found.run() == 0 and [met.asked[0], *met.asked[2:]] == ["join", "join", "end"]
    assert "ended with signal SIGKILL" in (said := capfd.readouterr().err)
    assert "restart 1, of failures at most 0" in said
    found, met = made(NewRound("a machine has joined"), JobEnded("it is over"))
    assert found.run() == 1 and met.asked == ["join", "join"]
    assert "all ranks start again: a machine has joined" in (said := capfd.readouterr().err)
    assert "it is over" in said
    assert _failed(-9).code == 137 and _failed(4).code == 4
    assert signal.getsignal(signal.SIGTERM) is number


def test_a_signal_is_told_to_the_other_machines(made, capfd, monkeypatch):
    found, met = made(agent.Stopped(signal.SIGTERM), node_rank=1)
    before = signal.getsignal(signal.SIGINT)
    assert found.run() == 143 and met.asked == ["join", "machine 1 received SIGTERM"]
    assert found.ended == [found.job.goodbye, 0] and signal.getsignal(signal.SIGINT) is before
    assert "received SIGTERM, ending the ranks" in capfd.readouterr().err

    def stopped(job):
        raise agent.Stopped(signal.SIGINT)

    assert made(meeting=stopped)[0].run() == 130  # the launchers have not met yet

    def lost(job):
        raise DistStoreError("no store")

    assert made(meeting=lost)[0].run() == 1 and "no store" in capfd.readouterr().err


def test_variables_of_ranks(made, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    settings = {
        "nodes": 2,
        "host": "there",
        "run_id": "id",
        "role": "r",
        "max_restarts": 5,
        "secret": b"s" * 16,
    }
    found, met = made(local_size=2, environment={"OWN": 1}, copied_names={"COPY": "RANK"}, **settings)
    found.meeting, found.round = met, Round(3, 1, 2, 2, 4)
    given = found._environment(1)
    wanted = {
        "RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2",
        "ROLE_RANK": "3", "ROLE_WORLD_SIZE": "4", "ROLE_NAME": "r", "MASTER_ADDR": "there", "MASTER_PORT": "4321",
        "TORCHELASTIC_RESTART_COUNT": "3", "TORCHELASTIC_MAX_RESTARTS": "5", "TORCHELASTIC_RUN_ID": "id",
        "TORCHELASTIC_USE_AGENT_STORE": "True", "OWN": "1", "COPY": "3", agent.SECRET_VARIABLE: "s" * 16,
        "OMP_NUM_THREADS": "1",
    }  # fmt: skip
    assert {name: given[name] for name in wanted} == wanted
    found.job.local_size = 1
    assert "OMP_NUM_THREADS" not in found._environment(0)
    alone, _ = made(host="elsewhere")
    assert alone.job.host == "127.0.0.1" and len(alone.job.secret) == 64
    assert made(nodes=2)[0].job.secret is None


@pytest.mark.parametrize(
    "settings, shown",
    [
        ({}, (True, True)),
        ({"shown": {1}}, (False, True)),
        ({"shown_ranks": {2}}, (True, False)),
        ({"shown": {0}, "shown_ranks": {3}}, (False, False)),
    ],
)
def test_whose_output_is_shown(made, settings, shown):
    found, _ = made(local_size=2, **settings)
    found.round = Round(0, 1, 2, 2, 4)
    assert [found._output(local, 1) for local in (0, 1)] == [
        (None, None) if each else (subprocess.DEVNULL, None) for each in shown
    ]


def test_places_of_logs(made, tmp_path):
    found, _ = made(local_size=2, log_dir=str(tmp_path), redirects={0: 1, 1: 2}, run_id="id")
    found.round = Round(4, 1, 2, 2, 4)
    file, same = found._output(0, 1)
    assert file is same and file.name == str(tmp_path / "id/attempt_4/0/stdout.log")
    file.close()
    assert found._output(0, 2) == (None, None) and found._output(1, 1) == (None, None)
    file, _ = found._output(1, 2)
    assert file.name == str(tmp_path / "id/attempt_4/1/stderr.log")
    file.close()
    found.job.log_name = "log.{rank}"
    assert found._log_path(1, 1) == str(tmp_path / "log.3")


def test_the_guard_ends_without_running_the_program_further(tmp_path):
    """It is a fork of the launcher. What the launcher does at its end is done once."""
    script = tmp_path / "launcher.py"
    script.write_text(
        "import atexit, sys\n"
        "from msadapter.distributed.guard import Guard\n"
        "def end():\n"
        "    with open(sys.argv[1], 'a') as file: file.write('end;')\n"
        "atexit.register(end)\n"
        "Guard().close()\n"
    )
    ends = tmp_path / "ends"
    subprocess.run([sys.executable, str(script), str(ends)], env=environment(), check=True, timeout=PATIENCE)
    assert ends.read_text() == "end;"
