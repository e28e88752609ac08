"""References to values on other workers (RRefs), and how their owner knows how long to keep a value.

The owner of a value has a table of its references on other workers, which are called forks. A fork is dropped when the object
of its worker is collected. Whoever passes a reference on keeps its own until the receiver's fork is in the owner's table.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import weakref
from typing import Any, Generic, NamedTuple, TypeVar

from ...futures import Future
from ...tensor import Tensor
from .. import autograd
from . import state
from .agent import Message, RpcAgent, TimedOut
from .calls import packed_call, rpc_async, rpc_sync, worker_of
from .constants import UNSET_RPC_TIMEOUT
from .options import WorkerInfo
from .results import RemoteException, value_of
from .rref_proxy import RRefProxy

T = TypeVar("T")


class Identity(NamedTuple):
    """The number of a reference or a fork: the worker that made it, and a count on this worker."""

    created_on: int
    local_id: int

    def __repr__(self) -> str:
        return f"GloballyUniqueId(created_on={self.created_on}, local_id={self.local_id})"

    __str__ = __repr__


class _Value:
    """What the owner keeps for one reference."""

    def __init__(self, identity: Identity):
        self.identity = identity
        self.future: Future = Future()
        self.forks: set[Identity] = set()


class References:
    """The references that this worker owns, uses or has passed on."""

    def __init__(self, agent: RpcAgent):
        self.agent, self.worker = agent, agent.info.id
        self._count = itertools.count()
        self._lock = threading.RLock()
        self._values: weakref.WeakValueDictionary[Identity, _Value] = weakref.WeakValueDictionary()
        self._forked: dict[Identity, _Value] = {}  # values that other workers refer to
        self._awaited: dict[
            Identity, _Value
        ] = {}  # values that have not been computed, which others may wait for
        self._passed_on: dict[Identity, PyRRef] = {}  # child fork -> the reference that made it
        self._users: weakref.WeakSet[PyRRef] = weakref.WeakSet()
        self._received = threading.local()  # `rrefs`: those of a block of `confirmed`

    def new_identity(self) -> Identity:
        return Identity(self.worker, next(self._count))

    # -- the owner ---------------------------------------------------------------------------------------
    def owned(self, identity: Identity) -> _Value:
        """Return the value of a reference, which may not have been computed yet."""
        with self._lock:
            value = self._values.get(identity)
            if value is None:
                value = self._values[identity] = self._awaited[identity] = _Value(identity)
                value.future.add_done_callback(lambda _: self._awaited.pop(identity, None))
            return value

    def add_fork(self, identity: Identity, fork: Identity) -> None:
        with self._lock:
            value = self.owned(identity)
            value.forks.add(fork)
            self._forked[identity] = value

    def drop_fork(self, identity: Identity, fork: Identity) -> None:
        with self._lock:
            value = self._forked.get(identity)
            if value is not None:
                value.forks.discard(fork)
                if not value.forks:
                    del self._forked[identity]

    # -- pickling ----------------------------------------------------------------------------------------
    def sent(self, obj) -> tuple | None:
        """Return what is sent for an RRef, or None for another object."""
        if not isinstance(obj, PyRRef):
            return None
        fork = self.new_identity()
        with self._lock:
            if obj.is_owner():
                self.add_fork(obj._identity, fork)
            else:
                obj._check_created()
                self._passed_on[fork] = obj
        return tuple(obj._identity), tuple(fork), obj._owner, self.worker

    def received(self, sent: tuple) -> PyRRef:
        """Return the RRef that another worker has sent."""
        identity, fork, owner, sender = Identity(*sent[0]), Identity(*sent[1]), sent[2], sent[3]
        if owner == self.worker:
            rref = RRef._of(self, identity, owner, None)
            if sender == owner:
                self.drop_fork(identity, fork)
            else:
                self.agent.ask(sender, "accepted", (fork,))
            return rref
        rref = RRef._of(self, identity, owner, fork)
        self.register(rref)
        if getattr(self._received, "rrefs", None) is not None:
            self._received.rrefs.append(rref)
        if sender == owner:
            rref._confirm(None)
        else:
            confirmed = self.agent.ask(owner, "fork", (identity, fork))

            def done(answer):
                rref._confirm(answer._error)
                self.agent.ask(sender, "accepted", (fork,))

            confirmed.add_done_callback(done)
        return rref

    @contextlib.contextmanager
    def confirmed(self):
        """Wait at the end of the block until the owners know all references that this thread has received in it."""
        outer, self._received.rrefs = getattr(self._received, "rrefs", None), []
        try:
            yield
            for rref in self._received.rrefs:
                rref._created.wait()
        finally:
            self._received.rrefs = outer

    def accepted(self, fork: Identity) -> None:
        with self._lock:
            self._passed_on.pop(fork, None)

    # -- the user ----------------------------------------------------------------------------------------
    def register(self, rref: PyRRef) -> None:
        """Tell the owner when a reference of this worker is collected."""
        self._users.add(rref)
        drop = functools.partial(self._drop, rref._created, rref._owner, rref._identity, rref._fork)
        rref._finalizer = weakref.finalize(rref, self.agent.later, drop)
        rref._finalizer.atexit = False

    def _drop(self, created: Future, owner: int, identity: Identity, fork: Identity) -> None:
        """Tell the owner, once it knows of the fork. Later messages to this worker find it gone, which is no error."""

        def tell(_):
            with contextlib.suppress(RuntimeError):
                self.agent.ask(owner, "drop", (identity, fork))

        created.add_done_callback(tell)

    def drop_all(self) -> None:
        """Drop this worker's references to values of others, as a worker does that is about to leave."""
        for rref in list(self._users):
            rref._finalizer()

    def debug_info(self) -> dict[str, str]:
        with self._lock:
            pending = [user for user in self._users if not user._created.done()]
            return {
                "num_owner_rrefs": str(len(self._forked)),
                "num_pending_users": str(len(pending)),
                "num_pending_futures": str(len(pending)),
                "num_forks": str(sum(len(value.forks) for value in self._forked.values())),
            }


class PyRRef(Generic[T]):
    """A reference to a value on a worker, its owner.

    ``RRef(value)`` makes one to a value of this worker. ``rpc.remote`` returns one to the result of a call.
    """

    _all: References
    _identity: Identity
    _owner: int
    _fork: Identity | None
    _value: _Value | None

    def __init__(self, value: T, type_hint: Any = None):
        if not state.has_agent():
            raise RuntimeError(
                "Current RPC agent is not set! Did you initialize the RPC framework (e.g. by calling `rpc.init_rpc`)?"
            )
        here = state.references()
        self._set(here, here.new_identity(), here.worker, None)
        self._value.future.set_result(value)

    @classmethod
    def _of(cls, here: References, identity: Identity, owner: int, fork: Identity | None) -> PyRRef:
        rref = cls.__new__(cls)
        rref._set(here, identity, owner, fork)
        return rref

    def _set(self, here: References, identity: Identity, owner: int, fork: Identity | None) -> None:
        self._all, self._identity, self._owner, self._fork = here, identity, owner, fork
        self._value = here.owned(identity) if owner == here.worker else None
        self._created: Future = Future()  # done when the owner has confirmed this reference
        if self._value is not None:
            self._created.set_result(None)

    def _confirm(self, error: Exception | None) -> None:
        if error is None:
            self._created.set_result(None)
        else:
            self._created.set_exception(error)

    def _check_created(self) -> None:
        """Raise the error with which the creation of the value has failed, if it is known."""
        error = self._created._error if self._created.done() else None
        if isinstance(error, TimedOut):
            raise RuntimeError(
                "RRef creation via rpc.remote() timed out, and it is possible that the RRef on the owner node does not exist."
            )
        if error is not None:
            raise error

    # -- what it refers to -------------------------------------------------------------------------------
    def is_owner(self) -> bool:
        """Return whether the value is on this worker."""
        return self._value is not None

    def owner(self) -> WorkerInfo:
        """Return the worker that has the value."""
        return self._all.agent.get_worker_info(self._owner)

    def owner_name(self) -> str:
        """Return the name of the worker that has the value."""
        return self.owner().name

    def confirmed_by_owner(self) -> bool:
        """Return whether the owner knows of this reference."""
        return self._created.done() and self._created._error is None

    def local_value(self) -> T:
        """Return the value itself, on its owner only. Waits until it has been computed."""
        if self._value is None:
            raise RuntimeError(
                f"For UserRRef(rref_id={self._identity}, fork_id={self._fork}), can't call localValue() on user "
                f"{self._all.agent.info}. Call it on owner {self.owner()}"
            )
        return self._own()

    def _own(self) -> T:
        try:
            return self._value.future.wait()
        except RemoteException as error:
            raise error.raised() from None

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> T:
        """Return a copy of the value; on its owner, the value itself. Waits ``timeout`` seconds at most."""
        if self._value is not None:
            return self._own()
        if not self._finalizer.alive:
            raise RuntimeError(f"{self} was deleted. Cannot call to_here() on it after deletion.")
        self._check_created()
        message = Message("fetch", (tuple(self._identity),))
        return value_of(self._all.agent.ask_recorded(self._owner, message, timeout), self._all).wait()

    # -- calls of its methods ----------------------------------------------------------------------------
    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT):
        """Return an object whose methods are those of the value, called with ``rpc_sync``."""
        return RRefProxy(self, rpc_sync, timeout)

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT):
        """Return an object whose methods are those of the value, called with ``rpc_async``."""
        return RRefProxy(self, rpc_async, timeout)

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT):
        """Return an object whose methods are those of the value, called with ``remote``."""
        return RRefProxy(self, remote, timeout)

    def _get_type(self, timeout: float = UNSET_RPC_TIMEOUT, blocking: bool = True):
        """Return the class of the value, or a future of it."""
        if not hasattr(self, "_type"):
            if self._value is not None:
                found: Future = Future()
                found.set_result(type(self.local_value()))
            else:
                self._check_created()
                found = rpc_async(self.owner(), _type_of, (self,), timeout=timeout)
            self._type = found
        return self._type.wait() if blocking else self._type

    def backward(self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False) -> None:
        """Run a backward pass from the value, which must be a tensor with one element.

        Without a context, which is possible on the owner only, its gradients are added to `.grad`.
        """
        if self._value is None:
            if dist_autograd_ctx_id == -1:
                raise RuntimeError("User RRefs require 'dist_autograd_ctx_id' to be specified")
            rpc_sync(self.owner(), _backward, (self, dist_autograd_ctx_id, retain_graph))
        else:
            _backward(self, dist_autograd_ctx_id, retain_graph)

    def _get_future(self) -> Future:
        """Return a future that is done when the owner has confirmed this reference."""
        return self._created

    def __reduce__(self):
        raise RuntimeError("Can not pickle rref in python pickler, rref can only be pickled when using RPC")

    def __str__(self) -> str:
        if self._value is not None:
            return f"OwnerRRef({self._identity})"
        return f"UserRRef(RRefId = {self._identity}, ForkId = {self._fork})"

    __repr__ = __str__


class RRef(PyRRef[T]):
    __doc__ = PyRRef.__doc__


def _type_of(rref: PyRRef) -> type:
    return type(rref.local_value())


def _backward(rref: PyRRef, context: int, retain_graph: bool) -> None:
    value: Any = rref.local_value()
    if isinstance(value, PyRRef):
        value = value.to_here()
    if not isinstance(value, Tensor):
        raise RuntimeError("RRef should contain a tensor for .backward()")
    if context == -1:
        value.backward(retain_graph=retain_graph)
    else:
        autograd.backward(context, [value], retain_graph)


def remote(to, func, args=None, kwargs=None, timeout: float = UNSET_RPC_TIMEOUT) -> RRef:
    """Call ``func(*args, **kwargs)`` on a worker, and return a reference to the result, which stays there.

    Errors of the function are raised where the reference is used.
    """
    worker = worker_of(to)
    agent, here = state.agent(), state.references()
    call = packed_call(func, args, kwargs)
    identity = here.new_identity()
    fork = None if worker == here.worker else here.new_identity()
    rref = RRef._of(here, identity, worker, fork)
    call.kind, call.fields = "remote", (tuple(identity), fork and tuple(fork))
    created = agent.ask_recorded(worker, call, timeout)
    if fork is not None:
        here.register(rref)
        confirm = rref._confirm
        created.add_done_callback(lambda answers: confirm(answers._error))
    return rref
