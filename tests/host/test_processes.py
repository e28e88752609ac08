"""What Linux tells about processes that run, have ended, and end while they are asked about."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys

import pytest

from msadapter._host.processes import has_ended, state_of


@pytest.fixture
def child():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def _end(process) -> None:
    """Let a process end without waiting for it, so that it is a zombie."""
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)


def test_a_process_that_runs(child) -> None:
    assert state_of(os.getpid()) in "RS"
    assert state_of(child.pid) in "RSD" and not has_ended(child.pid)


def test_a_process_that_is_not_waited_for_is_a_zombie(child) -> None:
    _end(child)
    assert state_of(child.pid) == "Z" and has_ended(child.pid)


def test_a_process_that_is_gone(child) -> None:
    _end(child)
    child.wait()
    assert state_of(child.pid) is None and has_ended(child.pid)


def test_a_process_that_goes_while_its_state_is_read(child, monkeypatch) -> None:
    opened = builtins.open

    def open_and_end(*arguments):
        stream = opened(*arguments)
        _end(child)
        child.wait()
        return stream

    monkeypatch.setattr(builtins, "open", open_and_end)
    assert has_ended(child.pid)


def test_a_state_that_cannot_be_read(monkeypatch) -> None:
    def refuse(*arguments):
        raise PermissionError

    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(PermissionError):
        state_of(os.getpid())
