"""The fault suite itself: what it counts as left behind, how it judges times, and how it writes its page."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.megatron import fault_page, full_disk, reliability, shared_memory
from tests.megatron.fault_suite import IDLE_START, PROMISED, Missing, Row, Suite
from tests.megatron.faulty_runs import Run

_OWN = f"{shared_memory.OURS}own-{os.getpid()}"


@pytest.fixture
def shared(monkeypatch):
    """Makes files in shared memory, which are removed afterwards."""
    monkeypatch.setattr(shared_memory, "_PATIENCE", 0.0)
    made = []

    def make(name: str) -> Path:
        made.append(shared_memory.PLACE / name)
        made[-1].write_bytes(bytes(4096))
        return made[-1]

    yield make
    for file in made:
        file.unlink()


def test_what_any_library_leaves_in_shared_memory_is_found(shared) -> None:
    before = shared_memory.entries()
    segment, own = shared(f"mpich_shm_test_{os.getpid()}"), shared(f"{_OWN}-1")
    shared(f"{shared_memory.OURS}of-another-run-{os.getpid()}")
    found = set(shared_memory.left_since(before, _OWN))
    assert {str(segment), str(own)} <= found
    assert not any("of-another-run" in one for one in found)
    assert str(segment) not in shared_memory.left_since(shared_memory.entries(), _OWN)


def test_what_a_running_process_uses_is_not_left(shared) -> None:
    before = shared_memory.entries()
    segment, own = shared(f"mpich_shm_test_{os.getpid()}"), shared(_OWN)
    with open(segment), open(own):
        found = shared_memory.left_since(before, _OWN)
    assert str(segment) not in found and str(own) in found


def test_the_promise_is_longer_on_a_busy_machine_alone(tmp_path) -> None:
    suite = Suite(tmp_path, tmp_path, timed=True)
    idle = IDLE_START[False]
    suite.kept_promise(PROMISED - 0.1, idle / 2)
    suite.kept_promise(2 * PROMISED - 0.1, 2 * idle)
    for seconds, start in ((PROMISED, idle / 2), (2 * PROMISED, 2 * idle)):
        with pytest.raises(Missing, match="recovery took"):
            suite.kept_promise(seconds, start)


def test_recovery_begins_with_the_fault(tmp_path) -> None:
    """The launcher sees the failure later than it happens."""
    told = [("attempt", 95.0), ("step", 97.0), ("failure", 107.0), ("attempt", 108.0), ("step", 111.0)]
    happened = [{"kind": kind, "time": when, "text": ""} for kind, when in told]
    (tmp_path / "1-7-0").touch()
    os.utime(tmp_path / "1-7-0", (100.0, 100.0))
    run = Run(0, "", tmp_path, {}, happened, marks=tmp_path)
    assert run.recovery() == 11.0 and run.start() == 2.0


def test_a_page_keeps_the_lines_of_faults_that_were_not_run() -> None:
    order = [fault.what for fault in reliability.FAULTS.values()]
    assert len(set(order)) == len(order)
    rows = {what: fault_page.line(what, Row(1, 0, "", "first")) for what in order[:3]}
    page = fault_page.merged("", rows, order)
    page = fault_page.merged(
        page, {order[1]: fault_page.line(order[1], Row(1, 2, "", "llm"))}, order, llm=True
    )
    page = fault_page.merged(
        page, {order[0]: fault_page.line(order[0], Row(1, 3, "2.0 s", "again")), order[2]: None}, order
    )
    lines = [text for text in page.splitlines() if text.startswith("| ") and not text.startswith("| fault")]
    assert lines == [
        f"| {order[0]} | 1 | 3 | 2.0 s | again |",
        f"| {order[1]} | 1 | 0 |  | first |",
        f"| {order[1]} | 1 | 2 |  | llm |",
    ]


def test_a_small_disk_is_full_for_the_program_alone(tmp_path) -> None:
    if why := full_disk.forbidden():
        pytest.skip(f"no file system can be mounted here: {why}")
    disk = tmp_path / "disk"
    disk.mkdir()
    write = "import sys; open(sys.argv[1] + '/file', 'wb', buffering=0).write(bytes(1 << 20))"
    large = "import sys; f = open(sys.argv[1] + '/file', 'wb', buffering=0); [f.write(bytes(1 << 20)) for _ in range(4)]"
    for number, (code, script) in enumerate(((0, write), (1, large))):
        kept = tmp_path / f"kept-{number}"
        words = [*full_disk.on_disk_of("2m", disk, kept), sys.executable, "-c", script, str(disk)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        assert ("No space left on device" in done.stderr) == bool(code)
        assert (kept / "file").stat().st_size >= 1 << 20 and not list(disk.iterdir())
