"""TCPStore: one process stores the keys, and the others access them over sockets.

A request is a list of byte strings, each preceded by its length: the name of a method of Store, followed by its arguments.
The answer is such a list too: b"ok" and the result, or b"timeout" and the text of the error. Each thread of a process has
its own connection, so a thread that waits for a key does not block the others.
"""

import contextlib
import os
import socket
import struct
import threading
import time
from datetime import timedelta

from .errors import DistError, DistNetworkError, DistStoreError
from .store import _DEFAULT_TIMEOUT, HashStore, Store, _bytes, _seconds


def _send(connection: socket.socket, parts) -> None:
    sizes = struct.pack(f"<{len(parts) + 1}I", len(parts), *map(len, parts))
    connection.sendall(sizes + b"".join(parts))


def _read(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        piece = connection.recv(min(count - len(data), 1 << 20))
        if not piece:
            raise ConnectionError("the connection was closed")
        data += piece
    return bytes(data)


def _receive(connection: socket.socket) -> list:
    (number,) = struct.unpack("<I", _read(connection, 4))
    sizes = struct.unpack(f"<{number}I", _read(connection, 4 * number))
    return [_read(connection, size) for size in sizes]


def _answer(data: HashStore, name: str, arguments: list) -> list:
    """Runs a request on the table of keys and returns the parts of the result."""
    keys = [argument.decode() for argument in arguments]
    if name in ("set", "append"):
        getattr(data, name)(keys[0], arguments[1])
        return []
    if name == "get":
        data.wait([keys[1]], float(keys[0]))
        return [data._update(lambda table: table[keys[1]])]
    if name == "wait":
        data.wait(keys[1:], float(keys[0]))
        return []
    if name == "add":
        return [str(data.add(keys[0], int(keys[1]))).encode()]
    if name == "check":
        return [b"1" if data.check(keys) else b""]
    if name == "compare_set":
        return [data.compare_set(keys[0], arguments[1], arguments[2])]
    if name == "delete_key":
        return [b"1" if data.delete_key(keys[0]) else b""]
    if name == "num_keys":
        return [str(data.num_keys()).encode()]
    if name == "multi_get":
        data.wait(keys[1:], float(keys[0]))
        return data._update(lambda table: [table[key] for key in keys[1:]])
    raise ValueError(f"TCPStore does not know the request {name!r}")


class _Server:
    """Listens on a port and serves each connection in a separate thread."""

    def __init__(self, port: int, listen_fd: int | None):
        self.data = HashStore()
        try:
            if listen_fd is not None:
                self._socket = socket.socket(fileno=listen_fd)
            else:
                self._socket = socket.create_server(("", port), backlog=1024)
        except OSError as err:
            raise DistNetworkError(
                "The server socket has failed to listen on any local network address. "
                f"port: {port}, useIpv6: false, code: {-(err.errno or 0)}, message: {os.strerror(err.errno or 0)}"
            ) from err
        self.port = self._socket.getsockname()[1]
        self._open: set = set()
        threading.Thread(target=self._accept, name="TCPStore server", daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            self._open.add(connection)
            threading.Thread(
                target=self._serve, args=(connection,), name="TCPStore client", daemon=True
            ).start()

    def _serve(self, connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection, contextlib.suppress(OSError):  # a disconnected client needs no answer
            while True:
                name, *arguments = _receive(connection)
                try:
                    _send(connection, [b"ok", *_answer(self.data, name.decode(), arguments)])
                except DistStoreError as err:
                    _send(connection, [b"timeout", str(err).encode()])
                except ValueError as err:
                    _send(connection, [b"error", str(err).encode()])
        self._open.discard(connection)

    def close(self) -> None:
        """Stops listening and closes all connections."""
        # accept() in another thread returns only when the socket is shut down, not when it is closed
        for opened in (self._socket, *self._open):
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class TCPStore(Store):
    """A store that the process with is_master=True runs at host_name:port. Port 0 means any free port.

    With world_size and wait_for_workers, the master waits until that many processes have connected. Raises DistNetworkError if
    the port is in use or the server does not answer, and DistStoreError if a key is not set within the timeout.
    """

    _servers: dict = {}

    def __init__(
        self,
        host_name: str,
        port: int = 0,
        world_size: int | None = None,
        is_master: bool = False,
        timeout=_DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd=None,
        use_libuv: bool = True,
    ):
        super().__init__()
        self._host, self._timeout, self._server = host_name, timeout, None
        self._local = threading.local()
        if is_master:
            self._server = self._servers.get(int(port)) if multi_tenant and port else None
            if self._server is None:
                self._server = _Server(int(port), master_listen_fd)
                if multi_tenant:
                    self._servers[self._server.port] = self._server
            port = self._server.port
        self._port = int(port)
        self._connection()
        if world_size and world_size > 0 and wait_for_workers:
            self._meet(world_size, is_master)

    def _meet(self, world_size, is_master):
        if self.add("init/", 1) >= world_size:
            self.set("init/all", b"1")
        if is_master:
            try:
                self.wait(["init/all"])
            except DistStoreError as err:
                raise DistStoreError(
                    f"Timed out after {int(_seconds(self._timeout)) + 1} seconds waiting for clients. "
                    f"{int(self.add('init/', 0))}/{world_size} clients joined."
                ) from err

    @property
    def host(self) -> str:
        return self._host

    @property
    def port(self) -> int:
        return self._port

    def _connection(self) -> socket.socket:
        local = self._local
        # a forked child must not use its parent's connection
        if getattr(local, "pid", None) != os.getpid():
            local.connection, local.pid = self._connect(), os.getpid()
        return local.connection

    def _connect(self) -> socket.socket:
        host = "127.0.0.1" if self._server is not None else self._host
        end, pause, last = time.monotonic() + _seconds(self._timeout), 0.01, None
        while time.monotonic() < end:
            try:
                connection = socket.create_connection(
                    (host, self._port), timeout=max(end - time.monotonic(), 0.1)
                )
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return connection
            except OSError as err:  # the master may not be listening yet
                last = err
                time.sleep(pause)
                pause = min(pause * 2, 0.5)
        raise DistNetworkError(
            f"The client socket has timed out after {int(_seconds(self._timeout) * 1000)}ms while trying to "
            f"connect to ({self._host}, {self._port}): {last}"
        )

    def _ask(self, name: str, *arguments) -> list:
        connection = self._connection()
        try:
            _send(connection, [name.encode(), *map(_bytes, arguments)])
            status, *result = _receive(connection)
        except OSError as err:
            self._local.pid = None
            raise DistNetworkError(f"the store at {self._host}:{self._port} is gone: {err}") from err
        if status == b"timeout":
            raise DistStoreError(result[0].decode())
        if status != b"ok":
            raise DistError(result[0].decode())
        return result

    def _patience(self, timeout=None) -> str:
        return repr(_seconds(timeout or self._timeout))

    def set(self, key, value):
        self._ask("set", key, value)

    def get(self, key):
        return self._ask("get", self._patience(), key)[0]

    def add(self, key, amount):
        return int(self._ask("add", key, str(int(amount)))[0])

    def append(self, key, value):
        self._ask("append", key, value)

    def check(self, keys):
        return bool(self._ask("check", *keys)[0])

    def compare_set(self, key, expected_value, desired_value):
        return self._ask("compare_set", key, expected_value, desired_value)[0]

    def delete_key(self, key):
        return bool(self._ask("delete_key", key)[0])

    def num_keys(self):
        return int(self._ask("num_keys")[0])

    def multi_get(self, keys):
        return self._ask("multi_get", self._patience(), *keys)

    def wait(self, keys, timeout=None):
        self._ask("wait", self._patience(timeout), *keys)

    def clone(self) -> "TCPStore":
        """A new connection to the same store."""
        return TCPStore(
            self._host,
            self._port,
            timeout=self._timeout
            if isinstance(self._timeout, timedelta)
            else timedelta(seconds=float(self._timeout)),
        )

    def close(self) -> None:
        """Stops the server of a master. Clients then get DistNetworkError."""
        if self._server is not None:
            self._servers.pop(self._port, None)
            self._server.close()
