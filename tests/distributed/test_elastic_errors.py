"""The error file of a worker, and the report on the workers that failed."""

from __future__ import annotations

import json

import pytest

from msadapter.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record


@pytest.fixture
def error_file(tmp_path, monkeypatch):
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))
    return path


def test_an_error_is_written_and_raised_on(error_file):
    @record
    def main():
        raise ValueError("bad")

    with pytest.raises(ValueError, match="bad"):
        main()
    message = json.loads(error_file.read_text())["message"]
    assert message["message"] == "ValueError: bad" and "in main" in message["extraInfo"]["py_callstack"]
    assert int(message["extraInfo"]["timestamp"]) > 0


def test_a_regular_end_writes_nothing(error_file):
    assert record(lambda: 3)() == 3

    def leave(code):
        raise SystemExit(code)

    assert record(leave)(0) is None
    with pytest.raises(SystemExit):
        record(leave)(2)
    assert not error_file.exists()


def test_the_first_failure_is_the_root_cause(error_file, tmp_path):
    worker = tmp_path / "worker.json"
    extra = {"py_callstack": "Traceback: worker\n", "timestamp": "100"}
    worker.write_text(json.dumps({"message": {"message": "ValueError: x", "extraInfo": extra}}))
    raised = ProcessFailure(local_rank=0, pid=99, exitcode=1, error_file=str(worker))
    killed = ProcessFailure(local_rank=1, pid=98, exitcode=-9, error_file=str(tmp_path / "none"))
    assert killed.signal_name() == "SIGKILL" and killed.message == "Signal 9 (SIGKILL) received by PID 98"
    assert raised.timestamp_isoformat() == "1970-01-01_00:01:40"
    failed = ChildFailedError("train.py", {4: killed, 3: raised})
    assert failed.get_first_failure() == (3, raised)
    report = str(failed)
    root = report.index("Root Cause")
    assert report.index("rank      : 4 (local_rank: 1)") < root < report.index("Traceback: worker")

    @record
    def launcher():
        raise failed

    with pytest.raises(ChildFailedError):
        launcher()
    assert json.loads(error_file.read_text())["message"] == {
        "message": "ValueError: x",
        "extraInfo": extra,
        "errorCode": 1,
    }
