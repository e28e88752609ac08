"""pytest plugin: writes what became of every test, as it happens, one JSON line each; ends tests that take too long.

It is loaded by name into the runs of other projects' tests, so it knows nothing of this one. MSADAPTER_SUITE_RECORD names
the file, MSADAPTER_SUITE_LIMIT the seconds a test may take, MSADAPTER_SUITE_LEFT_OUT the words of tests left out (JSON),
MSADAPTER_SUITE_EVERY the share of the tests that run: 10 is a tenth of them.
"""

from __future__ import annotations

import json
import os
import re
import signal
import zlib

import pytest

RECORD = os.environ["MSADAPTER_SUITE_RECORD"]
LIMIT = int(os.environ.get("MSADAPTER_SUITE_LIMIT", "120"))
EVERY = int(os.environ.get("MSADAPTER_SUITE_EVERY", "1"))
_PATH = re.compile(r"(?<![\w.])/[\w.+-]+(/[\w.+-]*)+")  # folders of this machine say nothing to a reader
LEFT_OUT = json.loads(os.environ.get("MSADAPTER_SUITE_LEFT_OUT", "{}"))


class OutOfTime(BaseException):
    """Raised after the time limit. It is not an Exception, so tests that expect one do not catch it."""


def _write(**line: object) -> None:
    with open(RECORD, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def _key(item: pytest.Item) -> str:
    return item.nodeid.split("/")[-1]


def _finished() -> set[str]:
    """Tests that an earlier process of this run began. After a crash, a new process continues after them."""
    if not os.path.exists(RECORD):
        return set()
    with open(RECORD, encoding="utf-8") as file:
        return {line["test"] for line in map(json.loads, file) if "test" in line}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    begun = _finished()
    kept = []
    for item in items:
        if zlib.crc32(_key(item).encode()) % EVERY:  # the name decides, so that both sides run the same tests
            continue
        reason = next((why for word, why in LEFT_OUT.items() if word.lower() in item.nodeid.lower()), None)
        if _key(item) in begun:
            continue
        if reason is not None:
            _write(test=_key(item), outcome="left out", reason=reason)
        else:
            kept.append(item)
    items[:] = kept


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: object):
    _write(test=_key(item), outcome="begun")

    def ended(number: int, frame: object) -> None:
        raise OutOfTime(f"took more than {LIMIT} s")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(LIMIT)
    try:
        return (yield)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    report = yield
    if report.when == "call" or report.outcome != "passed":
        _write(
            test=_key(item),
            outcome=report.outcome,
            reason=_reason(report, call),
            seconds=round(call.duration, 2),
        )
    return report


def _reason(report: pytest.TestReport, call: pytest.CallInfo) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")[:160]
    if call.excinfo is None:
        return ""
    error = call.excinfo.value
    text = next(iter(str(error).strip().splitlines()), "")
    return f"{type(error).__name__}: {_PATH.sub('...', text)}"[:200]
