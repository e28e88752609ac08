"""Runs a training: records what it prints, shows a line of progress, and tells why it failed."""

from __future__ import annotations

import collections
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from ..convert.steps import end
from ..recovery.supervisor import Supervisor, Verdict
from . import lines
from .folder import RunFolder, fsynced_line

_RANK_ENDED = re.compile(r"torchrun: rank (\d+) .* ended (with .*)")  # what the launcher says
_KEPT = 400  # lines that are searched for the reason of a failure


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
    start: Callable[[Path], Sequence[str]],
    environment: Mapping[str, str],
    folder: RunFolder,
    about: Mapping[str, Any],
    supervisor: Supervisor,
) -> int:
    """Runs the command in the caller's folder, again after a failure if the supervisor says so, and returns the exit code.

    start: returns the words of the command for the folder of an attempt. about: what status.json says beside state, numbers
    and times.
    """
    status: dict[str, Any] = {**about, "state": "running", "started": time.time(), "log": str(folder.log)}
    folder.write_status(status)
    try:
        with supervisor.signals():
            return _attempts(start, environment, folder, status, supervisor)
    finally:
        supervisor.close()


def _attempts(
    start: Callable[[Path], Sequence[str]],
    environment: Mapping[str, str],
    folder: RunFolder,
    status: dict[str, Any],
    supervisor: Supervisor,
) -> int:
    while True:
        progress, kept = Progress(sys.stdout), collections.deque[str](maxlen=_KEPT)
        try:
            with (
                open(folder.log, "a", encoding="utf-8") as log,
                open(folder.losses, "a", encoding="utf-8") as losses,
            ):
                words = start(supervisor.begin())
                code = _follow(words, environment, log, losses, progress, kept, status, folder, supervisor)
            verdict = supervisor.after(code, _cause(kept) if code > 0 else _fault(code, status).rstrip(":"))
            if verdict.code is None:
                progress.close()
                print(verdict.text, file=sys.stderr, flush=True)
                if (ended := supervisor.rest(verdict.pause)) is None:
                    continue
                verdict = ended
        except BaseException as error:
            progress.close()
            stopped = isinstance(error, KeyboardInterrupt)
            folder.write_status(status | {"state": "stopped" if stopped else "failed", "ended": time.time()})
            raise
        progress.close()
        return _ended(code, verdict, status, kept, folder, bool(supervisor.asked))


def _ended(
    code: int,
    verdict: Verdict,
    status: dict[str, Any],
    kept: collections.deque[str],
    folder: RunFolder,
    asked: bool,
) -> int:
    """Writes and shows how the run has ended."""
    state = "stopped" if asked else "failed" if verdict.code else "done"
    told = {"reason": verdict.text} if verdict.text else {}
    folder.write_status(status | {"state": state, "ended": time.time(), "exit_code": code, **told})
    if verdict.code and not asked:
        shown = "\n".join("    " + line for line in lines.last_errors(list(kept)))
        print(f"{_fault(code, status) or 'the training was stopped:'}\n{shown}", file=sys.stderr)
        for said in lines.advice(kept):
            print(f"  {said}", file=sys.stderr)
        print(f"  The whole output: {folder.log}", file=sys.stderr)
    if verdict.text:
        print(verdict.text, file=sys.stderr)
    return verdict.code or 0


def _cause(kept: collections.deque[str]) -> str:
    """What the launcher has said of the rank that failed first, else that the program failed."""
    said = [found for line in kept if (found := _RANK_ENDED.match(line))]
    return f"rank {said[-1][1]} ended {said[-1][2]}" if said else "the program failed"


def _fault(code: int, status: Mapping[str, Any]) -> str:
    """What is wrong with a run that has ended; "" if nothing is."""
    if code < 0:
        return f"the training was ended by signal {-code}:"
    if code:
        return f"the training ended with exit code {code}:"
    if status.get("machines", 1) > 1:
        return ""  # the last one prints the losses
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
    supervisor: Supervisor,
) -> int:
    """Runs the child and records its lines as they come. A child that is running when an error occurs here is ended."""
    log.write("$ " + json.dumps(list(words)) + "\n")
    with (
        subprocess.Popen(
            list(words),
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as child,
        supervisor.watching(child),
    ):
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
