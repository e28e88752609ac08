"""TCPStore: one process stores the keys, and the others access them over sockets.

A request is a frame (wire.py) with the name of a method of Store and its arguments. The answer is a frame too: b"ok" and the
result, or b"timeout" or b"error" and the text of the error. Each thread of a process has its own connection, so a thread that
waits for a key does not block the others.
"""

import os
import socket
import threading
import time
import warnings
import weakref
from datetime import timedelta

from . import wire
from .errors import DistError, DistNetworkError, DistStoreError
from .listener import Listener
from .store import _DEFAULT_TIMEOUT, HashStore, Store, _bytes, _seconds


def _key(argument: bytes) -> str:
    if len(argument) > wire.MAX_KEY:
        raise ValueError(
            f"TCPStore: the key has {len(argument)} bytes; a key may have at most {wire.MAX_KEY}"
        )
    return argument.decode()


def _text(message) -> bytes:
    """The text of an error for a frame. It may name many keys, so its end may be cut off."""
    return str(message).encode(errors="replace")[: wire.MAX_KEY]


def _append(data: HashStore, key: str, value: bytes) -> None:
    def change(table):
        before = table.get(key, b"")
        if len(before) + len(value) > wire.MAX_PART:
            raise ValueError(
                f"TCPStore: append would make a value of {len(before) + len(value)} bytes; "
                f"a value may have at most {wire.MAX_PART}"
            )
        table[key] = before + value

    data._update(change)


def _answer(data: HashStore, name: str, arguments: list) -> list:
    """Runs a request on the table of keys and returns the parts of the result."""
    if name in ("get", "wait", "multi_get"):
        patience, keys = float(arguments[0]), [_key(argument) for argument in arguments[1:]]
        if patience != patience:
            raise ValueError("TCPStore: a timeout must be a number of seconds, not nan")
        data.wait(keys, min(patience, threading.TIMEOUT_MAX))
        return [] if name == "wait" else data._update(lambda table: [table[key] for key in keys])
    if name == "check":
        return [b"1" if data.check([_key(argument) for argument in arguments]) else b""]
    if name == "num_keys":
        return [str(data.num_keys()).encode()]
    key, *values = arguments
    key = _key(key)
    if name == "set":
        data.set(key, values[0])
        return []
    if name == "append":
        _append(data, key, values[0])
        return []
    if name == "add":
        return [str(data.add(key, int(values[0]))).encode()]
    if name == "compare_set":
        return [data.compare_set(key, values[0], values[1])]
    if name == "delete_key":
        return [b"1" if data.delete_key(key) else b""]
    raise ValueError(f"TCPStore: the request {name!r} is unknown")


def _listen(address: str, port: int, listen_fd: int | None) -> socket.socket:
    try:
        if listen_fd is not None:
            return socket.socket(fileno=listen_fd)
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=1024)
    except OSError as err:
        raise DistNetworkError(
            "The server socket has failed to listen on any local network address. "
            f"port: {port}, useIpv6: false, code: {-(err.errno or 0)}, message: {os.strerror(err.errno or 0)}"
        ) from err


class _Server(Listener):
    """Answers requests on one table of keys.

    It listens on `address`, or on all addresses of this machine if that is empty.
    """

    name = "TCPStore"
    advice = f"; {wire.HOW_TO_AGREE}"

    def __init__(self, address: str, port: int, listen_fd: int | None, secret: bytes | None):
        self.data = HashStore()
        listening = _listen(address, port, listen_fd)
        self.address = address or ("::1" if listening.family == socket.AF_INET6 else "127.0.0.1")
        super().__init__(listening, secret)

    def _converse(self, connection):
        while True:
            try:
                name, *arguments = wire.receive(connection)
            except wire.BadFrame as err:
                wire.send(connection, [b"error", f"the store has closed the connection: {err}".encode()])
                raise
            try:
                wire.send(connection, [b"ok", *_answer(self.data, name.decode(), arguments)])
            except DistStoreError as err:
                wire.send(connection, [b"timeout", _text(err)])
            except (ValueError, LookupError, ArithmeticError) as err:
                known = isinstance(err, ValueError)
                wire.send(connection, [b"error", _text(err if known else f"malformed request: {err!r}")])


def _end(server: _Server, pid: int) -> None:
    if os.getpid() == pid:  # a forked child has a copy of the store, and its parent still listens
        server.close()


class _Lease:
    """What the master stores of one port share. Their server ends when the last of them is collected, but not at exit.

    Ranks that end later may still need it, and find it until the process is gone.
    """

    def __init__(self, server: _Server):
        self.server = server
        weakref.finalize(self, _end, server, os.getpid()).atexit = False


class TCPStore(Store):
    """A store that the process with is_master=True runs at host_name:port. Port 0 means any free port.

    The master listens on the loopback address alone if host_name is one (localhost, 127.0.0.1, ::1), otherwise on all
    addresses of its machine. The server ends with the object; with multi_tenant, masters of one port share it, and it ends with
    the last of them. With world_size and wait_for_workers, it waits until that many processes have connected.

    `secret` (msadapter's own argument), by default the environment variable MSADAPTER_JOB_SECRET, is the job's secret: only
    processes that have the same one are served. b"" means none, whatever the environment says. A key has at most 64 KiB, a
    value 256 MiB, and a message 1 GiB.

    Raises DistNetworkError if the port is in use, the server does not answer or the secrets differ, DistStoreError if a key
    is not set within the timeout, and ValueError if a value is too large.
    """

    _leases: weakref.WeakValueDictionary[int, _Lease] = weakref.WeakValueDictionary()

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
        *,
        secret: bytes | None = None,
    ):
        super().__init__()
        self._host, self._timeout, self._lease = host_name, timeout, None
        self._secret = wire.secret_of_environment() if secret is None else secret or None
        loopback = wire.loopback_of(host_name)
        self._address = loopback or host_name
        self._local = threading.local()
        if is_master:
            self._lease = self._leases.get(int(port)) if multi_tenant and port else None
            if self._lease is None:
                server = _Server(loopback or "", int(port), master_listen_fd, self._secret)
                self._lease = _Lease(server)
                if loopback is None and self._secret is None:
                    self._warn(server.port)
                if multi_tenant:
                    self._leases[server.port] = self._lease
            self._address, port = self._lease.server.address, self._lease.server.port
        self._port = int(port)
        self._connection()
        if world_size and world_size > 0 and wait_for_workers:
            self._meet(world_size, is_master)

    @staticmethod
    def _warn(port):
        warnings.warn(
            f"The store of this job listens on all addresses of this machine (port {port}) and has no "
            "secret, so every process that reaches the port can read and change what the ranks agree on. "
            f"To prevent this, {wire.HOW_TO_AGREE} (docs/distributed.md)",
            stacklevel=3,
        )

    def _meet(self, world_size, is_master):
        if self.add("init/", 1) == world_size:
            self.set("init/all", b"1")
        if is_master:
            try:
                self.wait(["init/all"])
                self.delete_key("init/all")  # PyTorch's store only has "init/" then, and programs count keys
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
        end, pause, last = time.monotonic() + _seconds(self._timeout), 0.01, None
        while (left := end - time.monotonic()) > 0:
            connection = None
            try:
                connection = socket.create_connection((self._address, self._port), timeout=max(left, 0.1))
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                wire.greet(connection, self._secret, max(end - time.monotonic(), 0.1))
                return connection
            except OSError as err:  # the master may not be listening yet, or may be too busy
                if connection is not None:
                    connection.close()
                if isinstance(err, wire.Refused):
                    raise DistNetworkError(
                        f"the store at {self._host}:{self._port} cannot be used: {err}"
                    ) from err
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
            wire.send(connection, [name.encode(), *map(_bytes, arguments)])
            status, *result = wire.receive(connection)
        except BaseException as err:
            # a signal's handler may have raised it; the answer to this request must not be taken for that to the next
            self._local.pid = None
            connection.close()
            if not isinstance(err, OSError):
                raise
            raise DistNetworkError(
                f"the connection to the store at {self._host}:{self._port} was lost: {err}"
            ) from err
        if status == b"timeout":
            raise DistStoreError(result[0].decode(errors="replace"))
        if status != b"ok":
            raise DistError(result[0].decode(errors="replace"))
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
            secret=self._secret or b"",
        )

    def close(self) -> None:
        """Stops the server of a master. Clients then get DistNetworkError."""
        if self._lease is not None:
            self._leases.pop(self._port, None)
            self._lease.server.close()
