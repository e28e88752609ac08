"""Coordinates the launchers of several machines: which machines take part, when all restart, and when the job ends.

The launchers communicate through a store that one of them runs. A round is one start of all ranks. Launchers join the
round, the first one closes it when enough have joined, and the order of arrival determines the ranks' numbers. A new round
begins after a failure, or when a launcher becomes silent, leaves or joins late.
"""

import contextlib
import socket
import time
from dataclasses import dataclass
from datetime import timedelta

from .errors import DistError
from .tcp_store import TCPStore

DEFAULT_PORT = 29400  # where launchers meet with the backend c10d
RANKS_PATIENCE = "ranks/patience"  # a key of the store
_LOOKS = 1.0  # seconds between checks of the store while ranks run


@dataclass
class Round:
    """One start of all ranks from the view of one launcher."""

    number: int
    place: int  # index of this launcher
    nodes: int
    first_rank: int
    world_size: int


class NewRound(Exception):
    """All ranks must restart."""


class JobEnded(RuntimeError):
    """Another launcher has ended the job."""


class Meeting:
    """One launcher's side of the coordination.

    Raises RuntimeError, which names the missing launchers, if too few arrive within job.join_timeout.
    """

    def __init__(self, job):
        self.job, self.patience = job, timedelta(seconds=job.join_timeout)
        first = job.nodes == 1 or job.node_rank == 0
        if job.node_rank is None and job.nodes > 1:  # the launcher that can bind the port becomes the first
            first = _is_local(job.host)
        try:
            self.store = self._store(first)
            self.keeps_store = first
        except DistError:
            if job.node_rank is not None or not first:
                raise
            self.store, self.keeps_store = self._store(False), False
        self.round: Round | None = None
        self._last_look, self._beats = 0.0, {}

    def _store(self, first):
        job = self.job
        return TCPStore(job.host, job.port, is_master=first, timeout=self.patience, secret=job.secret)

    def _key(self, name):
        return f"agents/{self.job.run_id}/{name}"

    def _set(self, name, value):
        self.store.set(self._key(name), str(value))

    def _add(self, name, value=1) -> int:
        return self.store.add(self._key(name), value)

    def _read(self, name):
        """The text of a key; None if it is not set."""
        key = self._key(name)
        return self.store.get(key).decode() if self.store.check([key]) else None

    def patience_of_ranks(self) -> float:
        """The seconds that ranks have asked for after a failure, in which they write a checkpoint; 0 if none has."""
        with contextlib.suppress(DistError, OSError):  # the machine with the store may have gone
            if self.store.check([RANKS_PATIENCE]):
                return float(self.store.get(RANKS_PATIENCE))
        return 0.0

    # -- a round begins -------------------------------------------------------------------------------------
    def join(self) -> Round:
        """Joins the current round, or the next one if the current round is already closed."""
        end = time.monotonic() + self.job.join_timeout
        while True:
            number = int(self._read("round") or 0)
            place = self.job.node_rank
            if place is not None and self._add(f"{number}/taken/{place}") > 1:
                self._replace(number, place, end)
                continue
            arrived = self._add(f"{number}/arrived")
            place = arrived - 1 if place is None else place
            self._set(f"{number}/size/{place}", self.job.local_size)
            nodes = self._closed(number, place, end)
            if place < nodes:
                break
            self._add(f"{number}/late")
            while int(self._read("round") or 0) == number:
                self._still(
                    end,
                    f"the job runs on {nodes} of at most {self.job.nodes} machines and does not start again",
                )
        sizes = [int(self.store.get(self._key(f"{number}/size/{i}"))) for i in range(nodes)]
        self.round = Round(number, place, nodes, sum(sizes[:place]), sum(sizes))
        self._beats = {}
        return self.round

    def _replace(self, number, place, end) -> None:
        """Ends the round that a lost launcher of this machine had joined. Returns when there may be another round.

        Without this, the others would take this launcher for the lost one, because it answers in its place.
        """
        self._set(f"{number}/replaced", place)
        while True:
            self._check_patience(end, f"the round that machine {place} had joined before does not end")
            time.sleep(0.05)
            with contextlib.suppress(DistError, OSError):  # the store may go with its job
                if int(self._read("round") or 0) > number:
                    return
                if self._read("ended") is None:
                    continue
            with contextlib.suppress(DistError, OSError):
                self.store = self._store(False)  # the next start of the job has a store of its own
                if self._read("ended") is None:
                    return

    def _closed(self, number, place, end) -> int:
        """Waits until a round is closed and returns its number of launchers."""
        job = self.job
        if job.least_nodes == job.nodes and job.node_rank is not None:
            return job.nodes  # all node ranks are given; reading the sizes waits for all launchers
        enough = None
        while (closed := self._read(f"{number}/closed")) is None:
            arrived = self._add(f"{number}/arrived", 0)
            if arrived >= job.least_nodes and enough is None:
                enough = time.monotonic()
            if place == 0 and enough and (arrived >= job.nodes or time.monotonic() - enough > job.last_call):
                self._set(f"{number}/closed", min(arrived, job.nodes))
            self._still(end, f"only {arrived} of at least {job.least_nodes} machines have arrived")
        return int(closed)

    def _check_patience(self, end, what) -> None:
        if time.monotonic() > end:
            raise RuntimeError(f"torchrun: waited {self.job.join_timeout:g} s (join_timeout), but {what}")

    def _still(self, end, what):
        self._check_patience(end, what)
        if (text := self._read("ended")) is not None:
            raise JobEnded(text)
        time.sleep(0.05)

    # -- while ranks run ------------------------------------------------------------------------------------
    def look(self) -> None:
        """Checks the store from time to time. Raises NewRound or JobEnded if the other launchers have decided so."""
        if self.job.nodes == 1 or time.monotonic() - self._last_look < _LOOKS:
            return
        self._last_look = time.monotonic()
        number, place = self.round.number, self.round.place
        try:
            if (text := self._why_ended()) is not None:
                raise JobEnded(text)
            if int(self._read("round") or 0) > number:
                raise NewRound("another machine has asked for it")
            self._add(f"{number}/beat/{place}")
            if self.round.nodes < self.job.nodes and self._read(f"{number}/late"):
                self._open_next(number)
                raise NewRound("a machine has joined")
            lost = self._silent(number)
            what = f"the launchers of machines {lost} have fallen silent" if lost else ""
            if (replaced := self._read(f"{number}/replaced")) is not None:
                what = f"another launcher has come for machine {replaced}"
            if what:
                self._count_failure(what)
                raise NewRound(what)
        except DistError as err:
            raise JobEnded(f"the launcher that keeps the store is gone ({err})") from err

    def _silent(self, number) -> list:
        """The machines whose launcher has been silent for too long."""
        now, lost = time.monotonic(), []
        for node in range(self.round.nodes):
            said = int(self._read(f"{number}/beat/{node}") or 0)
            before, when = self._beats.get(node, (said, now))
            self._beats[node] = (said, now if said != before else when)
            if said == before and now - when > self.job.silence and not self._read(f"end/{number}/{node}"):
                lost.append(node)
        return lost

    def _open_next(self, number):
        self._set("round", number + 1)

    def failed(self, what: str) -> bool:
        """Reports the failure of a rank of this machine. Returns True if all ranks restart.

        Several failures in one round count as one restart.
        """
        try:
            return self._count_failure(what)
        except (DistError, JobEnded):  # the store is gone, so the job has ended
            return False

    def _count_failure(self, what):
        number = self.round.number
        if self._add(f"{number}/failures") > 1:
            return self._why_ended() is None
        if self._add("failures") > self.job.max_restarts:
            self._end(what)
            return False
        self._open_next(number)
        return True

    def _end(self, why: str) -> None:
        """Ends the job. The launcher that keeps the store waits until those of its round know it, but not for lost ones."""
        self._set("ended", why)
        if not self.keeps_store:
            self._why_ended()
            return
        end = time.monotonic() + 2 * _LOOKS
        while time.monotonic() < end and not self._all_know():
            time.sleep(0.05)

    def _all_know(self) -> bool:
        """Whether all other launchers of this round know that the job has ended. Who is in a later round is unknown here."""
        others = [node for node in range(self.round.nodes) if node != self.round.place]
        same = int(self._read("round") or 0) == self.round.number
        return same and all(self._read(f"told/{node}") is not None for node in others)

    def _why_ended(self) -> str | None:
        """Why the job has ended; None if it has not. Then the launcher that keeps the store may go."""
        why = self._read("ended")
        if why is not None:
            with contextlib.suppress(DistError):  # the store may go before it answers
                self._set(f"told/{self.round.place}", 1)
        return why

    # -- the end --------------------------------------------------------------------------------------------
    def agree_on_end(self) -> None:
        """Called when all ranks of this machine have succeeded. Waits until those of all machines have."""
        number, nodes, place = self.round.number, self.round.nodes, self.round.place
        if nodes == 1:
            return
        self._set(f"end/{number}/{place}", 1)
        ends = [self._key(f"end/{number}/{node}") for node in range(nodes)]
        while not self.store.check(ends):
            self.look()
            time.sleep(self.job.interval)
        with contextlib.suppress(
            DistError
        ):  # all ranks have succeeded, so a launcher that is gone does not matter
            if self.keeps_store:
                byes = [self._key(f"bye/{number}/{node}") for node in range(nodes) if node != place]
                self.store.wait(byes, timedelta(seconds=10))
            else:
                self._set(f"bye/{number}/{place}", 1)

    def leave(self, why: str) -> None:
        """Called when this machine leaves. The others restart without it if enough remain; otherwise the job ends."""
        if self.round is None or self.job.nodes == 1:
            return
        with contextlib.suppress(DistError):
            if self.round.nodes > self.job.least_nodes and not self.keeps_store:
                self._open_next(self.round.number)
            else:
                self._end(why)


def _is_local(host: str) -> bool:
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((socket.gethostbyname(host), 0))
        return True
    except OSError:
        return False
