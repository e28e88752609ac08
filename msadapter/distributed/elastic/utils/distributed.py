"""Makes the store of a job, and finds free ports."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta

from ...tcp_store import TCPStore
from .api import get_socket_with_port
from .logging import get_logger
from .store import barrier

__all__ = ["create_c10d_store", "get_free_port", "get_socket_with_port"]

logger = get_logger(__name__)


def create_c10d_store(
    is_server: bool,
    server_addr: str,
    server_port: int = -1,
    world_size: int = 1,
    timeout: float = 600,
    wait_for_workers: bool = True,
    retries=3,
    use_libuv: bool | None = None,
) -> TCPStore:
    """A TCPStore of ``world_size`` processes, in which all of them have met if ``wait_for_workers``.

    ``timeout`` is in seconds. Without ``server_port``, the server listens at a port that the system finds for it, so that
    there is nothing to try again: ``retries`` and ``use_libuv`` have no effect.
    """
    if use_libuv is not None:
        logger.warning("create_c10d_store: the argument use_libuv has no effect")
    if server_port == -1 and world_size > 1:
        raise ValueError(
            f"server_port must be specified when world_size > 1, got server_port={server_port}, world_size={world_size}"
        )
    store = TCPStore(
        server_addr,
        max(server_port, 0),
        world_size,
        is_server,
        timedelta(seconds=timeout),
        wait_for_workers,
    )
    if wait_for_workers:
        barrier(store, world_size, key_prefix="_tcp_store/num_members", barrier_timeout=timeout)
    return store


def get_free_port() -> int:
    """A port of localhost that no process uses now. Another one may take it before the caller does."""
    with closing(get_socket_with_port()) as found:
        return found.getsockname()[1]
