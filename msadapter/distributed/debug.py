"""Checks that communicate through the job's store: monitored_barrier and TORCH_DISTRIBUTED_DEBUG=DETAIL."""

import os
import time
from enum import Enum

from . import watchdog
from .errors import DistBackendError, DistStoreError
from .store import PrefixStore, _seconds
from .work import Work

# collectives whose tensors must have equal shapes on all ranks
_SAME_SHAPE = ("allreduce", "reduce", "broadcast", "allgather_into", "reduce_scatter_into")
_SLICE = 0.5  # seconds between two looks whether a group was aborted
_CHECKED = (
    *_SAME_SHAPE,
    "allgather",
    "gather",
    "scatter",
    "reduce_scatter",
    "alltoall",
    "alltoall_single",
    "barrier",
)


class DebugLevel(Enum):
    """How much torch.distributed checks. With DETAIL, the ranks compare each collective before they run it."""

    OFF = 0
    INFO = 1
    DETAIL = 2


_chosen: DebugLevel | None = None  # the level that the program has set


def get_debug_level() -> DebugLevel:
    """The level that the program has set, otherwise the one that TORCH_DISTRIBUTED_DEBUG names.

    ValueError if the variable names no level.
    """
    return _level_of_environment() if _chosen is None else _chosen


def set_debug_level(level: DebugLevel) -> None:
    """Sets the level for groups that are created from now on. TypeError if it is not a DebugLevel."""
    global _chosen
    if not isinstance(level, DebugLevel):
        raise TypeError(f"set_debug_level(): the level must be a DebugLevel, not {type(level).__name__}")
    _chosen = level


def set_debug_level_from_env() -> None:
    """Sets the level that TORCH_DISTRIBUTED_DEBUG names now. ValueError if it names none."""
    set_debug_level(_level_of_environment())


def _level_of_environment() -> DebugLevel:
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise ValueError("The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL.")
    return DebugLevel[name]


for _public in (DebugLevel, get_debug_level, set_debug_level, set_debug_level_from_env):
    _public.__module__ = "torch.distributed"  # where PyTorch finds them in a pickle


def detail() -> bool:
    """True if collectives are compared between ranks before they run."""
    return get_debug_level() is DebugLevel.DETAIL


def monitored_barrier(pg, timeout=None, wait_all_ranks: bool = False) -> None:
    """A barrier in which rank 0 of the group waits for the others. RuntimeError names the ranks that are late."""
    if pg.size() == 1:
        return
    patience = _seconds(timeout or pg.timeout)
    pg.monitored = getattr(pg, "monitored", 0) + 1
    store = PrefixStore(f"monitored/{pg.monitored}", pg.store)
    if pg.rank() == 0:
        missing, end = [], time.monotonic() + patience
        for rank in range(1, pg.size()):
            try:
                store.wait([f"arrived/{rank}"], max(end - time.monotonic(), 0.001))
            except DistStoreError:
                missing.append(pg._ranks[rank])
                if not wait_all_ranks:
                    break
        if missing:
            who = f"Ranks {', '.join(map(str, missing))}" if wait_all_ranks else f"Rank {missing[0]}"
            raise RuntimeError(
                f"[Rank {pg._ranks[0]}]: {who} failed to pass monitoredBarrier in {int(patience * 1000)} ms"
            )
        store.set("all", b"1")
        return
    own = pg._ranks[pg.rank()]
    store.set(f"arrived/{pg.rank()}", b"1")
    try:
        store.wait(["all"], patience)
    except DistStoreError as err:
        raise RuntimeError(
            f"[Rank {own}]: Rank {own} successfully reached monitoredBarrier, but received errors while "
            f"waiting for send/recv from rank {pg._ranks[0]}. Please check rank {pg._ranks[0]} logs for "
            "faulty rank."
        ) from err


class Checked:
    """Wraps a backend so that each collective is first compared between the ranks."""

    def __init__(self, backend, store, timeout):
        self.__dict__.update(backend=backend, store=PrefixStore("detail", store), timeout=timeout, count=0)

    def __getattr__(self, name):
        found = getattr(self.backend, name)
        if name not in _CHECKED:
            return found

        def checked(*arguments) -> Work:
            self._compare(name, arguments)
            return found(*arguments)

        return checked

    def __setattr__(self, name, value):
        if name == "timeout":
            self.__dict__["timeout"] = value
        setattr(self.backend, name, value)

    def _fingerprint(self, name, arguments) -> str:
        tensors = [a for a in arguments if hasattr(a, "dtype")] or [
            a[0] for a in arguments if isinstance(a, list) and a
        ]
        tensor = tensors[-1] if tensors and hasattr(tensors[-1], "dtype") else None
        parts = [f"SequenceNumber={self.count}", f"OpType={name.upper()}"]
        if tensor is not None:
            parts += [f"TensorShape={list(tensor.shape)}"] if name in _SAME_SHAPE else []
            parts.append(f"TensorDtypes={tensor.dtype}")
        parts += [f"Argument={a!r}" for a in arguments if not isinstance(a, list) and not hasattr(a, "dtype")]
        return f"CollectiveFingerPrint({', '.join(parts)})"

    def _wait(self, keys, name):
        """Waits until all ranks have told. RuntimeError if the group is aborted meanwhile."""
        end = time.monotonic() + _seconds(self.timeout)
        while True:
            left = end - time.monotonic()
            try:
                self.store.wait(keys, max(min(left, _SLICE), 0.001))
                return
            except DistStoreError:
                if aborted := getattr(self.backend, "aborted", ""):
                    raise RuntimeError(aborted.format(name.upper())) from None
                if left <= 0:
                    raise

    def _compare(self, name, arguments):
        self.__dict__["count"] += 1
        number, rank, ranks = self.count, self.backend.rank, self.backend.ranks
        own = self._fingerprint(name, arguments)
        self.store.set(f"{number}/{rank}", own)
        keys = [f"{number}/{i}" for i in range(len(ranks))]
        try:
            self._wait(keys, name)
        except DistStoreError as err:
            missing = [ranks[i] for i, key in enumerate(keys) if not self.store.check([key])]
            raise DistBackendError(
                f"[Rank {ranks[rank]}]: ranks {missing} did not call a collective of process group "
                f"{self.backend.name!r} within {_seconds(self.timeout):g} s, while this one is "
                f"running collective: {own}{watchdog.standing(self.backend, missing)}"
            ) from err
        for i, other in enumerate(self.store.multi_get(keys)):
            if other.decode() != own:
                raise RuntimeError(
                    f"Detected mismatch between collectives on ranks. Rank {ranks[rank]} is running "
                    f"collective: {own}, but Rank {ranks[i]} is running collective: {other.decode()}."
                )
        if number > 2:  # all ranks have read the keys of the call before the previous one
            self.store.delete_key(f"{number - 2}/{rank}")
