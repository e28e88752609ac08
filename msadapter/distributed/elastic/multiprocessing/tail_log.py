"""Prints the lines of log files while other processes write them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from typing import TextIO

__all__ = ["TailLog", "tail_logfile"]

logger = logging.getLogger(__name__)


def tail_logfile(
    header: str,
    file: str,
    dst: TextIO,
    finished: Event,
    interval_sec: float,
    log_line_filter: Callable[[str], bool] | None = None,
) -> None:
    """Write the lines of a file to `dst`, each with the header in front, until `finished` is set and the file is read.

    The file need not exist yet. It is looked at every `interval_sec` seconds. As in PyTorch, no line is written
    without a filter.
    """
    while not os.path.exists(file):
        if finished.is_set():
            return
        time.sleep(interval_sec)
    with open(file, errors="replace") as stream:
        while True:
            line = stream.readline()
            if line:
                if log_line_filter and log_line_filter(line):
                    dst.write(f"{header}{line}")
            elif finished.is_set():
                return
            else:
                time.sleep(interval_sec)


def _every_line(line: str) -> bool:
    return True


class TailLog:
    """Prints the lines of several files with a thread for each, from `start` to `stop`.

    name: the lines of file 3 begin with ``[name3]:``, unless `log_line_prefixes` has another text for it.
    log_files: number of a rank -> path of its file, which need not exist yet.
    dst: the stream that receives the lines.
    interval_sec: seconds between two looks at a file that has nothing new.
    log_line_filter: tells whether a line is printed.
    """

    def __init__(
        self,
        name: str,
        log_files: dict[int, str],
        dst: TextIO,
        log_line_prefixes: dict[int, str] | None = None,
        interval_sec: float = 0.1,
        log_line_filter: Callable[[str], bool] = _every_line,
    ):
        self._name, self._dst, self._log_files = name, dst, log_files
        self._log_line_prefixes = log_line_prefixes or {}
        self._interval_sec, self._log_line_filter = interval_sec, log_line_filter
        self._finished = Event()
        self._futs: list[Future] = []
        self._threadpool = ThreadPoolExecutor(len(log_files)) if log_files else None
        self._stopped = False

    def start(self) -> TailLog:
        """Begin to read the files."""
        if self._threadpool is None or not self._dst:
            return self
        for rank, file in self._log_files.items():
            header = self._log_line_prefixes.get(rank, f"[{self._name}{rank}]:")
            rest = (file, self._dst, self._finished, self._interval_sec, self._log_line_filter)
            self._futs.append(self._threadpool.submit(tail_logfile, header, *rest))
        return self

    def stop(self) -> None:
        """Print what the files still have, and end the threads. The error of a thread is logged."""
        self._finished.set()
        for rank, future in zip(self._log_files, self._futs, strict=False):
            if error := future.exception():
                logger.error("the log of %s%s could not be followed", self._name, rank, exc_info=error)
        if self._threadpool is not None:
            self._threadpool.shutdown(wait=True)
        self._stopped = True

    def stopped(self) -> bool:
        """Whether `stop` was called."""
        return self._stopped
