"""Exchanges values and waits for other processes through a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import contextmanager
from datetime import timedelta

from ...errors import DistStoreError

__all__ = ["barrier", "get_all", "store_timeout", "synchronize"]

_NUM_MEMBERS = "/num_members"
_LAST_MEMBER_CHECKIN = "/last_member"
_TRACE = "/TRACE"
_TRACING_GATE = "/TRACING_GATE"
_MAX_TRACE_MISSING_RANKS = 16
_ANYTHING = "<val_ignored>"  # the value of a key that only has to exist


@contextmanager
def store_timeout(store, timeout: float):
    """A context in which the store waits for ``timeout`` seconds."""
    before = store.timeout
    store.set_timeout(timedelta(seconds=timeout))
    try:
        yield
    finally:
        store.set_timeout(before)


def get_all(store, rank: int, prefix: str, world_size: int) -> list[bytes]:
    """The values of the keys ``{prefix}0``, ``{prefix}1``, ... of all ranks. Waits for those that do not exist yet.

    Rank 0 returns when all ranks have their values, because the store often is a part of its process.
    """
    values = store.multi_get([f"{prefix}{index}" for index in range(world_size)])
    last = _barrier_nonblocking(store, world_size, f"{prefix}/finished")
    if rank == 0:
        store.wait([last])
    return values


def synchronize(
    store, data: bytes, rank: int, world_size: int, key_prefix: str, timeout: float = 300
) -> list[bytes]:
    """Gives ``data`` to all ranks, and returns that of all ranks. ``timeout`` is in seconds.

    The keys stay in the store, so each call needs a prefix of its own.
    """
    with store_timeout(store, timeout):
        store.set(f"{key_prefix}{rank}", data)
        return get_all(store, rank, key_prefix, world_size)


def _barrier_nonblocking(store, world_size: int, key_prefix: str) -> str:
    """Arrives at a barrier. Returns the key that exists when all have arrived."""
    last = key_prefix + _LAST_MEMBER_CHECKIN
    if store.add(key_prefix + _NUM_MEMBERS, 1) == world_size:
        store.set(last, _ANYTHING)
    return last


def _missing(store, world_size: int, key_prefix: str, decoder, trace_timeout: float) -> set[str]:
    """The ranks that have left no trace, at most 16 of them. After the first, there is no more waiting for others."""
    missing: set[str] = set()
    count, patience = 0, timedelta(seconds=trace_timeout)
    for rank in range(1, world_size):
        if count == _MAX_TRACE_MISSING_RANKS:
            break
        try:
            store.wait([f"{key_prefix}{rank}{_TRACE}"], patience)
        except DistStoreError:
            count, patience = count + 1, timedelta(milliseconds=1)
            missing.add(decoder(rank))
    return missing


def _try_detecting_missing_ranks(
    store,
    world_size: int,
    key_prefix: str,
    rank: int,
    rank_decoder: Callable[[int], str],
    trace_timeout: float,
) -> Iterable[str] | None:
    """The ranks that have not arrived: rank 0 looks for them, the others refer to it. None if rank 0 has not arrived."""
    store.set(f"{key_prefix}{rank}{_TRACE}", _ANYTHING)
    if rank == 0:
        missing = _missing(store, world_size, key_prefix, rank_decoder, trace_timeout)
        store.set(f"{key_prefix}{_TRACING_GATE}", _ANYTHING)
        return missing
    try:
        store.wait([f"{key_prefix}{_TRACING_GATE}"])
        return [f"[<check rank 0 ({rank_decoder(0)}) for missing rank info>]"]
    except DistStoreError:
        return None


def barrier(
    store,
    world_size: int,
    key_prefix: str,
    barrier_timeout: float = 300,
    rank: int | None = None,
    rank_tracing_decoder: Callable[[int], str] | None = None,
    trace_timeout: float = 10,
) -> None:
    """Waits until ``world_size`` processes have arrived. A prefix serves for one barrier only.

    Raises DistStoreError after ``barrier_timeout`` seconds. If each process gives its ``rank``, the error names the ranks
    that are missing, for which rank 0 looks for up to ``trace_timeout`` seconds; ``rank_tracing_decoder`` turns a rank into
    what the error says of it.
    """
    if rank is None and rank_tracing_decoder is not None:
        raise AssertionError("Tracing requires rank information")
    with store_timeout(store, barrier_timeout):
        last = _barrier_nonblocking(store, world_size, key_prefix)
        try:
            store.wait([last])
        except DistStoreError:
            if rank is None:
                raise
            decoder = rank_tracing_decoder or str
            missing = _try_detecting_missing_ranks(
                store, world_size, key_prefix, rank, decoder, trace_timeout
            )
            if missing is None:
                raise
            raise DistStoreError(
                f"Timed out waiting on barrier on rank {rank}, for key prefix: {key_prefix} (world_size={world_size}, "
                f"missing_ranks=[{', '.join(missing)}], timeout={barrier_timeout})"
            ) from None
