"""An agent whose ranks are processes of a function, or programs, with the files that a `LogsSpecs` names."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from string import Template
from typing import IO, Any

from ..agent import Agent, Job, die_with
from ..elastic.multiprocessing import LogsDest
from ..elastic.multiprocessing.errors import record
from ..elastic.multiprocessing.redirects import redirect
from ..elastic.multiprocessing.tail_log import TailLog
from ..elastic.utils.api import macros


class WorkersAgent(Agent):
    """Starts `entrypoint` with `args` on the ranks of this machine. As a context manager it removes its temporary files.

    dest: the files of the ranks, since their last start.
    """

    def __init__(self, job: Job, config, entrypoint: Callable | str, args: list[Any]):
        super().__init__(job)
        self.config, self.entrypoint, self.args = config, entrypoint, args
        self.dest = LogsDest()
        self._shown = contextlib.ExitStack()  # the threads that show lines of files

    def __enter__(self) -> WorkersAgent:
        self._folder = tempfile.mkdtemp(prefix="msadapter_results_")  # nobody else can read or write it
        return self

    def __exit__(self, *error) -> None:
        self._shown.close()
        shutil.rmtree(self._folder)

    def results(self) -> dict[int, Any]:
        """{rank: what its function has returned} after a successful run; None for a command."""
        first = self.round.first_rank
        return {first + local: self._result(local) for local in range(self.job.local_size)}

    def _result(self, local: int) -> Any:
        if isinstance(self.entrypoint, str):
            return None
        with open(self._place(local), "rb") as stream:
            return pickle.load(stream)  # noqa: S301  this program's own process has written it

    def _place(self, local: int) -> str:
        return os.path.join(self._folder, str(local))

    def _start(self) -> None:
        self.ranks = []
        self._shown.close()
        environments = {local: self._environment(local) for local in range(self.job.local_size)}
        self.dest = self.config.logs_specs.reify(environments)
        start = self._command if isinstance(self.entrypoint, str) else self._function
        for local, environment in environments.items():
            args = macros.substitute(self.args, str(local))
            files = self.dest.stdouts[local], self.dest.stderrs[local]
            self._add(local, start(local, args, environment, files), [])
        self._show()

    def _command(self, local, args, environment, files) -> subprocess.Popen:
        with contextlib.ExitStack() as opened:
            out, err = (opened.enter_context(open(path, "wb")) if path else None for path in files)
            command = [self.entrypoint, *map(str, args)]
            return self._program(local, environment, out, err, command)

    def _function(self, local, args, environment, files) -> _Process:
        method = self.config.start_method
        forked = method == "fork"
        process = multiprocessing.get_context(method).Process(
            target=_call,
            args=(
                self.entrypoint,
                args,
                environment,
                files,
                self._place(local),
                None if method == "forkserver" else os.getpid(),  # there the server is the parent
                self.guard.descriptor if forked else None,
            ),
        )
        with _signals_wait() if forked else contextlib.nullcontext():
            process.start()
        return _Process(process)

    # -- shown and filtered lines ---------------------------------------------------------------------------
    def _show(self) -> None:
        dest, config = self.dest, self.config
        for console, tees, files, texts, filtered in (
            (
                sys.stdout,
                dest.tee_stdouts,
                dest.stdouts,
                config.duplicate_stdout_filters,
                dest.filtered_stdout,
            ),
            (
                sys.stderr,
                dest.tee_stderrs,
                dest.stderrs,
                config.duplicate_stderr_filters,
                dest.filtered_stderr,
            ),
        ):
            self._follow(tees, console, None)
            if texts:
                file = open(filtered, "w", encoding="utf-8")  # noqa: SIM115  closed after its thread
                self._follow(files, self._shown.enter_context(file), texts)

    def _follow(self, files: dict[int, str], to: IO, texts: list[str] | None) -> None:
        files = {local: path for local, path in files.items() if path not in ("", os.devnull)}
        wanted = (
            {} if texts is None else {"log_line_filter": lambda line: any(text in line for text in texts)}
        )
        log = TailLog(self.job.role, files, to, self._prefixes(files), **wanted)
        self._shown.callback(log.stop)
        log.start()

    def _prefixes(self, files: dict[int, str]) -> dict[int, str] | None:
        template = self.config.log_line_prefix_template
        if template is None:
            return None
        first, role = self.round.first_rank, self.job.role
        return {
            local: Template(template).safe_substitute(role_name=role, rank=first + local, local_rank=local)
            for local in files
        }


_SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)  # which the agent handles


@contextlib.contextmanager
def _signals_wait() -> Iterator[None]:
    """Blocks the agent's signals. A process that is forked meanwhile has them blocked until it has handlers of its own."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Process:
    """A process of multiprocessing with the methods of a Popen that the agent uses."""

    def __init__(self, process):
        self._process, self.pid = process, process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(self._process.name, timeout)
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        if self._process.exitcode is None:
            os.kill(self.pid, number)


def _call(entrypoint, args, environment, files, place, agent, inherited) -> None:
    """In the process of a rank: calls the function and writes its result to the file `place`.

    agent: its pid, if it is the parent of this process. inherited: the guard's pipe, which must not stay open here.
    """
    os.setsid()
    if inherited is not None:
        os.close(inherited)
    for number in (signal.SIGTERM, signal.SIGHUP):  # a forked process has the agent's handlers
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    if agent is not None:
        die_with(agent)
    os.environ.update(environment)
    with _redirected(files):
        result = record(_picklable)(entrypoint, args)
        with open(place, "wb") as stream:
            stream.write(result)


def _picklable(entrypoint, args) -> bytes:
    return pickle.dumps(entrypoint(*args))


@contextlib.contextmanager
def _redirected(files: tuple[str, str]) -> Iterator[None]:
    with contextlib.ExitStack() as streams:
        for std, path in zip(("stdout", "stderr"), files, strict=True):
            if path:
                streams.enter_context(redirect(std, path))
        yield
