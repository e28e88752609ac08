"""Ports of this machine, for jobs that tests start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port of the loopback interface on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
