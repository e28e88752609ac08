"""Refuses everything but this machine's own addresses, in each Python whose PYTHONPATH has this folder.

Python imports it at its start, so the programs that a chapter starts are covered like the chapter itself. The tests run the
course so. Names of other machines are not resolved either.
"""

import sys

_HERE = ("localhost", "127.0.0.1", "::1", "0.0.0.0", "::", "", None)


def _is_here(host) -> bool:
    import socket

    if isinstance(host, bytes):
        host = host.decode(errors="replace")
    return host in _HERE or host == socket.gethostname() or str(host).startswith("127.")


def _refuse(event: str, arguments: tuple) -> None:
    """An audit hook: raises OSError if a connection, a datagram or a look-up goes to another machine."""
    if event in ("socket.connect", "socket.sendto"):
        address = arguments[1]
        if not isinstance(address, tuple):
            return  # a socket of the file system
        host = address[0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
        host = arguments[0]
    else:
        return
    if not _is_here(host):
        raise OSError(f"the course needs no network, and this program asks for {host}")


sys.addaudithook(_refuse)
