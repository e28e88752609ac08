"""Aborts the communication of this process and makes its groups usable again: torch_npu's stop_device and reinit_process_group.

An aborted group has no state that its ranks agree about: one of them may have begun a collective that another has not. So its
communicator and shared memory are given up, whatever still waits there, and reinit_process_group makes new ones.
"""

import time

from .._errors import unsupported
from .._host import extensions
from . import debug, hccl_backend
from .hccl_backend import HcclBackend
from .mpi_backend import MpiBackend
from .process_group import default_group, resolve, world
from .shared_backend import rebuilt
from .store import PrefixStore

FORCE_STOP = "FORCE STOP"  # the word of torch_npu's errors by which recovery tools know them


class Aborted:
    """Takes the place of the backend of an aborted group: every operation is an error."""

    unconfirmed = 0  # no other rank will begin what this one has ended

    def __init__(self, backend, reason: str):
        self.backend, self.reason = backend, reason

    def __getattr__(self, name):
        found = getattr(self.backend, name)
        return found if name.startswith("_") or not callable(found) else self._refuse

    def __setattr__(self, name, value):
        if name in ("backend", "reason"):
            self.__dict__[name] = value
        else:
            setattr(self.backend, name, value)

    def _refuse(self, *arguments, **named):
        raise RuntimeError(
            f"{FORCE_STOP}: the process group {self.backend.name!r} was aborted by {self.reason}; "
            "torch.distributed.reinit_process_group makes it usable again"
        )

    def ended(self, ranks) -> list:
        """Those of the ranks whose processes are known to have terminated."""
        return self.backend.ended(ranks)

    def close(self) -> None:
        """The group is destroyed. MPI keeps the communicator, which operations of other ranks may still use."""


def abort_all(reason: str) -> None:
    """Aborts all groups of this process. Threads that wait for an operation get an error, and so does every later one."""
    for pg in list(world.pg_map):
        abort = getattr(pg._backend, "abort", None)
        if abort is not None and not isinstance(pg._backend, Aborted):
            abort(f"{FORCE_STOP}: {{}} was aborted by {reason}", time.monotonic())
            pg._backend = Aborted(pg._backend, reason)


def reinit_process_group(group=None, rebuild_link=True):
    """Make a group usable again after torch.npu.stop_device. All its ranks must call this.

    rebuild_link: with False, all groups of this process are made usable, those that were not aborted too, because other ranks
        cannot know of it. With True, only `group` is (by default the group of all ranks), and it is returned.

    Operations of before are lost, also those that were sent and not received. On an NPU rebuild_link=False resumes the
    communicators of HCCL, and rebuild_link=True raises NotImplementedError.
    """
    default_group()
    if rebuild_link:
        chosen = resolve(group)
        if isinstance(_inner(chosen), HcclBackend):
            raise unsupported("torch.distributed.reinit_process_group(rebuild_link=True) on an NPU")
        _rebuild(chosen)
        return chosen
    groups = list(world.pg_map)
    if any(isinstance(_inner(pg), HcclBackend) for pg in groups):
        hccl_backend.resume()
    for pg in groups:
        _rebuild(pg)
    return None


def _inner(pg):
    """The backend of a group that moves data, whatever is around it."""
    backend = pg._backend
    while isinstance(backend, (Aborted, debug.Checked)):
        backend = backend.backend
    return backend


def _rebuild(pg) -> None:
    old = pg._backend.backend if isinstance(pg._backend, Aborted) else pg._backend
    checked, inner = isinstance(old, debug.Checked), _inner(pg)
    if not isinstance(inner, MpiBackend):
        pg._backend = old  # of one process, or of NPUs
        return
    if pg._backend is old:
        inner.abort(f"{FORCE_STOP}: {{}} was given up by reinit_process_group", time.monotonic())
    pg.rebuilds = getattr(pg, "rebuilds", 0) + 1
    store = PrefixStore(f"rebuilt/{pg.rebuilds}", pg.store)
    made = rebuilt(inner, store)
    made.name = pg.group_name
    pg._backend = debug.Checked(made, store, made.timeout) if checked else made


extensions.abort_communication.provide(abort_all)
