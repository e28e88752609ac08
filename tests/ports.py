"""Ports of this machine, for jobs that tests start."""

from __future__ import annotations

import random
import socket

# Linux gives connections ports from 32768 on by itself, and could give one away before the job listens there.
_PORTS = range(20000, 32768)


def free_port() -> int:
    """Return a port that nothing uses on any interface."""
    numbers = random.SystemRandom()  # tests seed the usual generator, and would all get the same port
    for _ in range(1000):
        port = numbers.choice(_PORTS)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
        return port
    raise OSError("no free port was found")
