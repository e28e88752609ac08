"""A pytest plugin for mutation testing: writes the seconds of every test, and marks pytest's own process."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from pathlib import Path

_seconds: dict[str, float] = defaultdict(float)


def pytest_configure():
    os.environ["MSADAPTER_MUTATE_PID"] = str(os.getpid())


def pytest_runtest_logreport(report):
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish():
    Path(os.environ["MSADAPTER_MUTATE_TIMES"]).write_text(json.dumps(_seconds))
