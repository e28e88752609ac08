"""The agent of a worker: it knows the other workers, sends messages to them, and answers theirs."""

from __future__ import annotations

import functools
import ipaddress
import json
import os
import pickle
import queue
import secrets
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlparse

from ...futures import Future
from .. import wire
from ..autograd import _contexts
from .channel import Client, Deadlines, Server
from .constants import UNSET_RPC_TIMEOUT
from .options import TensorPipeRpcBackendOptions, WorkerInfo
from .payload import decoded, encoded

_SERVICE_THREADS = 64  # run what the package itself does for others; none of it waits for another message
_CONNECT = 60.0  # seconds
# kinds that are handled at once in the thread of their connection, so in the order in which they were sent
_ORDERED = ("fork", "drop", "accepted", "forget context", "end pass", "gather")
_UNCOUNTED = ("gather",)  # workers wait with it for each other to become quiet


@dataclass
class Message:
    """A request or an answer.

    ``autograd`` is None, or (number of the context, number of the message); the second is None if no tensor requires grad.
    """

    kind: str
    fields: tuple = ()
    data: Any = b""
    tensors: list = field(default_factory=list)
    autograd: tuple | None = None


class TimedOut(RuntimeError):
    """A message was not answered in time."""


class _Once:
    """``first()`` is true the first time."""

    def __init__(self):
        self._lock = threading.Lock()

    def first(self) -> bool:
        return self._lock.acquire(blocking=False)


def told(error: Exception) -> str:
    """Return how another worker is told of an error of this package, or of a backward pass."""
    return str(error) or type(error).__name__


def record(message: Message, context) -> None:
    """Let a message that is about to be sent belong to a context."""
    needing = [tensor for tensor in message.tensors if tensor.requires_grad]
    number = _contexts.contexts().next_message() if needing else None
    message.autograd = context.number, number
    if needing:
        context.record_sent(number, needing)


def _own_address(init_method: str) -> str:
    """Return the address at which the other workers reach this machine.

    It is the one from which this machine reaches the place where the workers meet: the loopback address if that is on it.
    """
    host = urlparse(init_method).hostname if init_method.startswith("tcp:") else None
    if init_method.startswith("env:"):
        host = os.environ.get("MASTER_ADDR", "localhost")
    if host is None:  # a file
        return socket.gethostbyname(socket.gethostname())
    loopback = wire.loopback_of(host)
    if loopback is not None:
        return loopback
    family, _, _, _, address = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:  # a datagram socket connects without sending
        probe.connect(address)
        return ipaddress.ip_address(probe.getsockname()[0]).compressed


class RpcAgent:
    """One worker of the job. ``kinds`` maps each kind of message to a handler(agent, message, sender, reply).

    A handler calls ``reply(message)`` once, in any thread.
    """

    def __init__(
        self,
        store,
        name: str,
        worker_id: int,
        world_size: int,
        options: TensorPipeRpcBackendOptions,
        kinds: dict,
    ):
        self.store, self.options, self._kinds = store, options, kinds
        self.info = WorkerInfo(name, worker_id)
        self.timeout = options.rpc_timeout
        self._secret = secrets.token_bytes(32)
        self._host = _own_address(options.init_method)
        self._places: list[dict] = []
        self._workers: list[WorkerInfo] = []
        self._size = world_size
        self._clients: dict[int, Client] = {}
        self._lock, self._deadlines = threading.Lock(), Deadlines()
        self._users = ThreadPoolExecutor(options.num_worker_threads, thread_name_prefix="RPC")
        self._service = ThreadPoolExecutor(_SERVICE_THREADS, thread_name_prefix="RPC service")
        self._answers = ThreadPoolExecutor(_SERVICE_THREADS, thread_name_prefix="RPC answers")
        self._quiet = threading.Condition()
        self._asked, self._unanswered, self._serving = 0, 0, 0
        self._opened = threading.Event()
        self._finalized: queue.SimpleQueue = queue.SimpleQueue()
        threading.Thread(target=self._run_finalized, name="RPC finalizers", daemon=True).start()
        self._server = Server(self._host, self._secret, self._receive)

    def open(self) -> None:
        """Tell the other workers the address of this one, and learn theirs. RuntimeError if two have the same name."""
        own = {
            "name": self.info.name,
            "host": self._host,
            "port": self._server.port,
            "secret": self._secret.hex(),
        }
        self.store.set(f"worker/{self.info.id}", json.dumps(own))
        self._places = [json.loads(self.store.get(f"worker/{number}")) for number in range(self._size)]
        self._check_names()
        self._workers = [WorkerInfo(place["name"], number) for number, place in enumerate(self._places)]
        self._opened.set()

    def _check_names(self) -> None:
        seen: dict[str, int] = {}
        for number, place in enumerate(self._places):
            other = seen.setdefault(place["name"], number)
            if other != number:
                raise RuntimeError(
                    f"RPC worker name {place['name']} is not unique. "
                    f"Workers {number} and {other} share the same name."
                )

    # -- who takes part ----------------------------------------------------------------------------------
    def get_worker_info(self, worker=None) -> WorkerInfo:
        """Return the worker with a name or number, or this one. RuntimeError if there is none."""
        if worker is None:
            return self.info
        for info in self._workers:
            if worker in (info.name, info.id):
                return info
        raise RuntimeError(f"RPC could not find destination {worker}: no worker has this name or number")

    def get_worker_infos(self) -> list[WorkerInfo]:
        return list(self._workers)

    def device_for(self, tensor, worker: int) -> str | None:
        """Return the device on which a tensor arrives at a worker; None is the CPU. RuntimeError if none is mapped."""
        if tensor.device.type == "cpu":
            return None
        name = self._workers[worker].name
        for source, target in self.options.device_maps.get(name, {}).items():
            if source.type == tensor.device.type and source.index in (None, tensor.device.index):
                return str(target)
        raise RuntimeError(
            "TensorPipe RPC backend only supports CPU tensors by default, please move your tensors to CPU before sending "
            f"them over RPC, or call `set_device_map` on `TensorPipeRpcBackendOptions` to explicitly configure device "
            f"mapping. The tensor is on {tensor.device}, and the worker {name} has no device for it."
        )

    # -- asking ------------------------------------------------------------------------------------------
    def ask(
        self, worker: int, kind: str, fields: tuple = (), data=b"", tensors=(), timeout=UNSET_RPC_TIMEOUT
    ) -> Future:
        """Send a message to a worker. The future has its answer, or a RuntimeError after ``timeout`` seconds.

        0 means no timeout, and UNSET_RPC_TIMEOUT that of the options.
        """
        return self._send(worker, Message(kind, fields, data, list(tensors)), timeout)

    def ask_recorded(self, worker: int, message: Message, timeout=UNSET_RPC_TIMEOUT) -> Future:
        """Send a message whose tensors, and those of its answer, belong to the context of this thread."""
        context = _contexts.contexts().current()
        if context is not None:
            context.workers.add(worker)
            record(message, context)
        return self._send(worker, message, timeout)

    def _send(self, worker: int, message: Message, timeout: float) -> Future:
        parts = self._encode(message, worker)  # before anything is counted, because it may fail
        answer: Future = Future()
        counted = message.kind not in _UNCOUNTED
        with self._quiet:
            self._asked += counted
            self._unanswered += counted
        once = _Once()

        def finish(result, error=None):
            if not once.first():
                return
            with self._quiet:
                self._unanswered -= counted
                self._quiet.notify_all()
            if error is None:
                answer.set_result(result)
            else:
                answer._fail(error)

        def arrived(parts):
            try:
                finish(self._decode(parts.value(), worker))
            except Exception as error:
                finish(None, error)

        try:
            self._client(worker).ask(parts).add_done_callback(arrived)
        except OSError as error:
            finish(None, RuntimeError(f"{message.kind}: {error}"))
        seconds = self.timeout if timeout == UNSET_RPC_TIMEOUT else timeout
        if seconds > 0 and not answer.done():
            milliseconds = round(seconds * 1000)
            late = TimedOut(
                f"RPC ran for more than set timeout ({milliseconds} ms) and will now be marked with an error"
            )
            self._deadlines.after(seconds, functools.partial(finish, None, late))
        return answer

    def _client(self, worker: int) -> Client:
        with self._lock:
            client = self._clients.get(worker)
            if client is None:
                place = self._places[worker]
                client = self._clients[worker] = Client(
                    place["name"],
                    place["host"],
                    place["port"],
                    bytes.fromhex(place["secret"]),
                    _CONNECT,
                    self._answers.submit,
                )
            return client

    def later(self, function) -> None:
        """Call ``function()`` soon in another thread.

        A finalizer may do so, which the collector can call in the middle of anything: nothing here takes a lock.
        """
        self._finalized.put(function)

    def _run_finalized(self) -> None:
        while (function := self._finalized.get()) is not None:
            function()

    # -- on the wire -------------------------------------------------------------------------------------
    def _encode(self, message: Message, worker: int) -> list:
        pairs = [encoded(tensor, self.device_for(tensor, worker)) for tensor in message.tensors]
        descriptions = [description for description, _ in pairs]
        head = (self.info.id, message.kind, message.fields, message.autograd, descriptions)
        return [pickle.dumps(head), message.data, *(data for _, data in pairs)]

    def _decode(self, parts: list, worker: int) -> Message:
        """Return a message. What it carries of a context is recorded here."""
        _, kind, fields, autograd, descriptions = pickle.loads(parts[0])
        tensors = [decoded(*pair) for pair in zip(descriptions, parts[2:], strict=True)]
        message = Message(kind, fields, parts[1], tensors, autograd)
        if kind == "error":
            raise RuntimeError(f"Error on Node {worker}: {fields[0]}")
        if autograd is not None and autograd[1] is not None:
            needing = [tensor for tensor in tensors if tensor.requires_grad]
            _contexts.contexts().joined(autograd[0]).record_received(autograd[1], worker, needing)
        return message

    def _receive(self, parts: list, answer) -> None:
        """Called in the thread of a connection, which must not wait for other messages."""
        self._opened.wait()
        sender, kind, *_ = pickle.loads(parts[0])
        with self._quiet:
            self._serving += kind not in _UNCOUNTED
        answer = functools.partial(self._answered, answer, sender, kind)
        pool = self._users if kind in ("call", "remote") else None if kind in _ORDERED else self._service
        if pool is None:
            self._handle(parts, sender, kind, answer)
        else:
            try:
                pool.submit(self._handle, parts, sender, kind, answer)
            except RuntimeError:  # this worker is shutting down
                answer(Message("error", (f"{self.info} has shut down",)))

    def _handle(self, parts: list, sender: int, kind: str, reply) -> None:
        here = _contexts.contexts()
        previous = here.enter(None)
        try:
            message = self._decode(parts, sender)
            if message.autograd is not None:
                here.joined(message.autograd[0])
                here.enter(message.autograd[0])
            self._kinds[kind](self, message, sender, reply)
        except Exception as error:
            reply(Message("error", (told(error),)))
        finally:
            here.enter(previous)

    def _answered(self, answer, sender: int, kind: str, message: Message) -> None:
        try:
            parts = self._encode(message, sender)
        except Exception as error:  # what a function has returned cannot be sent
            parts = self._encode(Message("error", (told(error),)), sender)
        try:
            answer(parts)
        finally:
            with self._quiet:
                self._serving -= kind not in _UNCOUNTED
                self._quiet.notify_all()

    # -- the end -----------------------------------------------------------------------------------------
    def quiet(self, timeout: float) -> int:
        """Wait until this worker waits for no answer and serves nobody. Returns how many messages it has sent so far.

        RuntimeError after ``timeout`` seconds; 0 waits without end.
        """
        with self._quiet:
            if not self._quiet.wait_for(lambda: not self._unanswered and not self._serving, timeout or None):
                raise RuntimeError(
                    f"{self.info} still waits for {self._unanswered} answers and runs {self._serving} calls after "
                    f"{timeout} s"
                )
            return self._asked

    def shutdown(self) -> None:
        """Close all connections. Calls that wait for an answer fail."""
        self._server.close()
        for client in list(self._clients.values()):
            client.close()
        self._deadlines.close()
        self._finalized.put(None)
        self._users.shutdown(wait=False, cancel_futures=True)
        self._service.shutdown(wait=False, cancel_futures=True)
        self._answers.shutdown(wait=False)

    def get_debug_info(self) -> dict[str, str]:
        return {
            "agent.num_pending_requests": str(self._unanswered),
            "agent.client_active_calls": str(self._unanswered),
            "agent.server_active_calls": str(self._serving),
            "agent.thread_pool_size": str(self.options.num_worker_threads),
        }

    get_metrics = get_debug_info
