"""A pytest plugin of one rank: writes every test's beginning and outcome as a line of JSON the moment it happens.

MSADAPTER_UT_RECORD   where (the rank's number is appended)
MSADAPTER_UT_DONE     a JSON list of tests to leave out: they have run before
MSADAPTER_UT_LIMIT    seconds after which a test's process ends itself, with its stacks on stderr
"""

from __future__ import annotations

import faulthandler
import json
import os
import re
from pathlib import Path

import pytest

_stream = open(f"{os.environ['MSADAPTER_UT_RECORD']}.{os.environ.get('RANK', 0)}", "w")  # noqa: SIM115 until the end
_limit = float(os.environ["MSADAPTER_UT_LIMIT"])
_worst: dict = {}


def _write(**event) -> None:
    _stream.write(json.dumps(event) + "\n")
    _stream.flush()


def pytest_collection_modifyitems(config, items) -> None:
    done = set(json.loads(Path(os.environ["MSADAPTER_UT_DONE"]).read_text()))
    out = [item for item in items if item.nodeid in done]
    items[:] = [item for item in items if item.nodeid not in done]
    config.hook.pytest_deselected(items=out)
    _write(event="collected", tests=[item.nodeid for item in items])


def pytest_collectreport(report) -> None:
    if report.failed or report.skipped:
        _write(event="file", outcome=report.outcome, reason=_reason(report))


def pytest_runtest_logstart(nodeid) -> None:
    _worst[nodeid] = ("passed", "")
    _write(event="start", test=nodeid)
    faulthandler.dump_traceback_later(_limit, exit=True)


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report) -> None:
    if report.outcome != "passed" and _worst[report.nodeid][0] != "failed":
        _worst[report.nodeid] = (report.outcome, _reason(report))


def pytest_runtest_logfinish(nodeid) -> None:
    faulthandler.cancel_dump_traceback_later()
    outcome, reason = _worst[nodeid]
    _write(event="end", test=nodeid, outcome=outcome, reason=reason)


def pytest_sessionfinish() -> None:
    _write(event="finished")


def _reason(report) -> str:
    """The last line that describes the error, or the reason and the place of a skip."""
    told = report.longrepr
    if isinstance(told, tuple):
        return told[2]
    crash = getattr(told, "reprcrash", None)
    if crash is None:
        lines = [line for line in str(told).splitlines() if line.strip()]
        errors = [
            line for line in lines if line.startswith("E ")
        ] or lines  # a missing fixture ends with its place
        return errors[-1].removeprefix("E").strip() if errors else ""
    path, line = crash.path, crash.lineno
    if path.endswith("multiprocessing/pool.py"):  # what a worker raised: its own stack is part of the text
        path, line = (re.findall(r'File "([^"<]+)", line (\d+)', str(told)) or [(path, line)])[-1]
    place = "/".join(Path(path).parts[-3:])
    return f"{crash.message.splitlines()[0] if crash.message else ''} ({place}:{line})"
