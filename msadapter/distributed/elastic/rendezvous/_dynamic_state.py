"""What the nodes of a dynamic rendezvous share: its settings, its state, and the backend that keeps the state."""

from __future__ import annotations

import io
import os
import pickle
import socket
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

from ...agent import Job
from .api import RendezvousStateError

Token = Any  # what a backend tells the versions of a state apart by
DEFAULT_TIMEOUTS = {  # seconds
    "join": Job.join_timeout,
    "last_call": Job.last_call,
    "close": 30.0,
    "heartbeat": 5.0,
}


class RendezvousBackend(ABC):
    """Keeps the state of a rendezvous. Raises RendezvousConnectionError and RendezvousStateError."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the backend."""

    @abstractmethod
    def get_state(self) -> tuple[bytes, Token] | None:
        """(state, token), or None if there is no state."""

    @abstractmethod
    def set_state(self, state: bytes, token: Token | None = None) -> tuple[bytes, Token, bool] | None:
        """Sets the state if the present one has this token; without a token, if there is none.

        Returns the state that is present afterwards, its token, and whether it has been set.
        """


class RendezvousTimeout:
    """How long a node waits.

    ``join`` is for the rendezvous to be complete (600 s by default), ``last_call`` for further nodes after the least number
    has come (30 s), ``close`` for a rendezvous to be closed (30 s), and ``heartbeat`` for a sign of life to be written (5 s).
    """

    def __init__(
        self,
        join: timedelta | None = None,
        last_call: timedelta | None = None,
        close: timedelta | None = None,
        heartbeat: timedelta | None = None,
    ) -> None:
        self._join = _positive("join", join)
        self._last_call = _positive("last_call", last_call)
        self._close = _positive("close", close)
        self._heartbeat = _positive("heartbeat", heartbeat)

    @property
    def join(self) -> timedelta:
        """Until the rendezvous is complete."""
        return self._join

    @property
    def last_call(self) -> timedelta:
        """For further nodes after the least number has come."""
        return self._last_call

    @property
    def close(self) -> timedelta:
        """Until a rendezvous is closed."""
        return self._close

    @property
    def heartbeat(self) -> timedelta:
        """Until a sign of life is written."""
        return self._heartbeat


def _positive(name: str, timeout: timedelta | None) -> timedelta:
    if timeout is None:
        timeout = timedelta(seconds=DEFAULT_TIMEOUTS[name])
    if timeout <= timedelta(0):
        raise ValueError(f"The {name} timeout ({timeout}) must be positive.")
    return timeout


@dataclass(repr=False, eq=False, frozen=True)
class RendezvousSettings:
    """The settings of a rendezvous. A node is dead after ``keep_alive_max_attempt`` intervals without a sign of life."""

    run_id: str
    min_nodes: int
    max_nodes: int
    timeout: RendezvousTimeout
    keep_alive_interval: timedelta
    keep_alive_max_attempt: int


@dataclass(eq=True, order=True, frozen=True)
class _NodeDesc:
    """A node: its host, its process, and the number of its handler in this process."""

    addr: str
    pid: int
    local_id: int

    def __repr__(self) -> str:
        return f"{self.addr}_{self.pid}_{self.local_id}"


class _NodeDescGenerator:
    """Makes the descriptions of the nodes of this process. Several threads may ask at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._local_id = 0

    def generate(self, local_addr: str | None = None) -> _NodeDesc:
        """The next node, at ``local_addr`` or this host's name."""
        with self._lock:
            number, self._local_id = self._local_id, self._local_id + 1
        return _NodeDesc(local_addr or socket.getfqdn(), os.getpid(), number)


class _RendezvousState:
    """What the nodes share: the round, who takes part with which rank, who waits, who is a spare, and the signs of life.

    ``deadline`` is the end of the last call.
    """

    def __init__(self) -> None:
        self.round = 0
        self.complete = False
        self.deadline: datetime | None = None
        self.closed = False
        self.participants: dict[_NodeDesc, int] = {}
        self.wait_list: set[_NodeDesc] = set()
        self.redundancy_list: set[_NodeDesc] = set()
        self.last_heartbeats: dict[_NodeDesc, datetime] = {}

    def forget(self, nodes: list[_NodeDesc], min_nodes: int) -> None:
        """Takes nodes out of the state. A complete round that nobody is left of ends, and so does a last call of too few."""
        before = len(self.participants)
        for node in nodes:
            del self.last_heartbeats[node]
            self.participants.pop(node, None)
            self.wait_list.discard(node)
            self.redundancy_list.discard(node)
        if len(self.participants) == before:
            return
        if self.complete and not self.participants:
            self.complete = False
            self.round += 1
        elif not self.complete and len(self.participants) < min_nodes:
            self.deadline = None

    def end_round_of_joining(self) -> None:
        """Completes the round: the participants get their ranks, in the order of their descriptions."""
        self.complete, self.deadline = True, None
        for rank, node in enumerate(sorted(self.participants)):
            self.participants[node] = rank


_IN_A_STATE = {
    (one.__module__, one.__qualname__) for one in (_NodeDesc, _RendezvousState, datetime, timedelta, timezone)
}


class _StateReader(pickle.Unpickler):
    """Reads a state. Nothing but what states consist of is made: other processes write them."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _IN_A_STATE:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a rendezvous state")


def read_state(data: bytes) -> _RendezvousState:
    try:
        return _StateReader(io.BytesIO(data)).load()
    except Exception as error:  # whatever is there may raise anything
        raise RendezvousStateError(
            "The rendezvous state is corrupt. See inner exception for details."
        ) from error
