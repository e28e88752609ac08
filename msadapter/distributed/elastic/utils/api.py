"""The environment, a free port, and the local rank in the arguments of a command."""

from __future__ import annotations

import os
import socket
from string import Template
from typing import Any


def get_env_variable_or_raise(env_name: str) -> str:
    """The value of an environment variable. ValueError if it is not set."""
    value = os.environ.get(env_name)
    if value is None:
        raise ValueError(f"Environment variable {env_name} expected, but not set")
    return value


def get_socket_with_port() -> socket.socket:
    """A listening socket at a free port of localhost. The port is free for others once the socket is closed.

    RuntimeError if no address of localhost has one.
    """
    for family, kind, protocol, *_ in socket.getaddrinfo("localhost", None, type=socket.SOCK_STREAM):
        found = socket.socket(family, kind, protocol)
        try:
            found.bind(("localhost", 0))
            found.listen(0)
            return found
        except OSError:
            found.close()
    raise RuntimeError("Failed to create a socket")


class macros:
    """What stands for a value of each process in the arguments of a command."""

    local_rank = "${local_rank}"

    @staticmethod
    def substitute(args: list[Any], local_rank: str) -> list[Any]:
        """The arguments with the local rank in its places. What is no text stays as it is."""
        return [
            Template(arg).safe_substitute(local_rank=local_rank) if isinstance(arg, str) else arg
            for arg in args
        ]
