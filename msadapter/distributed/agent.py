"""Starts the ranks of one machine, watches them, and leaves none behind.

The agent of node 0 keeps the job's TCPStore; the agents meet in it, number the ranks, tell each other of failures
and restart together. A rank runs in a session of its own, so that its children end with it, and dies with its agent.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta

from .errors import DistError
from .guard import Guard
from .tcp_store import TCPStore

_GRACE = 5.0  # seconds between SIGTERM and SIGKILL for the ranks beside one that has failed
_GOODBYE = 30.0  # and for all ranks when the job itself is asked to end: a checkpoint may have to be written
_PR_SET_PDEATHSIG = 1
LOCAL_RANK_ARGUMENT = "--local-rank={local_rank}"  # in a command: each rank gets its own number here
_libc = ctypes.CDLL(None)


@dataclass
class Job:
    """What the command line asks for."""

    command: list
    local_size: int = 1
    nodes: int = 1
    node_rank: int | None = 0
    host: str = "127.0.0.1"
    port: int = 0
    run_id: str = "none"
    role: str = "default"
    max_restarts: int = 0
    interval: float = 0.1
    log_dir: str | None = None
    log_name: str | None = None
    redirects: dict = field(default_factory=dict)
    tee: dict = field(default_factory=dict)
    shown: set | None = None
    join_timeout: float = 600.0


@dataclass
class _Rank:
    """A running rank and the threads that copy what it prints."""

    number: int
    local: int
    process: subprocess.Popen
    copies: list
    started: float


class RankFailed(Exception):
    """A rank has ended with an error; `code` is its exit code, 128 + n for signal n."""

    def __init__(self, rank: _Rank, job: Job):
        status = rank.process.returncode
        self.code = status if status > 0 else 128 - status
        ended = f"exit code {status}" if status > 0 else f"signal {signal.Signals(-status).name}"
        super().__init__(f"rank {rank.number} (local rank {rank.local}, pid {rank.process.pid}) of "
                         f"{' '.join(job.command[:6])} ended with {ended} after {time.time() - rank.started:.1f} s")


class _Stopped(Exception):
    """A signal asks the agent to end."""


class Agent:
    """Runs a Job on this machine; `run` returns the exit code."""

    def __init__(self, job: Job):
        self.job, self.ranks, self.store = job, [], None
        self.attempt = 0
        self._last_look = 0.0

    def run(self) -> int:
        """Start, watch and, while restarts are left, start again."""
        handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
        self.guard = Guard()  # before there are threads: it is a fork
        before = {number: signal.signal(number, self._stop) for number in handled}
        try:
            self._meet()
            while True:
                try:
                    self._start()
                    self._watch()
                    self._agree_on_end()
                    return 0
                except RankFailed as failure:
                    self._end_ranks()
                    if not self._again(failure):
                        print(f"torchrun: {failure}", file=sys.stderr, flush=True)
                        return failure.code
        except _Stopped as stop:
            print(f"torchrun: received {stop.args[0]}, ending the ranks", file=sys.stderr, flush=True)
            for number in handled:  # a second signal does not wait
                signal.signal(number, signal.SIG_DFL)
            self._end_ranks(_GOODBYE)
            return 128 + stop.args[1]
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._end_ranks()
            self.guard.close()

    def _stop(self, number, frame):
        raise _Stopped(signal.Signals(number).name, number)

    # -- agents ---------------------------------------------------------------------------------------------
    def _meet(self):
        job, patience = self.job, timedelta(seconds=self.job.join_timeout)
        first = job.nodes == 1 or job.node_rank == 0
        if job.node_rank is None and job.nodes > 1:  # whoever can take the port is the first
            first = _is_local(job.host)
        try:
            self.store = TCPStore(job.host, job.port, is_master=first, timeout=patience)
        except DistError:
            if job.node_rank is not None or not first:
                raise
            self.store = TCPStore(job.host, job.port, timeout=patience)
        if job.node_rank is None:
            job.node_rank = self.store.add(f"agents/{job.run_id}/arrived", 1) - 1
        self._set(f"size/{job.node_rank}", job.local_size)
        sizes = [int(self.store.get(self._key(f"size/{node}"))) for node in range(job.nodes)]
        self.first_rank, self.world_size = sum(sizes[:job.node_rank]), sum(sizes)

    def _key(self, name):
        return f"agents/{self.job.run_id}/{name}"

    def _set(self, name, value):
        self.store.set(self._key(name), str(value))

    def _again(self, failure) -> bool:
        """After a failure here or elsewhere: whether all start again."""
        if isinstance(failure, _Elsewhere):
            self.attempt = failure.attempt
        else:
            self.attempt += 1
            with contextlib.suppress(DistError):  # node 0 may be gone; its end is noticed below
                self._set("attempt", self.attempt)
        if self.attempt > self.job.max_restarts:
            if self.job.nodes > 1 and not isinstance(failure, _Elsewhere):
                time.sleep(2 * self.job.interval + 1)  # the others still read the number of attempts in our store
            return False
        print(f"torchrun: {failure}; restart {self.attempt} of {self.job.max_restarts}", file=sys.stderr, flush=True)
        return True

    def _look_elsewhere(self):
        """Notice that another node has begun a new attempt, or that the store is gone."""
        if self.job.nodes == 1 or time.monotonic() - self._last_look < 1.0:
            return
        self._last_look = time.monotonic()
        try:
            known = self.store.check([self._key("attempt")])
            attempt = int(self.store.get(self._key("attempt"))) if known else 0
        except DistError as err:
            raise _Elsewhere(self.job.max_restarts + 1, f"the agent of node 0 is gone ({err})") from err
        if attempt > self.attempt:
            raise _Elsewhere(attempt, "a rank on another node has failed")

    def _agree_on_end(self):
        """Node 0's store lives until all nodes have ended."""
        if self.job.nodes == 1:
            return
        self._set(f"end/{self.attempt}/{self.job.node_rank}", 1)
        while not self.store.check([self._key(f"end/{self.attempt}/{node}") for node in range(self.job.nodes)]):
            self._look_elsewhere()
            time.sleep(self.job.interval)
        byes = [self._key(f"bye/{node}") for node in range(1, self.job.nodes)]
        if self.job.node_rank:
            with contextlib.suppress(DistError):  # all have ended well: node 0 need not wait for this
                self._set(f"bye/{self.job.node_rank}", 1)
            return
        with contextlib.suppress(DistError):
            self.store.wait(byes, timedelta(seconds=10))

    # -- ranks ----------------------------------------------------------------------------------------------
    def _environment(self, local: int) -> dict:
        job, rank, size = self.job, self.first_rank + local, self.world_size
        environment = dict(os.environ)
        environment.setdefault("OMP_NUM_THREADS", "1") if job.local_size > 1 else None
        environment.update({
            "RANK": rank, "LOCAL_RANK": local, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": job.local_size,
            "GROUP_RANK": job.node_rank, "GROUP_WORLD_SIZE": job.nodes, "ROLE_RANK": rank, "ROLE_WORLD_SIZE": size,
            "ROLE_NAME": job.role, "MASTER_ADDR": job.host, "MASTER_PORT": self.store.port,
            "TORCHELASTIC_RESTART_COUNT": self.attempt, "TORCHELASTIC_MAX_RESTARTS": job.max_restarts,
            "TORCHELASTIC_RUN_ID": job.run_id, "TORCHELASTIC_USE_AGENT_STORE": True,
        })
        return {key: str(value) for key, value in environment.items()}

    def _start(self):
        self.ranks = []
        agent = os.getpid()

        def die_with_agent():
            _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != agent:  # it died before the line above
                os._exit(1)

        for local in range(self.job.local_size):
            outputs = [self._output(local, stream) for stream in (1, 2)]
            command = [f"--local-rank={local}" if word == LOCAL_RANK_ARGUMENT else word for word in self.job.command]
            process = subprocess.Popen(
                command, env=self._environment(local), start_new_session=True, preexec_fn=die_with_agent,
                stdout=outputs[0][0], stderr=outputs[1][0],
            )
            self.guard.watch(process.pid)
            copies = []
            for (kind, copy), stream in zip(outputs, (process.stdout, process.stderr), strict=True):
                if kind == subprocess.PIPE:
                    copies.append(threading.Thread(target=copy, args=(stream,), daemon=True))
                    copies[-1].start()
                elif copy is not None:
                    copy.close()
            self.ranks.append(_Rank(self.first_rank + local, local, process, copies, time.time()))

    def _output(self, local, stream):
        """(what Popen gets for stdout (1) or stderr (2), how it is copied)."""
        job, console = self.job, (sys.stdout, sys.stderr)[stream - 1]
        shown = job.shown is None or local in job.shown
        tee = bool(job.tee.get(local, 0) & stream)
        file = None
        if tee or job.redirects.get(local, 0) & stream:
            file = open(self._log_path(local, stream), "ab", buffering=0)  # noqa: SIM115  closed by who copies
            if not tee:
                return file, file
        if not tee and shown:
            return None, None
        if not tee:
            return subprocess.DEVNULL, None
        prefix = f"[{job.role}{self.first_rank + local}]:".encode()

        def copy(pipe):
            with file, pipe:
                for line in pipe:
                    file.write(line)
                    if shown:
                        console.buffer.write(prefix + line)
                        console.flush()

        return subprocess.PIPE, copy

    def _log_path(self, local, stream):
        job = self.job
        if job.log_name is not None:
            os.makedirs(job.log_dir, exist_ok=True)
            return os.path.join(job.log_dir, job.log_name.format(rank=self.first_rank + local))
        folder = os.path.join(job.log_dir, job.run_id, f"attempt_{self.attempt}", str(local))
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, ("stdout.log", "stderr.log")[stream - 1])

    def _watch(self):
        """Return when all ranks have ended well; RankFailed when one has not."""
        running = list(self.ranks)
        while running:
            for rank in list(running):
                status = rank.process.poll()
                if status is not None and status != 0:
                    raise RankFailed(rank, self.job)
                if status == 0:
                    running.remove(rank)
            self._look_elsewhere()
            if running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running[0].process.wait(self.job.interval)
        for rank in self.ranks:
            for copy in rank.copies:
                copy.join(1.0)
            _signal_session(rank, signal.SIGKILL)  # what a rank started ends with it

    def _end_ranks(self, grace: float = _GRACE):
        """SIGTERM, a while later SIGKILL, to the ranks and all that they have started."""
        ranks, self.ranks = self.ranks, []
        for rank in ranks:
            if rank.process.poll() is None:
                _signal_session(rank, signal.SIGTERM)
                _signal_session(rank, signal.SIGCONT)  # a stopped one would not hear it
        end = time.monotonic() + grace
        for rank in ranks:
            with contextlib.suppress(subprocess.TimeoutExpired):
                rank.process.wait(max(end - time.monotonic(), 0.01))
        for rank in ranks:
            _signal_session(rank, signal.SIGKILL)
            rank.process.wait()
            self.guard.forget(rank.process.pid)
            for copy in rank.copies:
                copy.join(1.0)


class _Elsewhere(RankFailed):
    """The failure was noticed by another agent."""

    def __init__(self, attempt: int, what: str):
        Exception.__init__(self, what)
        self.attempt, self.code = attempt, 1


def _signal_session(rank, number):
    # the session lives as long as one of its processes, also after the rank itself
    with contextlib.suppress(ProcessLookupError):
        os.killpg(rank.process.pid, number)


def _is_local(host: str) -> bool:
    import socket

    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((socket.gethostbyname(host), 0))
        return True
    except OSError:
        return False
