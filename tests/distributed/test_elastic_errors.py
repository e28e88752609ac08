"""The error file of a worker, and the report on the workers that failed."""

from __future__ import annotations

import json
import time

import pytest

from msadapter.distributed.elastic.multiprocessing import errors
from msadapter.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure, record


@pytest.fixture(autouse=True)
def universal_time(monkeypatch):
    """Reports show local time."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


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


def _failure(folder, code=1, name="absent", content=None, pid=99, local=0):
    path = folder / name
    if content is not None:
        path.write_text(json.dumps(content))
    return ProcessFailure(local, pid, code, str(path))


@pytest.mark.parametrize("code, message, name", [
    (1, errors._HINT, "<N/A>"),
    (0, errors._HINT, "<N/A>"),
    (-9, "Signal 9 (SIGKILL) received by PID 99", "SIGKILL"),
    (-1, "Signal 1 (SIGHUP) received by PID 99", "SIGHUP"),
    (-250, "Signal 250 (<N/A>) received by PID 99", "<N/A>"),
])  # fmt: skip
def test_a_process_without_an_error_file(tmp_path, monkeypatch, code, message, name):
    monkeypatch.setattr(errors.time, "time", lambda: 86400.75)
    found = _failure(tmp_path, code)
    assert (found.message, found.signal_name(), found.error_file) == (message, name, "<N/A>")
    traits = {"category": "system_terminated_error", "retryability": "False"}
    expected = {"message": "<NONE>"} | ({"errorTraits": traits} if code >= 0 else {})
    assert found.error_file_data == expected and found.timestamp == 86400
    assert found.timestamp_isoformat() == "1970-01-02_00:00:00"


@pytest.mark.parametrize("message, timestamp", [
    ("a text", 0),
    ({"message": "x"}, 0),
    ({"message": "x", "extraInfo": {}}, 0),
    ({"message": "x", "extraInfo": {"timestamp": "7"}}, 7),
])  # fmt: skip
def test_messages_of_error_files(tmp_path, message, timestamp):
    found = _failure(tmp_path, content={"message": message}, name="e")
    assert (found.message, found.timestamp, found.error_file_data) == (
        message,
        timestamp,
        {"message": message},
    )


def test_a_text_has_its_time_beside_it(tmp_path):
    assert _failure(tmp_path, content={"message": "m", "timestamp": 10}, name="e").timestamp == 10
    empty = _failure(tmp_path, -9, content={"message": "", "timestamp": 10}, name="e")
    assert empty.message == "Signal 9 (SIGKILL) received by PID 99"
    (tmp_path / "e").write_text("{")
    with pytest.raises(json.JSONDecodeError):
        ProcessFailure(0, 1, 1, str(tmp_path / "e"))


def test_the_whole_report(tmp_path, monkeypatch):
    monkeypatch.setattr(errors.socket, "getfqdn", lambda: "host")
    monkeypatch.setattr(errors.time, "time", lambda: 60)
    extra = {"py_callstack": "one\ntwo", "timestamp": "30"}
    failures = {
        1: _failure(tmp_path, -9, pid=8, local=1),
        2: _failure(tmp_path, 3, "e", {"message": {"message": "m", "extraInfo": extra}}),
    }
    edge, line = "=" * 60, "-" * 60
    others = [
        "[0]:",
        "  time      : 1970-01-01_00:01:00",
        "  host      : host",
        "  rank      : 1 (local_rank: 1)",
        "  exitcode  : -9 (pid: 8)  (SIGKILL)",
        "  error_file: <N/A>",
        "  traceback : Signal 9 (SIGKILL) received by PID 8",
    ]
    root = [
        "[1]:",
        "  time      : 1970-01-01_00:00:30",
        "  host      : host",
        "  rank      : 2 (local_rank: 0)",
        "  exitcode  : 3 (pid: 99) ",
        f"  error_file: {tmp_path / 'e'}",
        "  traceback : one\n  two",
    ]
    head, cause = ["", edge, "train FAILED", line, "Failures:"], "Root Cause (first observed failure):"
    failed = ChildFailedError("train", failures)
    assert str(failed) == "\n".join([*head, *others, line, cause, *root, edge])
    assert (failed.name, failed.failures) == ("train", failures)
    alone = ChildFailedError("t" * 70, {0: _failure(tmp_path, 0)})
    lines = str(alone).split("\n")
    assert lines[1] == "=" * 60 and lines[5] == "  <NO_OTHER_FAILURES>" and lines[8] == "[0]:"
    assert lines[12] == "  exitcode  : 0 (pid: 99) " and alone.format_msg("#", "~").split("\n")[1] == "#" * 60
    with pytest.raises(AssertionError, match="there must be a failure"):
        ChildFailedError("train", {})


@pytest.mark.parametrize("message, shown", [
    ({"message": "m", "extraInfo": {"py_callstack": "stack"}}, "stack"),
    ({"message": "m", "extraInfo": {}}, "m"),
    ({"message": "m"}, "m"),
    ({}, "<N/A>"),
    ("text", "text"),
])  # fmt: skip
def test_what_a_report_shows_of_a_message(tmp_path, message, shown):
    failed = ChildFailedError("train", {0: _failure(tmp_path, content={"message": message}, name="e")})
    assert f"  traceback : {shown}\n" in str(failed)


def test_error_files_are_copied(error_file, tmp_path):
    handler, worker = errors.get_error_handler(), tmp_path / "worker"
    for content, code, expected in (
        ({"message": {"message": "m"}}, 5, {"message": {"message": "m", "errorCode": 5}}),
        ({"message": {"message": "m"}}, 0, {"message": {"message": "m"}}),
        ({"message": "text"}, 5, {"message": "text"}),
    ):
        worker.write_text(json.dumps(content))
        handler.dump_error_file(str(worker), code)
        assert json.loads(error_file.read_text()) == expected
    worker.write_text(json.dumps({"message": {}}))
    handler.dump_error_file(str(worker))
    assert json.loads(error_file.read_text()) == {"message": {}}
    content = {"message": {}}
    handler.override_error_code_in_rootcause_data(str(worker), content)
    assert content == {"message": {"errorCode": 0}}


def test_without_an_error_file_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    worker = tmp_path / "worker"
    worker.write_text('{"message": {}}')
    errors.get_error_handler().dump_error_file(str(worker), 3)
    with pytest.raises(KeyError):
        record({}.__getitem__)(1)
    failed = ChildFailedError("train", {0: _failure(tmp_path)})  # it has no error file that could be copied

    def launcher():
        raise failed

    with pytest.raises(ChildFailedError):
        record(launcher)()
    assert [path.name for path in tmp_path.iterdir()] == [
        "worker"
    ] and worker.read_text() == '{"message": {}}'


def test_a_crash_of_the_interpreter_shows_all_threads(monkeypatch):
    given = []
    monkeypatch.setattr("faulthandler.enable", lambda *a, all_threads=True: given.append(all_threads))

    class Handler(errors.ErrorHandler):
        def record_exception(self, e):
            given.append(str(e))

    def main(a, *, b):
        raise ValueError(f"{a} {b}")

    wrapped = record(main, Handler())
    assert wrapped.__name__ == "main"
    with pytest.raises(ValueError, match="1 2"):
        wrapped(1, b=2)
    assert given == [True, "1 2"]


def test_what_an_earlier_program_left_is_logged_and_replaced(error_file, tmp_path, caplog):
    worker = tmp_path / "worker"
    worker.write_text(json.dumps({"message": "new"}))
    error_file.write_text("half of a fi")
    errors.get_error_handler().dump_error_file(str(worker), 3)
    assert json.loads(error_file.read_text()) == {"message": "new"}
    assert "half of a fi" in caplog.text and "a text as its message" in caplog.text


def test_without_a_place_the_copy_is_refused_in_the_log(tmp_path, monkeypatch, caplog):
    monkeypatch.delenv("TORCHELASTIC_ERROR_FILE", raising=False)
    worker = tmp_path / "worker"
    worker.write_text(json.dumps({"message": "m"}))
    errors.get_error_handler().dump_error_file(str(worker))
    assert "no error file" in caplog.text


def test_a_file_that_cannot_be_written_is_a_warning(tmp_path, monkeypatch):
    worker = tmp_path / "worker"
    worker.write_text(json.dumps({"message": "m"}))
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "absent" / "error.json"))
    with pytest.warns(UserWarning, match="Unable to write error to file. FileNotFoundError"):
        errors.get_error_handler().dump_error_file(str(worker))


def test_a_crash_handler_that_cannot_be_set_is_a_warning(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with pytest.warns(UserWarning, match="Unable to enable fault handler. RuntimeError"):
        errors.get_error_handler().initialize()
