"""A process beside the agent that kills the ranks' sessions if the agent is killed.

A rank dies with its agent by itself (PR_SET_PDEATHSIG), but what the rank has started, a multiprocessing manager say,
would stay. The guard hears of the agent's end by the end of a pipe.
"""

import contextlib
import os
import signal


class Guard:
    """The agent's end of the pipe."""

    def __init__(self):
        read, self._write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            _run(read)
        os.close(read)

    def watch(self, session: int) -> None:
        """The processes of a session die with the agent."""
        os.write(self._write, b"+%d\n" % session)

    def forget(self, session: int) -> None:
        """The session has ended."""
        os.write(self._write, b"-%d\n" % session)

    def close(self) -> None:
        """The guard ends; sessions that it watches are killed."""
        os.close(self._write)
        os.waitpid(self._pid, 0)


def _run(read: int):
    """The guard itself; does not return."""
    try:
        os.setsid()  # no signal of a terminal, nor one to the agent's group
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
