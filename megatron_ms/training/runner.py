"""Runs a training: records what it prints, shows a line of progress, and tells why it failed."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

from ..convert.steps import end
from . import lines
from .folder import RunFolder, fsynced_line

_KEPT = 400  # lines that are searched for the reason of a failure
FAILED = 1


class Progress:
    """The line of progress: rewritten on a terminal, one line for each record in a log."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.live = stream.isatty()
        self.first: tuple[int, float] | None = None
        self.open = False

    def show(self, record: Mapping[str, Any], now: float) -> None:
        """Shows a record that arrived at `now`."""
        number, last = record["iteration"], record.get("of")
        if last is None:
            self._write(f"  {record['set']} at {number}: " + _pairs(record))
            self._end()
            return
        if self.first is None:
            self.first = (number, now)
        began, since = self.first
        pace = (now - since) / (number - began) if number > began else record.get("milliseconds", 0.0) / 1e3
        loss = lines.loss_of(dict(record))
        parts = [f"{number}/{last}", "no loss (skipped)" if loss is None else f"loss {loss:.4f}"]
        if "learning rate" in record:
            parts.append(f"lr {record['learning rate']:.3g}")
        if "grad norm" in record:
            parts.append(f"norm {record['grad norm']:.3f}")
        parts += [f"{pace:.2f} s/step", f"{_clock(pace * (last - number))} left"]
        self._write("  " + "  ".join(parts))

    def close(self) -> None:
        if self.open:
            self._end()

    def _write(self, text: str) -> None:
        if self.live:
            self.stream.write("\r\033[K" + text[: os.get_terminal_size(self.stream.fileno()).columns - 1])
            self.open = True
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def _end(self) -> None:
        if self.live:
            self.stream.write("\n")
            self.stream.flush()
        self.open = False


def _pairs(record: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:.4g}" for name, value in record.items() if isinstance(value, float))


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"


def run(
    words: Sequence[str],
    environment: Mapping[str, str],
    folder: RunFolder,
    about: Mapping[str, Any],
) -> int:
    """Runs the command in the caller's folder and returns 0, or 1 if it failed.

    about: what status.json says beside state, numbers and times.
    """
    status: dict[str, Any] = {**about, "state": "running", "started": time.time(), "log": str(folder.log)}
    folder.write_status(status)
    progress, kept = Progress(sys.stdout), collections.deque[str](maxlen=_KEPT)
    try:
        with (
            open(folder.log, "a", encoding="utf-8") as log,
            open(folder.losses, "a", encoding="utf-8") as losses,
        ):
            code = _follow(words, environment, log, losses, progress, kept, status, folder)
    except BaseException as error:
        progress.close()
        stopped = isinstance(error, KeyboardInterrupt)
        folder.write_status(status | {"state": "stopped" if stopped else "failed", "ended": time.time()})
        raise
    progress.close()
    fault = _fault(code, status)
    state = "failed" if fault else "done"
    folder.write_status(status | {"state": state, "ended": time.time(), "exit_code": code})
    if fault:
        shown = "\n".join("    " + line for line in lines.last_errors(list(kept)))
        print(f"{fault}\n{shown}\n  The whole output: {folder.log}", file=sys.stderr)
        return FAILED
    return 0


def _fault(code: int, status: Mapping[str, Any]) -> str:
    """What is wrong with a run that has ended; "" if nothing is."""
    if code < 0:
        return f"the training was ended by signal {-code}:"
    if code:
        return f"the training ended with exit code {code}:"
    return "" if "iteration" in status else "the training ended without a loss:"


def _follow(
    words: Sequence[str],
    environment: Mapping[str, str],
    log: TextIO,
    losses: TextIO,
    progress: Progress,
    kept: collections.deque[str],
    status: dict[str, Any],
    folder: RunFolder,
) -> int:
    """Runs the child and records its lines as they come. A child that is running when an error occurs here is ended."""
    log.write("$ " + json.dumps(list(words)) + "\n")
    with subprocess.Popen(
        list(words),
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as child:
        try:
            for line in child.stdout or ():
                log.write(line)
                log.flush()
                kept.append(line)
                found = lines.record(line)
                if found is None:
                    continue
                now = time.time()
                fsynced_line(losses, found | {"time": now})
                progress.show(found, now)
                if "of" in found:
                    status |= {
                        "iteration": found["iteration"],
                        "iterations": found["of"],
                        "loss": lines.loss_of(found),
                    }
                    folder.write_status(status)
            return child.wait()
        except BaseException:
            end(child)
            raise
