"""Starts the ranks of one machine, monitors them, and makes sure that none keeps running.

The agents of several machines agree on rank numbers and restarts in meeting.py. Each rank runs in its own session, so that
its children are terminated with it. A rank is killed when its agent terminates.
"""

import contextlib
import ctypes
import functools
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field

from .errors import DistError
from .guard import Guard
from .meeting import Meeting, NewRound
from .wire import SECRET_VARIABLE, secret_of_environment

_GRACE = 5.0  # seconds between SIGTERM and SIGKILL for the other ranks after a failure, unless they have asked for more
_PR_SET_PDEATHSIG = 1
LOCAL_RANK_ARGUMENT = "--local-rank={local_rank}"  # in a command, replaced by each rank's local number
_libc = ctypes.CDLL(None)


@dataclass
class Job:
    """The settings of a job from the command line."""

    command: list
    local_size: int = 1
    nodes: int = 1  # maximum number of machines
    least_nodes: int = 1
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
    tee_prefix: bool = True  # print the rank before each line
    shown: set | None = None  # local ranks whose output is shown
    shown_ranks: set | None = None  # global ranks whose output is shown
    join_timeout: float = 600.0
    last_call: float = 30.0  # seconds to wait for more machines after the minimum has arrived
    goodbye: float = 30.0  # seconds between SIGTERM and SIGKILL when the launcher is told to end; ranks may write a checkpoint
    silence: float = 15.0  # seconds after which a silent launcher counts as lost; terminating ranks takes 5
    environment: dict = field(default_factory=dict)  # extra variables for all ranks
    copied_names: dict = field(
        default_factory=dict
    )  # names of extra variables -> torchrun's variables of which they are copies
    secret: bytes | None = None  # of the job, for its store (wire.py); None if it has none
    bind_cores: bool = False  # bind each rank to its share of this machine's cores


def timeouts_of(settings: dict, join: float = Job.join_timeout) -> dict:
    """The times of a Job, in seconds, that a rendezvous may be given. `join` is the default of the first."""
    return {
        "join_timeout": float(settings.get("join_timeout", join)),
        "last_call": float(settings.get("last_call_timeout", Job.last_call)),
        "silence": float(settings.get("keep_alive_timeout", Job.silence)),
    }


@dataclass
class _Rank:
    """A running rank and the threads that copy its output."""

    number: int
    local: int
    process: subprocess.Popen
    copies: list
    started: float


class RankFailed(Exception):
    """Ranks failed. `code` is the exit code of the first, or 128 + n for signal n."""

    def __init__(self, ranks: list[_Rank], job: Job):
        rank = ranks[0]
        self.ranks = ranks
        status = rank.process.returncode
        self.code = status if status > 0 else 128 - status
        ended = f"exit code {status}" if status > 0 else f"signal {signal.Signals(-status).name}"
        super().__init__(
            f"rank {rank.number} (local rank {rank.local}, pid {rank.process.pid}) of "
            f"{' '.join(job.command[:6])} ended with {ended} after {time.time() - rank.started:.1f} s"
        )


class Stopped(Exception):
    """The agent received the signal `number` to terminate."""

    def __init__(self, number: int):
        self.signal = signal.Signals(number)
        super().__init__(f"received {self.signal.name}")


class Agent:
    """Runs a Job on this machine; `run` returns the exit code, and `reason` is the exception behind one that is not 0."""

    def __init__(self, job: Job):
        self.job, self.ranks = job, []
        self.reason: Exception | None = None
        job.secret = job.secret or secret_of_environment()
        if job.nodes == 1:  # no process of another machine or of another user needs the store
            job.host = "127.0.0.1"
            job.secret = job.secret or secrets.token_hex(32).encode()
        self.meeting: Meeting | None = None
        self.round = None

    def run(self) -> int:
        """Starts and monitors the ranks; restarts them after a failure while restarts are left. Returns the exit code."""
        # Python lets no other thread handle signals.
        main = threading.current_thread() is threading.main_thread()
        handled = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP) if main else ()
        self.guard = Guard()  # before any threads exist, because it forks
        before = {number: signal.signal(number, self._stop) for number in handled}
        try:
            self.meeting = Meeting(self.job)
            while (code := self._one_round()) is None:
                pass
            return code
        except Stopped as stop:
            self.reason = stop
            self._say(f"{stop}, ending the ranks")
            for number in handled:  # a second signal terminates immediately
                signal.signal(number, signal.SIG_DFL)
            self._end_ranks(self.job.goodbye)
            if self.meeting is not None:
                self.meeting.leave(f"machine {self.job.node_rank} {stop}")
            return 128 + stop.signal
        except DistError as err:  # the store cannot be made or reached
            self.reason = err
            self._say(str(err))
            return 1
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            self._end_ranks()
            self.guard.close()

    def _one_round(self) -> int | None:
        """Runs all ranks once. Returns the job's exit code, or None if all ranks restart."""
        try:
            self.round = self.meeting.join()
            self._start()
            self._watch()
            self.meeting.agree_on_end()
            return 0
        except RankFailed as failure:
            self._end_ranks(self.meeting.patience_of_ranks() or _GRACE)
            if self.meeting.failed(str(failure)):
                self._say(
                    f"{failure}; restart {self.round.number + 1}, of failures at most {self.job.max_restarts}"
                )
                return None
            self.reason = failure
            self._say(str(failure))
            return failure.code
        except NewRound as reason:
            self._end_ranks()
            self._say(f"all ranks start again: {reason}")
            return None
        except RuntimeError as reason:
            self.reason = reason
            self._end_ranks()
            self._say(str(reason))
            return 1

    @staticmethod
    def _say(text):
        print(f"torchrun: {text}", file=sys.stderr, flush=True)

    def _stop(self, number, frame):
        raise Stopped(number)

    # -- ranks ----------------------------------------------------------------------------------------------
    def _environment(self, local: int) -> dict:
        job, size = self.job, self.round.world_size
        rank = self.round.first_rank + local
        environment = dict(os.environ)
        environment.setdefault("OMP_NUM_THREADS", "1") if job.local_size > 1 else None
        environment.update(
            {
                "RANK": rank,
                "LOCAL_RANK": local,
                "WORLD_SIZE": size,
                "LOCAL_WORLD_SIZE": job.local_size,
                "GROUP_RANK": self.round.place,
                "GROUP_WORLD_SIZE": self.round.nodes,
                "ROLE_RANK": rank,
                "ROLE_WORLD_SIZE": size,
                "ROLE_NAME": job.role,
                "MASTER_ADDR": job.host,
                "MASTER_PORT": self.meeting.store.port,
                "TORCHELASTIC_RESTART_COUNT": self.round.number,
                "TORCHELASTIC_MAX_RESTARTS": job.max_restarts,
                "TORCHELASTIC_RUN_ID": job.run_id,
                "TORCHELASTIC_USE_AGENT_STORE": True,
                **job.environment,
            }
        )
        if job.secret is not None:
            environment[SECRET_VARIABLE] = os.fsdecode(job.secret)
        environment.update({name: environment[known] for name, known in job.copied_names.items()})
        return {key: str(value) for key, value in environment.items()}

    def _start(self):
        self.ranks = []
        for local in range(self.job.local_size):
            outputs = [self._output(local, stream) for stream in (1, 2)]
            command = [
                f"--local-rank={local}" if word == LOCAL_RANK_ARGUMENT else word for word in self.job.command
            ]
            process = self._program(local, self._environment(local), outputs[0][0], outputs[1][0], command)
            copies = []
            for (kind, copy), stream in zip(outputs, (process.stdout, process.stderr), strict=True):
                if kind == subprocess.PIPE:
                    copies.append(threading.Thread(target=copy, args=(stream,), daemon=True))
                    copies[-1].start()
                elif copy is not None:
                    copy.close()
            self._add(local, process, copies)

    def _program(self, local: int, environment: dict, stdout, stderr, command: list) -> subprocess.Popen:
        """Starts the command of a rank in a session of its own, which ends with the agent."""
        return subprocess.Popen(
            command,
            env=environment,
            start_new_session=True,
            preexec_fn=functools.partial(self._die_with_agent, local, os.getpid()),
            stdout=stdout,
            stderr=stderr,
        )

    def _die_with_agent(self, local: int, agent: int) -> None:
        """In a new rank: lets it be killed when the agent terminates, and binds it to its cores."""
        die_with(agent)
        if self.job.bind_cores:
            cores = sorted(os.sched_getaffinity(0))
            share = max(len(cores) // self.job.local_size, 1)
            os.sched_setaffinity(0, cores[local * share % len(cores) :][:share])

    def _add(self, local: int, process, copies: list) -> None:
        """Notes a rank that was started. `process` is a Popen, or has its pid, returncode, poll, wait and send_signal."""
        self.guard.watch(process.pid)
        self.ranks.append(_Rank(self.round.first_rank + local, local, process, copies, time.time()))

    def _output(self, local, stream):
        """Returns (argument of Popen for stdout (1) or stderr (2), how this stream is copied)."""
        job, console = self.job, (sys.stdout, sys.stderr)[stream - 1]
        rank = self.round.first_rank + local
        shown = (job.shown is None or local in job.shown) and (
            job.shown_ranks is None or rank in job.shown_ranks
        )
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
        prefix = f"[{job.role}{rank}]:".encode() if job.tee_prefix else b""

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
            return os.path.join(job.log_dir, job.log_name.format(rank=self.round.first_rank + local))
        folder = os.path.join(job.log_dir, job.run_id, f"attempt_{self.round.number}", str(local))
        os.makedirs(folder, exist_ok=True)
        return os.path.join(folder, ("stdout.log", "stderr.log")[stream - 1])

    def _watch(self):
        """Returns when all ranks have succeeded. Raises RankFailed when one fails."""
        running = self.ranks
        while running:
            if failed := [rank for rank in running if rank.process.poll()]:
                raise RankFailed(failed, self.job)
            running = [rank for rank in running if rank.process.returncode is None]
            self.meeting.look()
            if running:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running[0].process.wait(self.job.interval)
        for rank in self.ranks:
            for copy in rank.copies:
                copy.join(1.0)
            _signal_session(rank, signal.SIGKILL)  # also terminate the processes that the rank has started

    def _end_ranks(self, grace: float = _GRACE):
        """Sends SIGTERM, and after `grace` seconds SIGKILL, to the ranks and all processes that they have started."""
        ranks, self.ranks = self.ranks, []
        for rank in ranks:
            if rank.process.poll() is None:
                _signal_session(rank, signal.SIGTERM)
                _signal_session(rank, signal.SIGCONT)  # a stopped process would not handle SIGTERM
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


def die_with(agent: int) -> None:
    """Lets the kernel kill this process when its parent, the agent with this pid, terminates."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != agent:  # the agent died before the line above
        os._exit(1)


def _signal_session(rank, number):
    # a session exists as long as one of its processes runs, even if the rank itself has terminated
    try:
        os.killpg(rank.process.pid, number)
    except ProcessLookupError:  # all have terminated, or the rank has not made its session yet
        rank.process.send_signal(number)
