"""A separate process that kills the ranks' sessions if the agent is killed.

A rank is killed together with its agent (PR_SET_PDEATHSIG), but processes that the rank has started, such as a
multiprocessing manager, would keep running. The guard detects the agent's end when a pipe is closed.
"""

import contextlib
import os
import signal
import sys


class Guard:
    """The agent's end of the pipe, whose number is `descriptor`."""

    def __init__(self):
        read, self.descriptor = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _run(read)
        os.close(read)
        self._gone = False

    def watch(self, session: int) -> None:
        """From now on, the processes of this session are killed if the agent terminates."""
        self._tell(b"+%d\n" % session)

    def forget(self, session: int) -> None:
        """Stops watching a session, which has ended."""
        self._tell(b"-%d\n" % session)

    def _tell(self, order: bytes) -> None:
        """Sends an order to the guard. If that fails, the job continues: the ranks still terminate with the agent."""
        if self._gone:
            return
        try:
            os.write(self.descriptor, order)
        except BrokenPipeError:
            self._gone = True
            print(
                f"torchrun: the guard (pid {self._pid}) has ended. The job goes on; if this launcher is killed now, "
                "processes that ranks have started may stay",
                file=sys.stderr,
                flush=True,
            )

    def close(self) -> None:
        """Terminates the guard and kills the sessions that it watches."""
        os.close(self.descriptor)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has ended before
            os.kill(self._pid, signal.SIGCONT)  # a stopped one would not hear of the end
            os.waitpid(self._pid, 0)


def _run(read: int):
    """The main function of the guard process. It does not return."""
    try:
        os.setsid()  # a separate session, so that signals of the terminal or to the agent's process group do not reach the guard
        os.closerange(0, read)
        os.closerange(read + 1, os.sysconf("SC_OPEN_MAX"))
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        sessions = set()
        with os.fdopen(read, "rb") as orders:
            for order in orders:
                (sessions.add if order[:1] == b"+" else sessions.discard)(int(order[1:]))
        for session in sessions:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(session, signal.SIGKILL)
    finally:
        os._exit(0)
