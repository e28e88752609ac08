"""A rendezvous that nodes may join and leave between two rounds.

The nodes share one state, which a backend keeps. A node reads it, decides by an operation (join, exit, close, keep alive)
what to do next, changes its copy, and writes it back. The backend takes a change only if nobody else has written in the
meantime; otherwise the node decides again, on the new state. A round is complete when the largest number of nodes has come, or the
least number and a last call has passed. Who comes later waits for the next round, or is a spare node if there is no room. A node
without a sign of life counts as dead.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from enum import Enum

from ...store import PrefixStore, Store
from ...tcp_store import TCPStore
from ..events import NodeState, construct_and_record_rdzv_event
from ._dynamic_state import (
    DEFAULT_TIMEOUTS,
    RendezvousBackend,
    RendezvousSettings,
    RendezvousTimeout,
    Token,
    _NodeDesc,
    _NodeDescGenerator,
    _RendezvousState,
    read_state,
)
from .api import (
    RendezvousClosedError,
    RendezvousError,
    RendezvousGracefulExitError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousStoreInfo,
    RendezvousTimeoutError,
)
from .utils import _delay, _PeriodicTimer

__all__ = [
    "DynamicRendezvousHandler",
    "RendezvousBackend",
    "RendezvousSettings",
    "RendezvousTimeout",
    "create_handler",
]

logger = logging.getLogger(__name__)
_ROLLBACK = 5  # seconds after the deadline in which a node still takes itself out of the state
_FIRST_DELAY = (0, 0.3)  # seconds, between which a node chooses, so that not all ask the backend at once
_KEEP_ALIVE_INTERVAL, _KEEP_ALIVE_MAX_ATTEMPT = 5, 3


# -- a node's copy of the state -----------------------------------------------------------------------------
class _RendezvousStateHolder(ABC):
    """A node's copy of the state."""

    @property
    @abstractmethod
    def state(self) -> _RendezvousState:
        """The copy."""

    @abstractmethod
    def sync(self) -> bool | None:
        """Writes a changed copy, or reads the state. Returns whether it was written; None if there was nothing to write."""

    @abstractmethod
    def mark_dirty(self) -> None:
        """Says that the copy has been changed."""


class _BackendRendezvousStateHolder(_RendezvousStateHolder):
    """A copy of the state of a backend, which is read again after ``cache_duration`` seconds."""

    def __init__(
        self, backend: RendezvousBackend, settings: RendezvousSettings, cache_duration: int = 1
    ) -> None:
        self._backend, self._settings, self._cache_duration = backend, settings, cache_duration
        self._state = _RendezvousState()
        self._token: Token = None
        self._dirty = False
        self._last_sync_time = -1.0

    @property
    def state(self) -> _RendezvousState:
        return self._state

    def mark_dirty(self) -> None:
        self._dirty = True

    def _is_fresh(self) -> bool:
        if self._dirty or self._cache_duration <= 0:
            return False
        return self._last_sync_time >= max(time.monotonic() - self._cache_duration, 0)

    def sync(self) -> bool | None:
        if self._is_fresh():
            return None
        has_set: bool | None = None
        if self._dirty:
            # without an answer, the backend has no state, and this node goes on with its own
            own = pickle.dumps(self._state)
            data, self._token, has_set = self._backend.set_state(own, self._token) or (own, None, False)
        else:
            data, self._token = self._backend.get_state() or (None, None)
        self._state = _RendezvousState() if data is None else read_state(data)
        self._dirty, self._last_sync_time = False, time.monotonic()
        self._drop_the_dead()
        return has_set

    def _drop_the_dead(self) -> None:
        settings, beats = self._settings, self._state.last_heartbeats
        oldest = datetime.now(timezone.utc) - settings.keep_alive_interval * settings.keep_alive_max_attempt
        dead = [node for node, beat in beats.items() if beat < oldest]
        if dead:
            logger.debug("rendezvous %s: no sign of life of %s", settings.run_id, dead)
            self._state.forget(dead, settings.min_nodes)


# -- what a node does next ---------------------------------------------------------------------------------
class _Action(Enum):
    """What a node does next."""

    KEEP_ALIVE = 1
    ADD_TO_PARTICIPANTS = 2
    ADD_TO_WAIT_LIST = 3
    ADD_TO_REDUNDANCY_LIST = 4
    REMOVE_FROM_PARTICIPANTS = 5
    REMOVE_FROM_WAIT_LIST = 6
    REMOVE_FROM_REDUNDANCY_LIST = 7
    MARK_RENDEZVOUS_COMPLETE = 8
    MARK_RENDEZVOUS_CLOSED = 9
    SYNC = 10
    ERROR_CLOSED = 11
    ERROR_TIMEOUT = 12
    FINISH = 13


_REMOVALS = (
    _Action.REMOVE_FROM_PARTICIPANTS,
    _Action.REMOVE_FROM_WAIT_LIST,
    _Action.REMOVE_FROM_REDUNDANCY_LIST,
)


class _RendezvousContext:
    """What an operation decides on: the node, the state and the settings."""

    def __init__(self, node: _NodeDesc, state: _RendezvousState, settings: RendezvousSettings) -> None:
        self.node, self.state, self.settings = node, state, settings


_Operation = Callable[[_RendezvousContext, float], _Action]


def _should_keep_alive(ctx: _RendezvousContext) -> bool:
    """Whether it is time for a sign of life of a node that has given one before."""
    beat = ctx.state.last_heartbeats.get(ctx.node)
    return beat is not None and beat <= datetime.now(timezone.utc) - ctx.settings.keep_alive_interval


class _RendezvousExitOp:
    """Takes the node out of the present round."""

    def __call__(self, ctx: _RendezvousContext, deadline: float) -> _Action:
        if ctx.node not in ctx.state.participants:
            return _Action.FINISH
        return _Action.ERROR_TIMEOUT if time.monotonic() > deadline else _Action.REMOVE_FROM_PARTICIPANTS


class _RendezvousJoinOp:
    """Lets the node take part in this round, or in the next one if this one is complete."""

    def __call__(self, ctx: _RendezvousContext, deadline: float) -> _Action:
        state, node = ctx.state, ctx.node
        if state.closed:
            return self._closed(ctx)
        if node in state.redundancy_list:
            # a spare waits without a deadline, until there is room
            full = len(state.participants) == ctx.settings.max_nodes
            return self._wait(ctx) if full else _Action.REMOVE_FROM_REDUNDANCY_LIST
        if state.complete and node in state.participants:
            return _Action.FINISH
        if (late := time.monotonic() - deadline) > 0:
            return self._late(ctx, late)
        if state.complete:
            return self._wait_for_next_round(ctx)
        if node not in state.participants:
            return _Action.ADD_TO_PARTICIPANTS
        return _Action.MARK_RENDEZVOUS_COMPLETE if self._last_call_is_over(ctx) else self._wait(ctx)

    @staticmethod
    def _closed(ctx: _RendezvousContext) -> _Action:
        if ctx.node in ctx.state.redundancy_list:
            raise RendezvousGracefulExitError(
                f"The rendezvous '{ctx.settings.run_id}' is closed, terminating pending rendezvous."
            )
        return _Action.ERROR_CLOSED

    @staticmethod
    def _late(ctx: _RendezvousContext, seconds: float) -> _Action:
        if seconds <= _ROLLBACK:
            if ctx.node in ctx.state.participants:
                return _Action.REMOVE_FROM_PARTICIPANTS
            if ctx.node in ctx.state.wait_list:
                return _Action.REMOVE_FROM_WAIT_LIST
        return _Action.ERROR_TIMEOUT

    def _wait_for_next_round(self, ctx: _RendezvousContext) -> _Action:
        if ctx.node in ctx.state.wait_list:
            return self._wait(ctx)
        has_room = len(ctx.state.participants) < ctx.settings.max_nodes
        return _Action.ADD_TO_WAIT_LIST if has_room else _Action.ADD_TO_REDUNDANCY_LIST

    @staticmethod
    def _last_call_is_over(ctx: _RendezvousContext) -> bool:
        count, end = len(ctx.state.participants), ctx.state.deadline
        enough = ctx.settings.min_nodes <= count <= ctx.settings.max_nodes
        return enough and end is not None and end < datetime.now(timezone.utc)

    @staticmethod
    def _wait(ctx: _RendezvousContext) -> _Action:
        return _Action.KEEP_ALIVE if _should_keep_alive(ctx) else _Action.SYNC


class _RendezvousCloseOp:
    """Closes the rendezvous."""

    def __call__(self, ctx: _RendezvousContext, deadline: float) -> _Action:
        if ctx.state.closed:
            return _Action.FINISH
        return _Action.ERROR_TIMEOUT if time.monotonic() > deadline else _Action.MARK_RENDEZVOUS_CLOSED


class _RendezvousKeepAliveOp:
    """Gives a sign of life if it is time."""

    def __call__(self, ctx: _RendezvousContext, deadline: float) -> _Action:
        if not _should_keep_alive(ctx):
            return _Action.FINISH
        return _Action.ERROR_TIMEOUT if time.monotonic() > deadline else _Action.KEEP_ALIVE


class _RendezvousOpExecutor(ABC):
    """Runs operations."""

    @abstractmethod
    def run(
        self,
        state_handler: _Operation,
        deadline: float,
        update_deadline: Callable[[timedelta], float] | None = None,
    ) -> None:
        """Does what the operation ``state_handler`` decides, until it decides to finish.

        ``deadline`` is a time of `time.monotonic()`. A node that was a spare gets a new one, of ``update_deadline(timeout)``.
        """


class _DistributedRendezvousOpExecutor(_RendezvousOpExecutor):
    """Runs operations of a node on the shared state."""

    def __init__(
        self, node: _NodeDesc, state_holder: _RendezvousStateHolder, settings: RendezvousSettings
    ) -> None:
        self._node, self._state_holder, self._settings = node, state_holder, settings

    def run(
        self,
        state_handler: _Operation,
        deadline: float,
        update_deadline: Callable[[timedelta], float] | None = None,
    ) -> None:
        while True:
            written = self._state_holder.sync()
            if written is not None:
                self._record("its change was written" if written else "another node has written first")
            state = self._state_holder.state
            action = state_handler(_RendezvousContext(self._node, state, self._settings), deadline)
            if action == _Action.FINISH:
                return
            if action == _Action.ERROR_CLOSED:
                raise RendezvousClosedError
            if action == _Action.ERROR_TIMEOUT:
                raise RendezvousTimeoutError
            if action == _Action.SYNC:
                _delay(seconds=1)
                continue
            self._change(state, action)
            if action == _Action.REMOVE_FROM_REDUNDANCY_LIST and update_deadline:
                deadline = update_deadline(self._settings.timeout.join)
            self._state_holder.mark_dirty()

    def _record(self, what: str, node_state: NodeState = NodeState.RUNNING) -> None:
        logger.debug("rendezvous %s, node %s: %s", self._settings.run_id, self._node, what)
        _record(f"{type(self).__name__}.run", self._settings, self._node, what, node_state)

    def _change(self, state: _RendezvousState, action: _Action) -> None:
        """Does an action on the copy of the state."""
        ends = action in (_Action.MARK_RENDEZVOUS_COMPLETE, _Action.MARK_RENDEZVOUS_CLOSED)
        what = f"{action.name.lower().replace('_', ' ')}, round {state.round}"
        self._record(what, NodeState.SUCCEEDED if ends else NodeState.RUNNING)
        node = self._node
        if action == _Action.MARK_RENDEZVOUS_CLOSED:
            state.closed = True
        elif action == _Action.MARK_RENDEZVOUS_COMPLETE:
            state.end_round_of_joining()
        elif action in _REMOVALS:
            state.forget([node], self._settings.min_nodes)
        else:
            state.last_heartbeats[node] = datetime.now(timezone.utc)
            if action == _Action.ADD_TO_PARTICIPANTS:
                self._add(state)
            elif action == _Action.ADD_TO_WAIT_LIST:
                state.redundancy_list.discard(node)
                state.wait_list.add(node)
            elif action == _Action.ADD_TO_REDUNDANCY_LIST:
                state.redundancy_list.add(node)

    def _add(self, state: _RendezvousState) -> None:
        settings = self._settings
        state.wait_list.discard(self._node)
        state.participants[self._node] = 0  # it gets its rank when the round is complete
        count = len(state.participants)
        if count == settings.min_nodes:
            state.deadline = datetime.now(timezone.utc) + settings.timeout.last_call
        if count == settings.max_nodes:
            state.end_round_of_joining()


def _record(
    name: str,
    settings: RendezvousSettings,
    node: _NodeDesc,
    what: str,
    node_state: NodeState = NodeState.RUNNING,
    rank: int | None = None,
) -> None:
    """Records an event of a node."""
    construct_and_record_rdzv_event(
        name=name,
        run_id=settings.run_id,
        message=what,
        node_state=node_state,
        hostname=node.addr,
        pid=node.pid,
        local_id=node.local_id,
        rank=rank,
    )


# -- the handler -------------------------------------------------------------------------------------------
class DynamicRendezvousHandler(RendezvousHandler):
    """A rendezvous whose state a backend keeps. `from_backend` makes one.

    The store of the training processes is one of rank 0. With the environment variable TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 only
    its address and a free port are agreed on, and the training processes make it.
    """

    _node_desc_generator = _NodeDescGenerator()

    @classmethod
    def from_backend(
        cls,
        run_id: str,
        store: Store,
        backend: RendezvousBackend,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        timeout: RendezvousTimeout | None = None,
        keep_alive_interval: int = _KEEP_ALIVE_INTERVAL,
        keep_alive_max_attempt: int = _KEEP_ALIVE_MAX_ATTEMPT,
    ) -> DynamicRendezvousHandler:
        """A handler for a new node of this process. The members of a round share ``store``.

        A node gives a sign of life every ``keep_alive_interval`` seconds, and is dead when ``keep_alive_max_attempt`` of them
        have not come.
        """
        settings = RendezvousSettings(
            run_id,
            min_nodes,
            max_nodes,
            timeout or RendezvousTimeout(),
            timedelta(seconds=keep_alive_interval),
            keep_alive_max_attempt,
        )
        node = cls._node_desc_generator.generate(local_addr)
        holder = _BackendRendezvousStateHolder(backend, settings)
        return cls(node, settings, backend.name, store, holder)

    def __init__(
        self,
        node: _NodeDesc,
        settings: RendezvousSettings,
        backend_name: str,
        store: Store,
        state_holder: _RendezvousStateHolder,
    ) -> None:
        if not settings.run_id:
            raise ValueError("The run id must be a non-empty string.")
        if settings.min_nodes < 1:
            raise ValueError(f"The minimum number of nodes ({settings.min_nodes}) must be greater than zero.")
        if settings.max_nodes < settings.min_nodes:
            raise ValueError(
                f"The maximum number of nodes ({settings.max_nodes}) must be greater than or equal to the minimum "
                f"number of nodes ({settings.min_nodes})."
            )
        self._this_node, self._settings, self._backend_name = node, settings, backend_name
        self._store, self._state_holder = store, state_holder
        self._op_executor = _DistributedRendezvousOpExecutor(node, state_holder, settings)
        self._heartbeat_lock = threading.Lock()  # one thread at a time uses the copy of the state
        self._keep_alive_timer: _PeriodicTimer | None = None
        self._shared_tcp_store_server: Store | None = None
        self._bootstrap_store_info: RendezvousStoreInfo | None = None

    @property
    def settings(self) -> RendezvousSettings:
        """The settings of the rendezvous."""
        return self._settings

    @property
    def use_agent_store(self) -> bool:
        """Whether the training processes use a store of the handler of rank 0."""
        return os.environ.get("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "0") != "1"

    def get_backend(self) -> str:
        """The name of the backend."""
        return self._backend_name

    def get_run_id(self) -> str:
        """The name of the job."""
        return self._settings.run_id

    @contextlib.contextmanager
    def _failures_recorded(self, method: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self._record(method, f"{type(error).__name__}: {error}", NodeState.FAILED)
            raise

    def _record(
        self, method: str, what: str, node_state: NodeState = NodeState.RUNNING, rank: int | None = None
    ) -> None:
        _record(f"{type(self).__name__}.{method}", self._settings, self._this_node, what, node_state, rank)

    def next_rendezvous(self) -> RendezvousInfo:
        """Leaves the present round and joins the next one.

        Raises what `RendezvousHandler.next_rendezvous` does, and RendezvousGracefulExitError if the rendezvous is closed while
        this node is a spare.
        """
        self._record("next_rendezvous", "wants to join the next round")
        with self._failures_recorded("next_rendezvous"):
            self._stop_heartbeats()
            if self._state_holder.state.round == 0:
                _delay(seconds=_FIRST_DELAY)
            deadline = self._get_deadline(self._settings.timeout.join)
            self._op_executor.run(_RendezvousExitOp(), deadline)
            self._op_executor.run(_RendezvousJoinOp(), deadline, self._get_deadline)
            self._start_heartbeats()
            state = self._state_holder.state
            rank, count = state.participants[self._this_node], len(state.participants)
            prefix = f"torch.rendezvous.{self._settings.run_id}.{state.round}"
            store = PrefixStore(prefix, self._store)
        self._record("next_rendezvous", f"has joined round {state.round}", rank=rank)
        logger.info("Node %s has rank %s of %s in round %s", self._this_node, rank, count, state.round)
        return RendezvousInfo(store, rank, count, self._place_of_training_store(rank, store))

    def _place_of_training_store(self, rank: int, store: Store) -> RendezvousStoreInfo:
        """Where the training processes' store is. It stays where it is, unless another node has become rank 0."""
        address = self._this_node.addr
        if not self.use_agent_store:
            return RendezvousStoreInfo.build(rank, store, local_addr=address)
        serves = self._shared_tcp_store_server is not None
        if self._bootstrap_store_info is None or (rank == 0 and not serves):
            port = 0
            if rank == 0:
                server = self._create_tcp_store_server(address, 0)
                self._shared_tcp_store_server, port = server, server.port
            self._bootstrap_store_info = RendezvousStoreInfo.build(rank, store, address, port)
        return self._bootstrap_store_info

    def _create_tcp_store_server(self, master_addr: str, master_port: int) -> TCPStore:
        return TCPStore(master_addr, master_port, is_master=True, multi_tenant=True)

    def is_closed(self) -> bool:
        """Whether the rendezvous is closed."""
        with self._failures_recorded("is_closed"), self._heartbeat_lock:
            self._state_holder.sync()
            return self._state_holder.state.closed

    def set_closed(self) -> None:
        """Closes the rendezvous."""
        with self._failures_recorded("set_closed"), self._heartbeat_lock:
            self._close()

    def num_nodes_waiting(self) -> int:
        """How many nodes wait for the next round."""
        with self._failures_recorded("num_nodes_waiting"), self._heartbeat_lock:
            self._state_holder.sync()
            return len(self._state_holder.state.wait_list)

    def shutdown(self) -> bool:
        """Gives no more signs of life, and closes the rendezvous. Returns False if that fails with a RendezvousError."""
        self._stop_heartbeats()
        try:
            with self._failures_recorded("shutdown"):
                self._close()
            return True
        except RendezvousError as error:
            logger.warning("Node %s could not close the rendezvous: %r", self._this_node, error)
            return False

    def _close(self) -> None:
        self._op_executor.run(_RendezvousCloseOp(), self._get_deadline(self._settings.timeout.close))
        self._record("_close", "has closed the rendezvous", NodeState.SUCCEEDED)

    @staticmethod
    def _keep_alive_weak(weak_self) -> None:
        """Gives a sign of life of a handler that still exists."""
        handler = weak_self()
        if handler is not None:
            handler._keep_alive()

    def _keep_alive(self) -> None:
        with self._heartbeat_lock:
            deadline = self._get_deadline(self._settings.timeout.heartbeat)
            try:
                with self._failures_recorded("_keep_alive"):
                    self._op_executor.run(_RendezvousKeepAliveOp(), deadline)
            except RendezvousError as error:
                logger.warning("Node %s could not give a sign of life: %r", self._this_node, error)

    def _start_heartbeats(self) -> None:
        timer = _PeriodicTimer(self._settings.keep_alive_interval, self._keep_alive_weak, weakref.ref(self))
        timer.set_name(f"RendezvousKeepAliveTimer_{self._this_node.local_id}")
        timer.start()
        self._keep_alive_timer = timer

    def _stop_heartbeats(self) -> None:
        if self._keep_alive_timer is not None:
            self._keep_alive_timer.cancel()

    def _get_deadline(self, timeout: timedelta) -> float:
        return time.monotonic() + timeout.total_seconds()


def _get_timeout(params: RendezvousParameters, key: str) -> timedelta | None:
    seconds = params.get_as_int(f"{key}_timeout")
    return None if seconds is None else timedelta(seconds=seconds)


def _get_number(params: RendezvousParameters, key: str, default: int) -> int:
    number = params.get_as_int(key, default)
    if number is None:
        raise TypeError(f"You passed '{key}=None' as a rendezvous configuration option")
    return number


def create_handler(
    store: Store, backend: RendezvousBackend, params: RendezvousParameters
) -> DynamicRendezvousHandler:
    """Makes a handler of parameters.

    They may have ``join_timeout``, ``last_call_timeout``, ``close_timeout`` and ``heartbeat_timeout`` in seconds
    (`RendezvousTimeout`), ``keep_alive_interval`` in seconds, by default 5, and ``keep_alive_max_attempt``, by default 3.
    """
    try:
        return DynamicRendezvousHandler.from_backend(
            params.run_id,
            store,
            backend,
            params.min_nodes,
            params.max_nodes,
            params.local_addr,
            RendezvousTimeout(*(_get_timeout(params, key) for key in DEFAULT_TIMEOUTS)),
            keep_alive_interval=_get_number(params, "keep_alive_interval", _KEEP_ALIVE_INTERVAL),
            keep_alive_max_attempt=_get_number(params, "keep_alive_max_attempt", _KEEP_ALIVE_MAX_ATTEMPT),
        )
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        construct_and_record_rdzv_event(params.run_id, text, NodeState.FAILED)
        raise
