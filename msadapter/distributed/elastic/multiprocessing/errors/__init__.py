"""Writes the error of a worker to a file, and reports the failures of workers in the launcher.

``record`` wraps the entry point of a worker. An exception is written as JSON to the file that the environment variable
TORCHELASTIC_ERROR_FILE names, and then raised again.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import signal
import socket
import time
from dataclasses import dataclass, field
from datetime import datetime

from .error_handler import ErrorHandler
from .handlers import get_error_handler

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_NOT_AVAILABLE = "<N/A>"
_NO_DATA = "<NONE>"  # the message where there is no error file
_HINT = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


logger = logging.getLogger(__name__)


@dataclass
class ProcessFailure:
    """A failed process, described by its error file or, if it has none, by its exit code."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict = field(init=False)
    message: object = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self):
        self.error_file_data = {"message": _NO_DATA}
        if os.path.isfile(self.error_file):
            self._read()
        else:
            self.error_file, self.message, self.timestamp = _NOT_AVAILABLE, "", int(time.time())
        if self.message != "":
            return
        if self.exitcode < 0:
            self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        else:
            traits = {"category": "system_terminated_error", "retryability": "False"}
            self.error_file_data["errorTraits"] = traits
            self.message = _HINT

    def _read(self) -> None:
        """Read the error file. Its message is a text, or a dict that `ErrorHandler` has written."""
        try:
            with open(self.error_file) as stream:
                self.error_file_data = json.load(stream)
            self.message = self.error_file_data["message"]
            text = isinstance(self.message, str)
            place = self.error_file_data if text else self.message.get("extraInfo", {})
            self.timestamp = int(place.get("timestamp", 0))
        except Exception:
            logger.exception("the error file %s cannot be read", self.error_file)
            raise

    def signal_name(self) -> str:
        """The name of the signal that terminated the process."""
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:  # a signal without a name, or an exit code
            return _NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        """When it failed, in the time zone of this machine: ``2026-01-31_23:59:59``."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Workers failed. ``failures`` is {rank: ProcessFailure}; the message describes all of them and the first one."""

    def __init__(self, name: str, failures: dict[int, ProcessFailure]):
        self.name, self.failures = name, failures
        if not failures:
            raise AssertionError("there must be a failure")
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The (rank, failure) of the earliest failure."""
        rank = min(self.failures, key=lambda r: self.failures[r].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """The report."""
        title, (first, _) = f"{self.name} FAILED", self.get_first_failure()
        texts = {rank: self._text(i, rank) for i, rank in enumerate(self.failures)}
        others = [text for rank, text in texts.items() if rank != first] or ["  <NO_OTHER_FAILURES>"]
        lines = [title, *(line for text in texts.values() for line in text.split("\n"))]
        width = min(60, max(map(len, lines)))
        edge, line = boarder_delim * width, section_delim * width
        root = ["Root Cause (first observed failure):", texts[first]]
        return "\n".join(["", edge, title, line, "Failures:", *others, line, *root, edge])

    def _text(self, index: int, rank: int) -> str:
        failure = self.failures[rank]
        message = failure.message
        if isinstance(message, dict):
            message = message.get("extraInfo", {}).get("py_callstack", message.get("message", _NOT_AVAILABLE))
        signalled = f" ({failure.signal_name()})" if failure.exitcode < 0 else ""
        rows = {
            "time": failure.timestamp_isoformat(),
            "host": socket.getfqdn(),
            "rank": f"{rank} (local_rank: {failure.local_rank})",
            "exitcode": f"{failure.exitcode} (pid: {failure.pid}) {signalled}",
            "error_file": failure.error_file,
            "traceback": str(message).replace("\n", "\n  "),
        }
        return "\n".join([f"[{index}]:", *(f"  {name:<10}: {value}" for name, value in rows.items())])


def record(fn, error_handler: ErrorHandler | None = None):
    """Wraps an entry point so that its error is written to the error file. A launcher writes the first worker's error."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as e:  # a regular exit is not an error
            if e.code == 0:
                return None
            raise
        except ChildFailedError as e:
            _, failure = e.get_first_failure()
            if failure.error_file != _NOT_AVAILABLE:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as e:
            handler.record_exception(e)
            raise

    return wrapper
