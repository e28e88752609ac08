"""What every rendezvous has in common: parameters, handlers, a registry of them, results and errors."""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ...store import Store
from ..utils.distributed import get_free_port

__all__ = [
    "RendezvousClosedError",
    "RendezvousConnectionError",
    "RendezvousError",
    "RendezvousGracefulExitError",
    "RendezvousHandler",
    "RendezvousHandlerCreator",
    "RendezvousHandlerRegistry",
    "RendezvousInfo",
    "RendezvousParameters",
    "RendezvousStateError",
    "RendezvousStoreInfo",
    "RendezvousTimeoutError",
    "rendezvous_handler_registry",
]


class RendezvousError(Exception):
    """Any error of a rendezvous."""


class RendezvousClosedError(RendezvousError):
    """The rendezvous has been closed."""


class RendezvousTimeoutError(RendezvousError):
    """The rendezvous has taken too long."""


class RendezvousConnectionError(RendezvousError):
    """The backend cannot be reached."""


class RendezvousStateError(RendezvousError):
    """The state that the backend keeps cannot be read."""


class RendezvousGracefulExitError(RendezvousError):
    """The rendezvous has been closed while this node was a spare one. This is no failure."""


@dataclass
class RendezvousStoreInfo:
    """Where the store of the training processes is."""

    MASTER_ADDR_KEY: ClassVar[str] = "MASTER_ADDR"
    MASTER_PORT_KEY: ClassVar[str] = "MASTER_PORT"
    master_addr: str
    master_port: int

    @staticmethod
    def build(
        rank: int, store: Store, local_addr: str | None, server_port: int | None = None
    ) -> RendezvousStoreInfo:
        """Agrees on an address and a port through ``store``: those of rank 0.

        ``local_addr`` is by default the name of this host, and ``server_port``, the port of a store that is already there, a
        free port.
        """
        address_key, port_key = RendezvousStoreInfo.MASTER_ADDR_KEY, RendezvousStoreInfo.MASTER_PORT_KEY
        if rank == 0:
            store.set(address_key, (local_addr or socket.getfqdn()).encode())
            store.set(port_key, str(server_port or get_free_port()).encode())
        return RendezvousStoreInfo(store.get(address_key).decode(), int(store.get(port_key).decode()))


class RendezvousInfo:
    """The result of a rendezvous: a store of the launchers, this one's rank, and where the training processes' store is."""

    def __init__(self, store: Store, rank: int, world_size: int, bootstrap_store_info: RendezvousStoreInfo):
        self._store, self._rank, self._world_size = store, rank, world_size
        self._bootstrap_store_info = bootstrap_store_info

    @property
    def store(self) -> Store:
        """The store that the members of this rendezvous share."""
        return self._store

    @property
    def rank(self) -> int:
        """The number of this node."""
        return self._rank

    @property
    def world_size(self) -> int:
        """The number of nodes."""
        return self._world_size

    @property
    def bootstrap_store_info(self) -> RendezvousStoreInfo | None:
        """Address and port of the training processes' store."""
        return self._bootstrap_store_info


class RendezvousHandler(ABC):
    """A way in which the nodes of a job find each other and agree on their ranks."""

    @abstractmethod
    def get_backend(self) -> str:
        """The name of the backend."""

    @property
    def use_agent_store(self) -> bool:
        """Whether the training processes may use the store of the rendezvous, at `RendezvousInfo.bootstrap_store_info`."""
        return False

    @abstractmethod
    def next_rendezvous(self) -> RendezvousInfo:
        """Waits until enough nodes have come, and returns what they have agreed on.

        Raises RendezvousClosedError, RendezvousTimeoutError, RendezvousConnectionError or RendezvousStateError.
        """

    @abstractmethod
    def is_closed(self) -> bool:
        """Whether a node has closed the rendezvous. Others may learn of it a little later."""

    @abstractmethod
    def set_closed(self) -> None:
        """Closes the rendezvous: there will not be another one in this job."""

    @abstractmethod
    def num_nodes_waiting(self) -> int:
        """How many nodes have come too late, and wait for the next rendezvous."""

    @abstractmethod
    def get_run_id(self) -> str:
        """The name of the job."""

    @abstractmethod
    def shutdown(self) -> bool:
        """Closes the rendezvous and what it has opened. Returns whether it could be closed."""


class RendezvousParameters:
    """The parameters of a rendezvous. Those of a backend are keyword arguments.

    ValueError if ``backend`` is empty, or unless 1 <= min_nodes <= max_nodes.
    """

    def __init__(
        self,
        backend: str,
        endpoint: str,
        run_id: str,
        min_nodes: int,
        max_nodes: int,
        local_addr: str | None = None,
        **kwargs,
    ):
        _check_backend(backend)
        if min_nodes < 1:
            raise ValueError(
                f"The minimum number of rendezvous nodes ({min_nodes}) must be greater than zero."
            )
        if max_nodes < min_nodes:
            raise ValueError(
                f"The maximum number of rendezvous nodes ({max_nodes}) must be greater than or equal to the "
                f"minimum number of rendezvous nodes ({min_nodes})."
            )
        self.backend, self.endpoint, self.run_id = backend, endpoint, run_id
        self.min_nodes, self.max_nodes, self.local_addr = min_nodes, max_nodes, local_addr
        self.config = kwargs

    def get(self, key: str, default: Any = None) -> Any:
        """A parameter of the backend, or ``default``."""
        return self.config.get(key, default)

    def get_as_bool(self, key: str, default: bool | None = None) -> bool | None:
        """A parameter of the backend that is true or false, as a number or a word too. ValueError if it is neither."""
        value = self.get(key, default)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, str)):
            word = str(value).lower()
            if word in ("1", "true", "t", "yes", "y"):
                return True
            if word in ("0", "false", "f", "no", "n"):
                return False
        raise ValueError(
            f"The rendezvous configuration option '{key}' does not represent a valid boolean value."
        )

    def get_as_int(self, key: str, default: int | None = None) -> int | None:
        """A parameter of the backend as an integer. ValueError if it is none."""
        value = self.get(key, default)
        try:
            return None if value is None else int(value)
        except ValueError as error:
            raise ValueError(
                f"The rendezvous configuration option '{key}' does not represent a valid integer value."
            ) from error


def _check_backend(name: str) -> None:
    if not name:
        raise ValueError("The rendezvous backend name must be a non-empty string.")


RendezvousHandlerCreator = Callable[[RendezvousParameters], RendezvousHandler]


class RendezvousHandlerRegistry:
    """The backends by name: {name: function that makes a handler of parameters}."""

    def __init__(self) -> None:
        self._registry: dict[str, RendezvousHandlerCreator] = {}

    def register(self, backend: str, creator: RendezvousHandlerCreator) -> None:
        """Adds a backend. ValueError if the name is empty, or taken by another function."""
        _check_backend(backend)
        known = self._registry.setdefault(backend, creator)
        if known != creator:
            raise ValueError(
                f"The rendezvous backend '{backend}' cannot be registered with '{creator}' as it is already "
                f"registered with '{known}'."
            )

    def create_handler(self, params: RendezvousParameters) -> RendezvousHandler:
        """Makes a handler. ValueError for an unknown backend, RuntimeError if the handler is that of another one."""
        if params.backend not in self._registry:
            raise ValueError(
                f"The rendezvous backend '{params.backend}' is not registered. Did you forget to call `register`?"
            )
        handler = self._registry[params.backend](params)
        if handler.get_backend() != params.backend:
            raise RuntimeError(
                f"The rendezvous backend '{handler.get_backend()}' does not match the requested backend "
                f"'{params.backend}'."
            )
        return handler


rendezvous_handler_registry = RendezvousHandlerRegistry()
