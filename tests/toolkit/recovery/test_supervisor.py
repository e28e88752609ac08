"""The supervisor's decisions, with real processes in the place of ranks."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from megatron_ms.monitor import events
from megatron_ms.recovery import beats, manifest
from megatron_ms.recovery.supervisor import FAILED, STOPPED, Rules, Supervisor


def attempt(supervisor: Supervisor, iteration: int, code: int = 1, **reason):
    """An attempt that ends in an iteration."""
    heart = beats.Heart(supervisor.begin(), 0)
    heart.running(iteration)
    if reason:
        heart.reason(**reason)
    return supervisor.after(code, "the training ended with exit code 1:" if code else "")


def test_restarts_are_bounded_and_pauses_double(tmp_path) -> None:
    supervisor = Supervisor(tmp_path, Rules(restarts=2, backoff=0.5))
    assert [attempt(supervisor, number).pause for number in (3, 5)] == [0.5, 1.0]
    last = attempt(supervisor, 9)
    assert last.code == STOPPED and "all 2 restarts are used (recovery.restarts)" in last.text


def test_two_crashes_at_the_same_iteration_stop_the_run(tmp_path) -> None:
    supervisor = Supervisor(tmp_path, Rules(restarts=9))
    why = {"kind": "nan", "text": "rank 1, iteration 7: NaN"}
    assert attempt(supervisor, 7, **why).code is None
    verdict = attempt(supervisor, 7, **why)
    assert verdict.code == STOPPED
    assert verdict.text == "two attempts in a row failed in iteration 7: rank 1, iteration 7: NaN"
    assert [event["kind"] for event in events.read(tmp_path)].count("restart") == 1


def test_steps_that_are_lost_are_told_with_what_would_keep_them(tmp_path) -> None:
    """Checkpoint 4 is whole, and iteration 7 has failed, so two finished steps are lost."""
    checkpoints = tmp_path / "checkpoints"
    place = manifest.place_of(checkpoints, 4)
    place.mkdir(parents=True)
    (place / "common.pt").write_text("x")
    manifest.write(place, manifest.measure(place))
    advice = "; steps 5 to 6 are computed again (with recovery.memory=1 it would be one at most)"
    assert attempt(Supervisor(tmp_path, Rules(restarts=9, saves=True)), 7).text.endswith(advice)
    assert "again" not in attempt(Supervisor(tmp_path, Rules(restarts=9, saves=True)), 6).text
    assert "again" not in attempt(Supervisor(tmp_path, Rules(restarts=9, saves=False)), 7).text
    memory = Supervisor(tmp_path, Rules(restarts=9, saves=True), tmp_path / "memory", checkpoints)
    assert "again" not in attempt(memory, 7).text


def test_without_restarts_the_first_failure_is_the_end(tmp_path) -> None:
    verdict = attempt(Supervisor(tmp_path, Rules()), 3)
    assert verdict.code == FAILED


def test_a_final_reason_is_not_tried_again(tmp_path) -> None:
    verdict = attempt(
        Supervisor(tmp_path, Rules(restarts=9)), 3, kind="skips", text="10 steps in a row", final=True
    )
    assert (verdict.code, verdict.text) == (STOPPED, "10 steps in a row")


def test_success(tmp_path) -> None:
    assert attempt(Supervisor(tmp_path, Rules(restarts=9)), 3, code=0).code == 0


def test_a_later_command_counts_attempts_on(tmp_path) -> None:
    attempt(Supervisor(tmp_path, Rules()), 3)
    assert Supervisor(tmp_path, Rules()).begin() == tmp_path / "attempts" / "2"


def test_the_first_reason_counts(tmp_path) -> None:
    heart = beats.Heart(tmp_path, 3)
    heart.reason("nan", "first")
    heart.reason("error", "second")
    assert [one["text"] for one in beats.reasons(tmp_path)] == ["first"]


_LAUNCHER = """
import subprocess, sys
rank = subprocess.Popen([sys.executable, "-c", sys.argv[1], sys.argv[2]])
sys.exit(rank.wait() != 0)
"""
_RANK = """
import signal, sys, time
from pathlib import Path
from megatron_ms.recovery.beats import Heart
heart = Heart(Path(sys.argv[1]), 1)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
heart.start()
heart.running(4)
while True:
    time.sleep(0.05)
"""


@pytest.fixture
def launched(tmp_path):
    """A supervisor with a launcher and its rank, which has begun iteration 4."""
    supervisor = Supervisor(tmp_path, Rules(silence=3.0, saves=True))
    signs = supervisor.begin()
    root = Path(beats.__file__).parents[2]
    launcher = subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER, _RANK, str(signs)], env=os.environ | {"PYTHONPATH": str(root)}
    )
    while not (found := beats.read(signs)) or not found[1].iteration:
        time.sleep(0.02)
        assert launcher.poll() is None
    yield supervisor, launcher, found[1].pid
    launcher.kill()
    launcher.wait()
    with contextlib.suppress(ProcessLookupError):
        os.kill(found[1].pid, signal.SIGKILL)


def test_a_stopped_rank_is_named_and_ended(launched, tmp_path) -> None:
    supervisor, launcher, rank = launched
    with supervisor.watching(launcher):
        os.kill(rank, signal.SIGSTOP)
        assert launcher.wait(60) == 1
    (text,) = supervisor.named
    assert text.startswith(
        f"rank 1 (pid {rank}, stopped by a signal) has given no sign of life for "
    ) and text.endswith("in iteration 4")
    assert text in supervisor.after(1, "the training ended with exit code 1:").text


def test_a_rank_that_beats_is_left_alone(launched) -> None:
    supervisor, _, _ = launched
    assert supervisor.silent(time.monotonic()) == []
    assert [beat.rank for beat in supervisor.silent(time.monotonic() + 60)] == [1]


def test_a_step_that_does_not_end_is_named_and_ended(launched, tmp_path) -> None:
    """All ranks wait for each other, and their threads go on giving signs of life."""
    supervisor, launcher, rank = launched
    supervisor.rules = Rules(silence=60.0, stall=2.0)
    with supervisor.watching(launcher):
        assert launcher.wait(60) == 1
    (text,) = supervisor.named
    assert text.startswith(f"rank 1 (pid {rank}) has not ended iteration 4 after ")
    assert [event["kind"] for event in events.read(tmp_path)][-1] == "stalled"


def test_only_steps_are_timed(tmp_path) -> None:
    """Not the start, and not what is between two steps, such as a checkpoint."""
    heart = beats.Heart(tmp_path, 0)
    for act, late in (
        (heart.beat, 0),
        (lambda: heart.running(1), 1),
        (heart.done, 0),
        (lambda: heart.running(2), 1),
    ):
        act()
        assert len(beats.stalled(beats.read(tmp_path), 60.0, time.monotonic() + 61)) == late
        assert not beats.stalled(beats.read(tmp_path), 60.0, time.monotonic())


def test_the_rank_that_works_is_ended_and_not_those_that_wait_for_it(tmp_path) -> None:
    """Rank 0 began its step first, but it waits. Where all ranks wait, they are given five seconds more."""
    for rank, waits in ((0, True), (1, False), (2, True)):
        beats.Heart(tmp_path, rank, lambda waits=waits: waits).running(7)
    told, now = beats.read(tmp_path), time.monotonic()
    assert [beat.rank for beat in beats.stalled(told, 15.0, now + 16)] == [1]
    assert [beat.rank for beat in beats.stalled(told, 15.0, now + 21)] == [1, 0, 2]
    waiting = {rank: beat for rank, beat in told.items() if beat.waits}
    assert not beats.stalled(waiting, 15.0, now + 19) and len(beats.stalled(waiting, 15.0, now + 21)) == 2
    assert (
        not beats.stalled(waiting, 1800.0, now + 1970)
        and len(beats.stalled(waiting, 1800.0, now + 1990)) == 2
    )
    assert told[0].said_stalled(now + 21).endswith("iteration 7 after 21 s, and waits for other ranks")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_signals_let_the_ranks_save_and_end(launched, number) -> None:
    supervisor, launcher, _ = launched
    with supervisor.signals(), supervisor.watching(launcher):
        os.kill(os.getpid(), number)
        assert launcher.wait(60) == 0
    verdict = supervisor.after(0, "")
    assert verdict.code == 0 and verdict.text.startswith(f"ended by {signal.Signals(number).name}")


def test_a_signal_between_two_attempts_ends_the_run(tmp_path) -> None:
    supervisor = Supervisor(tmp_path, Rules(restarts=3))
    assert attempt(supervisor, 3).code is None and supervisor.rest(0.0) is None
    with supervisor.signals():
        os.kill(os.getpid(), signal.SIGTERM)
        verdict = supervisor.rest(3600)
    assert verdict is not None and (verdict.code, verdict.text) == (0, "ended by SIGTERM before a restart")


@pytest.mark.parametrize(("saved", "code"), [(7, 0), (6, FAILED)])
def test_after_a_signal_the_checkpoint_counts_and_not_the_launchers_exit_code(tmp_path, saved, code) -> None:
    """A signal to the whole process group also ends the launcher, while the ranks write their checkpoint."""
    supervisor = Supervisor(tmp_path, Rules(restarts=3, saves=True))
    heart = beats.Heart(supervisor.begin(), 0)
    heart.running(7)
    heart.done()
    place = manifest.place_of(tmp_path / "checkpoints", saved)
    place.mkdir(parents=True)
    (place / "common.pt").write_text("x")
    manifest.write(place, manifest.measure(place))
    supervisor.asked = "SIGTERM"
    assert supervisor.after(143, "the program failed").code == code
