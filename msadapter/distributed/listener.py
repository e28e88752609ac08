"""A port that serves only those that prove, by the handshake of wire.py, that they know the job's secret.

Stores (tcp_store.py) and remote calls (rpc/channel.py) listen with it. What a stranger can cost is bounded: the time that it may
take for its handshake, how many connections may be in theirs, and how much it can write to the log.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from abc import ABC, abstractmethod

from . import wire

_HANDSHAKE = 10.0  # seconds that a client has for its handshake
_WAITING = 256  # connections whose handshake has not ended; when there are more, the oldest is closed


class Listener(ABC):
    """Accepts connections and serves each in a thread of its own. Subclasses say how in ``_converse(connection)``.

    ``_converse`` gets a connection after its handshake and returns when it has ended. OSError and MemoryError in it end that
    connection only: a client that disconnects or breaks the rules is not noticed by the others.

    Attributes: name: what listens, for the names of threads and messages. advice: added to the message of a refusal.
    """

    name = ""
    advice = ""

    def __init__(self, listening: socket.socket, secret: bytes | None):
        self._socket, self._secret = listening, secret
        self.port = listening.getsockname()[1]
        self._lock = threading.RLock()  # a garbage collection in a thread that has it may call close()
        self._open: set[socket.socket] = set()
        self._waiting: dict[socket.socket, None] = {}  # connections in their handshake, the oldest first
        self._told: set[str] = set()  # the refusals that have been reported
        self._closed = False
        threading.Thread(target=self._accept, name=f"{self.name} server", daemon=True).start()

    @abstractmethod
    def _converse(self, connection: socket.socket) -> None:
        """Serve a connection until it ends."""

    def _accept(self) -> None:
        while True:
            try:
                connection, peer = self._socket.accept()
            except OSError:
                if self._closed:
                    return
                time.sleep(0.1)  # no file descriptor is free, or the client has gone already
                continue
            with self._lock:
                self._open.add(connection)
                self._waiting[connection] = None
                if len(self._waiting) > _WAITING:
                    oldest = next(iter(self._waiting))
                    self._waiting.pop(oldest)
                    shut(oldest)
            try:
                threading.Thread(
                    target=self._serve, args=(connection, peer), name=f"{self.name} client", daemon=True
                ).start()
            except RuntimeError:  # no more threads can be started; the client tries again
                self._forget(connection)
                connection.close()

    def _forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)
            self._waiting.pop(connection, None)

    def _serve(self, connection: socket.socket, peer) -> None:
        try:
            with connection, contextlib.suppress(OSError, MemoryError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._admit(connection, peer)
                self._converse(connection)
        finally:
            self._forget(connection)

    def _admit(self, connection: socket.socket, peer) -> None:
        try:
            wire.admit(connection, self._secret, _HANDSHAKE)
        except wire.Refused as error:
            with self._lock:
                known = str(error) in self._told
                self._told.add(str(error))
            if not known:  # once, because a stranger must not fill the log
                where = peer[0] if peer else "a local process"
                text = f"{self.name}: refused a connection from {where}: {error}{self.advice}"
                print(text, file=sys.stderr, flush=True)
            raise
        with self._lock:
            self._waiting.pop(connection, None)

    def close(self) -> None:
        """Stop listening and close all connections."""
        self._closed = True
        with self._lock:
            connections = [self._socket, *self._open]
        # accept() in another thread returns only when the socket is shut down, not when it is closed
        for opened in connections:
            shut(opened)
        self._socket.close()


def shut(connection: socket.socket) -> None:
    """End a connection in both directions, whoever waits for it. Does nothing if it has ended."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
