"""Explains operations that time out: the operation, its group, the missing ranks and the stack of every rank.

Every process has a thread that waits in the job's store for a query. A process whose operation has timed out sends the
query, collects answers for a few seconds and adds them to its error.
"""

import json
import sys
import threading
import time
import traceback

from .._host.troubleshooting import see
from .errors import DistBackendError, DistError
from .store import PrefixStore, _seconds

_ANSWER_PATIENCE = 3.0
_FOREVER = 10 * 365 * 86400.0

seconds = _seconds


class _Watch:
    """Answers and sends queries about the state of the job's processes."""

    def __init__(self):
        self.store = self.rank = self.groups = None

    def start(self, store, rank: int, groups) -> None:
        """Starts to answer queries. `groups()` returns the backends of this process."""
        self.store, self.rank, self.groups = PrefixStore("watchdog", store), rank, groups
        self._thread = threading.Thread(
            target=self._listen, args=(self.store,), name="torch.distributed watchdog", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Stops answering. The thread ends with the process or at the next query."""
        self.store = None

    def _listen(self, store):
        number = 0
        main = threading.main_thread().ident
        while True:
            number += 1
            try:
                store.wait([f"ask/{number}"], _FOREVER)
                if self.store is not store:
                    return
                store.set(f"answer/{number}/{self.rank}", json.dumps(self._standing(main)))
            except (DistError, OSError):  # the store is gone, so the job is ending
                return

    def _standing(self, main):
        frame = sys._current_frames().get(main)
        stack = traceback.format_stack(frame) if frame is not None else []
        places = {}
        for backend in self.groups():
            last = backend.position
            places[backend.name] = [
                backend.sequence,
                last.describe() if last else "nothing yet",
                bool(last is None or last._ended),
            ]
        return {"places": places, "stack": "".join(stack[-6:])}

    def ask(self, ranks) -> dict:
        """Queries the ranks and returns their answers by rank. A dead or stopped rank has no answer."""
        number = self.store.add("count", 1)
        self.store.set(f"ask/{number}", b"1")
        end = time.monotonic() + _ANSWER_PATIENCE
        left, answers = set(ranks) - {self.rank}, {}
        while left and time.monotonic() < end:
            for rank in sorted(left):
                if self.store.check([f"answer/{number}/{rank}"]):
                    answers[rank] = json.loads(self.store.get(f"answer/{number}/{rank}"))
                    left.discard(rank)
            time.sleep(0.02)
        return answers


watch = _Watch()


def late(work, waited: float) -> DistBackendError:
    """The error of an operation that has timed out."""
    backend = work.backend
    head = (
        f"[Rank {watch.rank}] Watchdog caught collective operation timeout: WorkMPI({work.describe()}, "
        f"Timeout(ms)={int(seconds(work.timeout or backend.timeout) * 1000)}) ran for {int(waited * 1000)} milliseconds before "
        f"timing out. Process group {backend.name!r} of ranks {backend.ranks}."
    )
    if watch.store is None:
        return DistBackendError(head)
    try:
        answers = watch.ask(backend.ranks)
    except (DistError, OSError) as err:
        return DistBackendError(f"{head}\nThe job's store does not answer either ({err}).")
    return DistBackendError("\n".join([head, *_report(work, answers)]))


def confirm(has_left) -> None:
    """Wait, before this rank exits, until all ranks have started the operations that it may have finished alone.

    A root can finish a small broadcast although another process is stopped. Without this check it would go unnoticed, and the job
    would never end. has_left(rank) tells whether a rank has exited normally. DistBackendError after the group's timeout.
    """
    if watch.store is None:
        return
    for backend in watch.groups():
        number = getattr(backend, "unconfirmed", 0)
        waiting, begin = set(backend.ranks) - {watch.rank} if number else set(), time.monotonic()
        while waiting:
            try:
                waiting = {rank for rank in waiting if not has_left(rank)}
                answers = watch.ask(waiting)
            except (DistError, OSError):  # the store has gone, and with it whoever could be asked
                return
            for rank, answer in answers.items():
                if answer["places"].get(backend.name, [0])[0] >= number:
                    waiting.discard(rank)
            waited = time.monotonic() - begin
            if waiting and waited > seconds(backend.timeout):
                raise late(backend.position, waited)


def _report(work, answers) -> list:
    backend, lines, missing = work.backend, [], []
    for rank in backend.ranks:
        if rank == watch.rank:
            continue
        if rank not in answers:
            missing.append(rank)
            lines.append(f"Rank {rank} does not answer: its process has ended or is stopped.")
            continue
        sequence, last, ended = answers[rank]["places"].get(backend.name, [0, "not in the group", True])
        if sequence < work.sequence and not work.message:
            missing.append(rank)
        state = "finished" if ended else "is in"
        lines.append(f"Rank {rank} {state} {last} of this group and stands at:\n{answers[rank]['stack']}")
    first = "All ranks have arrived at this operation, or have continued with another one."
    return [f"Ranks that have not arrived: {missing} {see('missing-ranks')}." if missing else first, *lines]


def standing(backend, ranks) -> str:
    """The lines of an error message that show what these ranks are executing, as far as they answer."""
    if watch.store is None:
        return ""
    try:
        answers = watch.ask(ranks)
    except (DistError, OSError):
        return ""
    places = (
        (rank, *answers[rank]["places"].get(backend.name, [0, "nothing", True]))
        for rank in ranks
        if rank in answers
    )
    return "".join(
        f"\nRank {rank} {'finished' if ended else 'is in'} {last}." for rank, _, last, ended in places
    )


def deserted(work, dead) -> DistBackendError:
    """The error of an operation that waits for processes that have terminated."""
    return DistBackendError(
        f"[Rank {watch.rank}] {work.describe()} in process group {work.backend.name!r} of ranks "
        f"{work.backend.ranks} cannot end: the processes of ranks {dead} have ended."
    )


def failure(work, error) -> Exception:
    """The error of an operation in which MPI failed."""
    return DistBackendError(
        f"[Rank {watch.rank}] {work.describe()} in process group {work.backend.name!r}: {error}"
    )
