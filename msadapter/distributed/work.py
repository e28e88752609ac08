"""Handles of asynchronous operations."""

import os
import threading
import time

from ..futures import Future
from . import progress, watchdog
from .errors import DistBackendError


class Work:
    """A started operation. `result` are its output tensors, and `finish` is called once, at the first wait."""

    timeout = None  # of this operation alone, if it is not that of its group

    def __init__(self, result=None, finish=None, source=-1):
        self._result = list(result or [])
        self._finish = finish
        self._source = source
        self._exception = None

    def _complete(self, timeout=None):
        if self._finish is not None:
            finish, self._finish = self._finish, None
            try:
                finish(timeout)
            except Exception as err:
                self._exception = err
                raise

    def wait(self, timeout=None) -> bool:
        """Waits for the end and returns True. Raises the operation's error."""
        self._complete(timeout)
        if self._exception is not None:
            raise self._exception
        return True

    def is_completed(self) -> bool:
        """True if it has ended."""
        return self._finish is None

    def is_success(self) -> bool:
        """True if it has ended without an error."""
        return self._finish is None and self._exception is None

    def exception(self):
        """Its error, or None."""
        return self._exception

    def synchronize(self) -> None:
        """Wait for the end."""
        self.wait()

    block_current_stream = synchronize

    def result(self) -> list:
        """The output tensors."""
        self.wait()
        return self._result

    def source_rank(self) -> int:
        """The rank of the sender, for a receive."""
        return self._source

    _source_rank = source_rank

    def get_future(self) -> Future:
        """A future of the output tensors. Waiting for it waits for this Work."""
        return _LazyFuture(self.result, self.is_completed)

    def in_background(self) -> None:
        """Lets the background thread poll this operation while the program computes."""

    def abort(self) -> None:
        """Aborts the operation."""
        self._finish = None


_Work = Work


class Together(Work):
    """A Work for several operations."""

    def __init__(self, works):
        super().__init__([t for work in works for t in work._result], self._wait_all)
        self._works = works

    def _wait_all(self, timeout):
        for work in self._works:
            work.wait(timeout)

    def is_completed(self) -> bool:
        if all(work.is_completed() for work in self._works):
            self.wait()
        return super().is_completed()

    def in_background(self) -> None:
        for work in self._works:
            work.in_background()


def together(works) -> Work:
    """One Work for several operations, which continue if it is dropped, because MPI still uses their memory."""
    made = works[0] if len(works) == 1 else Together(works)
    made.in_background()
    return made


_abandoned: list = []  # memory of operations whose ranks did not agree


def abandon(*owned) -> None:
    """Keep the objects of an operation of a failed group alive, because MPI may still write to their memory."""
    _abandoned.append(owned)


_GRACE = (
    0.2  # seconds in which operations of an aborted group may still end, as far as all ranks had begun them
)
_SPINS = 50  # number of polls without yielding
_YIELDS = 0.001  # seconds of yielding before it sleeps between polls
_LOOKS = 0.2  # seconds between two looks at whether the processes that it waits for still run


class MpiWork(Work):
    """A nonblocking MPI operation. The objects in `keep` stay alive until it has ended, even if the caller does not wait for it."""

    def __init__(self, backend, name, tensor, request, result, finish, keep, source=-1, comparison=None):
        super().__init__(result, finish, source)
        self.backend, self.name, self.sequence = backend, name, backend.sequence
        self.shape = None if tensor is None else tuple(tensor.shape)
        self.dtype = None if tensor is None else tensor.dtype
        self._record, self.message = comparison, comparison is None  # messages have no signatures
        self._request, self._keep, self._ended = request, (keep, tensor), False
        self._moved = self._agreed = False  # whether the data, and the signatures, have come
        self._lock = threading.Lock()

    def in_background(self) -> None:
        if not self.poll():
            progress.follow(self)

    def poll(self) -> bool:
        """True if MPI has finished. Any thread may call this. The remaining work is done in wait()."""
        if self._ended:
            return True
        with self._lock:
            if not self._ended:
                try:
                    self._ended = self._test()
                except Exception as err:
                    self._exception, self._ended = watchdog.failure(self, err), True
                if not self._ended and self.backend.aborted:
                    self._give_up()
            return self._ended

    def _give_up(self):
        """Ends the operation with an error, some time after its group was aborted."""
        if time.monotonic() > self.backend.aborted_at + _GRACE:
            abandon(self._keep, self._request, self._record, self._result)
            self._exception = RuntimeError(self.backend.aborted.format(self.describe()))
            self._ended = True

    def _test(self) -> bool:
        """Whether the data has moved and the signatures of all ranks agree; an error as soon as they do not."""
        if self._record is None:
            return self._data_has_moved()
        try:
            self._moved = self._moved or self._data_has_moved()
            self._agreed = self._agreed or self._record.Test()
        except Exception:
            abandon(self._keep, self._request, self._record, self._result)
            self._record.explain()
            raise
        return self._moved and self._agreed

    def _data_has_moved(self) -> bool:
        if self._source >= 0 or not self.name.startswith("RECV"):
            return self._request.Test()
        status = self.backend.mpi.Status()
        ended = self._request.Test(status)
        if ended:
            self._source = status.Get_source()
        return ended

    def _complete(self, timeout=None):
        for _ in range(_SPINS):
            if self.poll():
                break
        else:
            self._patiently(timeout)
        if self._exception is not None:
            raise self._exception
        self._keep = None
        if self._finish is not None:
            finish, self._finish = self._finish, None
            finish()

    def _patiently(self, timeout):
        patience = watchdog.seconds(timeout or self.timeout or self.backend.timeout)
        begin, pause, look = time.monotonic(), 0.00002, _LOOKS
        while not self.poll():
            waited = time.monotonic() - begin
            if waited < _YIELDS:
                os.sched_yield()
                continue
            time.sleep(pause)
            pause = min(pause * 1.2, 0.0005)
            if waited > patience:
                raise watchdog.late(self, waited)
            if waited > look:
                self._see_who_is_alive()
                look = waited + _LOOKS
            self._see_what_others_wait_for(waited)
        if self._record is not None:
            self._record.forget()

    def _see_who_is_alive(self):
        """Raises DistBackendError if a process that this operation needs has terminated."""
        backend = self.backend
        needed = backend.ranks if not self.message else backend.ranks[self._source : self._source + 1]
        dead = backend.ended(needed)
        # its earlier messages may still arrive, so poll once more
        if dead and not self.poll():
            raise watchdog.deserted(self, dead)

    def _see_what_others_wait_for(self, waited):
        """Raises DistBackendError if another rank waits for another operation instead of this one."""
        if self._record is not None:
            try:
                self._record.look(waited)
            except DistBackendError:
                abandon(self._keep, self._request, self._record, self._result)
                raise

    def is_completed(self) -> bool:
        if not self.poll():
            return False
        if self._exception is None:
            self._complete()
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._exception is None

    def exception(self):
        self.is_completed()
        return self._exception

    def describe(self) -> str:
        """The operation's name, shape and sequence number in the group, for messages."""
        what = "" if self.shape is None else f", {list(self.shape)} {self.dtype}"
        return f"{self.name}(SeqNum={self.sequence}{what})"


class _LazyFuture(Future):
    """A future computed on demand: wait() calls `compute()`, and so does done() once `ready()` is true."""

    def __init__(self, compute, ready):
        super().__init__()
        self._compute, self._is_ready = compute, ready

    def _advance(self):
        compute, self._compute = self._compute, None
        if compute is None:  # already done, or running in an outer call
            return
        try:
            result = compute()
        except Exception as err:  # raised to whoever waits for the future
            self.set_exception(err)
        else:
            self.set_result(result)

    def done(self) -> bool:
        if self._compute is not None and self._is_ready():
            self._advance()
        return self._ready.is_set()

    def wait(self):
        self._advance()
        return super().wait()

    def then(self, callback) -> Future:
        def compute():
            self._advance()
            self._ready.wait()
            return callback(self)

        return _LazyFuture(compute, self.done)

    def add_done_callback(self, callback) -> None:
        if self._compute is not None:
            callback(self)  # the callback reads the value, which computes it
        else:
            super().add_done_callback(callback)

    def value(self):
        return self.wait() if self._compute is not None else super().value()
