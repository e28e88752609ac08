"""Messages between workers over TCP, and the answers to them.

Every worker listens at a port. Whoever calls it opens one connection and proves, by the handshake of the stores, that it knows
the worker's secret, which only the members of the job learn from their store. After that the two sides trust each other:
messages are pickled, and a call runs whatever function the caller names.

A message is a list of byte strings, preceded by its number, how many strings there are, and their lengths. The number of an
answer is that of the message it answers.
"""

from __future__ import annotations

import contextlib
import functools
import heapq
import itertools
import socket
import struct
import threading
import time

from ...futures import Future
from .. import wire
from ..listener import Listener, shut

_HANDSHAKE = 30.0  # seconds
_HEAD = struct.Struct("<QQ")  # the number of a message, and how many parts it has


class Frames:
    """One connection. Several threads may send; one receives."""

    def __init__(self, connection: socket.socket):
        self._connection, self._lock = connection, threading.Lock()

    def send(self, number: int, parts: list) -> None:
        """Send a message. ``parts`` are objects with a buffer of bytes."""
        views = [memoryview(part).cast("B") for part in parts]
        head = _HEAD.pack(number, len(views)) + struct.pack(
            f"<{len(views)}Q", *(view.nbytes for view in views)
        )
        with self._lock:
            self._connection.sendall(head)
            for view in views:
                self._connection.sendall(view)

    def receive(self) -> tuple[int, list[bytearray]]:
        """Return the next message. ConnectionError if the other side has closed the connection."""
        number, count = _HEAD.unpack(self._read(_HEAD.size))
        sizes = struct.unpack(f"<{count}Q", self._read(8 * count))
        return number, [self._read(size) for size in sizes]

    def _read(self, count: int) -> bytearray:
        data = bytearray(count)
        view, done = memoryview(data), 0
        while done < count:
            read = self._connection.recv_into(view[done:])
            if not read:
                raise ConnectionError("the connection was closed")
            done += read
        return data

    def close(self) -> None:
        shut(self._connection)
        self._connection.close()


class Server(Listener):
    """Gives each message of those that know the secret to ``handle(parts, answer)``.

    ``answer(parts)`` sends the answer, from any thread, once.
    """

    name = "RPC"

    def __init__(self, host: str, secret: bytes, handle):
        self._handle = handle
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__(socket.create_server((host, 0), family=family, backlog=1024), secret)

    def _converse(self, connection: socket.socket) -> None:
        frames = Frames(connection)
        while True:
            number, parts = frames.receive()
            self._handle(parts, _Answer(frames, number))


class _Answer:
    """Sends the answer to one message. A caller that has gone does not need it."""

    def __init__(self, frames: Frames, number: int):
        self._frames, self._number = frames, number

    def __call__(self, parts: list) -> None:
        with contextlib.suppress(OSError):
            self._frames.send(self._number, parts)


class Client:
    """A connection to one worker. ``ask(parts)`` returns a future of the parts of the answer.

    ``run(function)`` calls a function in another thread. Futures are completed there, because their callbacks may wait.
    """

    def __init__(self, name: str, host: str, port: int, secret: bytes, timeout: float, run):
        self.name, self._run = name, run
        connection = socket.create_connection((host, port), timeout=timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.greet(connection, secret, _HANDSHAKE)
        self._frames = Frames(connection)
        self._numbers = itertools.count()
        self._waiting: dict[int, Future] = {}
        self._lock, self._gone = threading.Lock(), False
        threading.Thread(target=self._receive, name=f"RPC answers of {name}", daemon=True).start()

    def ask(self, parts: list) -> Future:
        answer: Future = Future()
        number = next(self._numbers)
        with self._lock:
            if self._gone:
                raise ConnectionError(f"the connection to {self.name} was closed")
            self._waiting[number] = answer
        try:
            self._frames.send(number, parts)
        except OSError as error:
            with self._lock:
                self._waiting.pop(number, None)
            raise ConnectionError(f"cannot send to {self.name}: {error}") from error
        return answer

    def _receive(self) -> None:
        try:
            while True:
                number, parts = self._frames.receive()
                with self._lock:
                    answer = self._waiting.pop(number)
                self._run(functools.partial(answer.set_result, parts))
        except OSError as error:
            with self._lock:
                self._gone, waiting = True, list(self._waiting.values())
                self._waiting.clear()
            for answer in waiting:
                answer._fail(RuntimeError(f"{self.name} has closed its connection: {error}"))

    def close(self) -> None:
        self._frames.close()


class Deadlines:
    """Calls functions at given times, in one thread."""

    def __init__(self):
        self._queue: list = []
        self._order = itertools.count()
        self._changed, self._closed = threading.Condition(), False
        threading.Thread(target=self._run, name="RPC timeouts", daemon=True).start()

    def after(self, seconds: float, function) -> None:
        """Call ``function()`` after some seconds."""
        with self._changed:
            heapq.heappush(self._queue, (time.monotonic() + seconds, next(self._order), function))
            self._changed.notify()

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                due = self._queue[0][0] if self._queue else time.monotonic() + 3600
                left = due - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                function = heapq.heappop(self._queue)[2]
            function()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._queue.clear()
            self._changed.notify()
