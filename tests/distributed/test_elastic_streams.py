"""Standard streams that go to a file, and log files that are printed while they grow."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path

import pytest

from msadapter.distributed.elastic.multiprocessing.redirects import redirect
from msadapter.distributed.elastic.multiprocessing.tail_log import TailLog

PROGRAM = """
import ctypes, os, sys
from msadapter.distributed.elastic.multiprocessing.redirects import redirect, redirect_stderr, redirect_stdout
print("before")
with redirect_stdout("out"), redirect_stderr("err"):
    print("Python")
    ctypes.CDLL(None).printf(b"C\\n")
    os.system("echo shell; echo wrong >&2")
    print("error", file=sys.stderr)
print("between")
try:
    with redirect("stdout", "out2"):
        print("inside")
        raise KeyError
except KeyError:
    print("after")
"""


def test_all_writers_are_redirected_until_the_end(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": "/usr/bin:/bin"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["before", "between", "after"]
    assert sorted((tmp_path / "out").read_text().split()) == ["C", "Python", "shell"]
    assert sorted((tmp_path / "err").read_text().split()) == ["error", "wrong"]
    assert (tmp_path / "out2").read_text() == "inside\n"


def test_another_name_of_a_stream_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown standard stream <stdfoo>"), redirect("stdfoo", "file"):
        pass
    with pytest.raises(FileNotFoundError), redirect("stderr", str(tmp_path / "absent" / "file")):
        pass


def test_lines_are_printed_as_they_come(tmp_path: Path) -> None:
    files = {rank: str(tmp_path / f"{rank}.log") for rank in range(3)}
    Path(files[0]).write_text("early\n")
    out = io.StringIO()
    tail = TailLog("trainer", files, out, log_line_prefixes={1: "one:"}, interval_sec=0.01).start()
    assert not tail.stopped()
    deadline = time.time() + 20
    while not out.getvalue() and time.time() < deadline:
        time.sleep(0.01)
    Path(files[1]).write_text("late\nlast\n")
    tail.stop()
    assert tail.stopped() and sorted(out.getvalue().splitlines()) == [
        "[trainer0]:early",
        "one:last",
        "one:late",
    ]


def test_a_filter_chooses_lines(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a\nb\nab\n")
    out = io.StringIO()
    TailLog("t", {4: str(tmp_path / "log")}, out, log_line_filter=lambda line: "b" in line).start().stop()
    assert out.getvalue() == "[t4]:b\n[t4]:ab\n"


def test_a_file_that_cannot_be_read_is_logged(tmp_path: Path, caplog) -> None:
    out = io.StringIO()
    (tmp_path / "log").write_text("a\n")
    files = {0: str(tmp_path), 1: str(tmp_path / "log")}  # the first is a folder
    TailLog("t", files, out).start().stop()
    assert "the log of t0 could not be followed" in caplog.text and out.getvalue() == "[t1]:a\n"


def test_nothing_to_follow() -> None:
    tail = TailLog("t", {}, io.StringIO()).start()
    tail.stop()
    assert tail.stopped()
