"""Where the output of the workers of a job goes, and the exception of a launcher that a signal ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import IntFlag

__all__ = ["DefaultLogsSpecs", "LogsDest", "LogsSpecs", "SignalException", "Std", "to_map"]

_ONE = r"[0123]"
_OF_RANKS = r"(\d:[0123],)*(\d:[0123])"


class SignalException(Exception):
    """A signal, ``sigval``, told the launcher to end."""

    def __init__(self, msg: str, sigval: signal.Signals):
        super().__init__(msg)
        self.sigval = sigval


class Std(IntFlag):
    """Standard streams of a worker: none, its output, its errors, or both."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """``"3"`` is `Std.ALL`; ``"0:3,1:0"`` is {0: `Std.ALL`, 1: `Std.NONE`}, by local ranks of one digit.

        Raises:
            ValueError: `vm` is neither.
        """
        if re.fullmatch(_ONE, vm):
            return cls(int(vm))
        if re.fullmatch(_OF_RANKS, vm):
            return {int(part[0]): cls(int(part[2])) for part in vm.split(",")}
        raise ValueError(f"{vm} does not match: <^{_ONE}$> or <^{_OF_RANKS}$>")


def to_map(val_or_map: Std | dict[int, Std], local_world_size: int) -> dict[int, Std]:
    """The streams of each local rank. One value is meant for all ranks; a rank that a dict leaves out has none."""
    if isinstance(val_or_map, Std):
        return dict.fromkeys(range(local_world_size), val_or_map)
    return {rank: val_or_map.get(rank, Std.NONE) for rank in range(local_world_size)}


@dataclass
class LogsDest:
    """The paths of the log files by local rank. An empty path in `stdouts` or `stderrs` is the launcher's own stream.

    tee_stdouts, tee_stderrs: files whose lines are shown too. filtered_stdout, filtered_stderr: one file for all ranks,
    which a launcher with filters of lines writes.
    """

    stdouts: dict[int, str] = field(default_factory=dict)
    stderrs: dict[int, str] = field(default_factory=dict)
    tee_stdouts: dict[int, str] = field(default_factory=dict)
    tee_stderrs: dict[int, str] = field(default_factory=dict)
    error_files: dict[int, str] = field(default_factory=dict)
    filtered_stdout: str = ""
    filtered_stderr: str = ""


class LogsSpecs(ABC):
    """Says which streams go to files, and where the files are.

    log_dir: the folder of the files.
    redirects: the streams that go to files, for all ranks or by local rank.
    tee: the streams that go to files and are shown too.
    local_ranks_filter: the local ranks whose streams are shown; None for all.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ):
        self._root_log_dir = log_dir
        self._redirects, self._tee, self._local_ranks_filter = redirects, tee, local_ranks_filter

    @abstractmethod
    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The paths for workers with these variables of the environment, by local rank.

        It adds TORCHELASTIC_ERROR_FILE to the variables of each worker.
        """

    @property
    @abstractmethod
    def root_log_dir(self) -> str:
        """The folder of the files."""


class DefaultLogsSpecs(LogsSpecs):
    """A folder for each start of the workers, and in it one for each local rank.

    A folder that is missing is made. Without `log_dir` it is a new temporary folder, which stays; with `os.devnull` there are
    no files.

    Raises:
        NotADirectoryError: `log_dir` is a file.
    """

    def __init__(
        self,
        log_dir: str | None = None,
        redirects: Std | dict[int, Std] = Std.NONE,
        tee: Std | dict[int, Std] = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ):
        if log_dir != os.devnull:
            log_dir = log_dir or tempfile.mkdtemp(prefix="torchelastic_")
            if os.path.isfile(log_dir):
                raise NotADirectoryError(f"log_dir: {log_dir} is a file")
            os.makedirs(log_dir, exist_ok=True)
        super().__init__(log_dir, redirects, tee, local_ranks_filter)
        self._run_log_dir: str | None = None  # of one job, made when its workers start first

    @property
    def root_log_dir(self) -> str:
        """The folder of all jobs."""
        return str(self._root_log_dir)

    def reify(self, envs: dict[int, dict[str, str]]) -> LogsDest:
        """The paths: ``LOG_DIR/RUN_ID_*/attempt_N/LOCAL_RANK/{stdout.log,stderr.log,error.json}``."""
        first = envs.get(0, {})
        folder = self._attempt(
            first.get("TORCHELASTIC_RUN_ID", "test_run_id"), first.get("TORCHELASTIC_RESTART_COUNT", "0")
        )
        size = len(envs)
        dest = LogsDest(
            filtered_stdout=os.path.join(folder, "filtered_stdout.log"),
            filtered_stderr=os.path.join(folder, "filtered_stderr.log"),
        )
        redirects, tees = to_map(self._redirects, size), to_map(self._tee, size)
        for rank in range(size):
            self._of_rank(rank, folder, redirects[rank], tees[rank], dest)
            envs[rank]["TORCHELASTIC_ERROR_FILE"] = "" if folder == os.devnull else dest.error_files[rank]
        return dest

    def _attempt(self, run_id: str, restart: str) -> str:
        """A new folder for one start of the workers, or `os.devnull`."""
        if self._root_log_dir == os.devnull:
            return os.devnull
        if self._run_log_dir is None:
            self._run_log_dir = tempfile.mkdtemp(prefix=f"{run_id}_", dir=self._root_log_dir)
        folder = os.path.join(self._run_log_dir, f"attempt_{restart}")
        shutil.rmtree(folder, ignore_errors=True)  # of this job alone, whose folder is new
        os.makedirs(folder)
        return folder

    def _of_rank(self, rank: int, folder: str, redirected: Std, shown_too: Std, dest: LogsDest) -> None:
        """Write a rank's paths into `dest`."""
        shown = not self._local_ranks_filter or rank in self._local_ranks_filter
        if folder == os.devnull:
            dest.stdouts[rank] = dest.stderrs[rank] = ""
            dest.tee_stdouts[rank] = dest.tee_stderrs[rank] = dest.error_files[rank] = os.devnull
            return
        own = os.path.join(folder, str(rank))
        os.mkdir(own)
        dest.error_files[rank] = os.path.join(own, "error.json")
        for stream, name, paths, tees in (
            (Std.OUT, "stdout.log", dest.stdouts, dest.tee_stdouts),
            (Std.ERR, "stderr.log", dest.stderrs, dest.tee_stderrs),
        ):
            to_file = stream in redirected | shown_too
            paths[rank] = os.path.join(own, name) if to_file else "" if shown else os.devnull
            if stream in shown_too and shown:
                tees[rank] = paths[rank]

    def __repr__(self) -> str:
        return (
            f"DefaultLogsSpecs(root_log_dir={self._root_log_dir}, redirects={self._redirects}, tee={self._tee}, "
            f"local_ranks_filter={self._local_ranks_filter})"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DefaultLogsSpecs):
            return False
        mine, theirs = (
            (specs._root_log_dir, specs._redirects, specs._tee, specs._local_ranks_filter)
            for specs in (self, other)
        )
        return mine == theirs

    __hash__ = None  # as in every class with an __eq__ alone
