"""How the launchers of several machines agree: on who takes part, on starting again, and on the end.

They meet in a store that one of them keeps. A round is one start of all ranks: launchers arrive, the first of them closes
the round once enough have come, and the order of arrival gives the ranks their numbers. A failure, a launcher that falls
silent, leaves or comes late opens the next round.
"""

import contextlib
import time
from dataclasses import dataclass
from datetime import timedelta

from .errors import DistError
from .tcp_store import TCPStore

_LOOKS = 1.0  # seconds between looks at the store while ranks run


@dataclass
class Round:
    """A start of all ranks as one launcher sees it."""

    number: int
    place: int  # of this launcher
    nodes: int
    first_rank: int
    world_size: int


class NewRound(Exception):
    """All ranks start again."""


class JobEnded(Exception):
    """The job is over because of another launcher."""


class Meeting:
    """One launcher's part. RuntimeError naming what is missing when too few arrive within job.join_timeout."""

    def __init__(self, job):
        self.job, self.patience = job, timedelta(seconds=job.join_timeout)
        first = job.nodes == 1 or job.node_rank == 0
        if job.node_rank is None and job.nodes > 1:  # whoever can take the port is the first
            first = _is_local(job.host)
        try:
            self.store = TCPStore(job.host, job.port, is_master=first, timeout=self.patience)
            self.keeps_store = first
        except DistError:
            if job.node_rank is not None or not first:
                raise
            self.store, self.keeps_store = TCPStore(job.host, job.port, timeout=self.patience), False
        self.round: Round | None = None
        self._last_look, self._beats = 0.0, {}

    def _key(self, name):
        return f"agents/{self.job.run_id}/{name}"

    def _set(self, name, value):
        self.store.set(self._key(name), str(value))

    def _add(self, name, value=1) -> int:
        return self.store.add(self._key(name), value)

    def _read(self, name):
        """The text of a key, None if nobody has set it."""
        key = self._key(name)
        return self.store.get(key).decode() if self.store.check([key]) else None

    # -- a round begins -------------------------------------------------------------------------------------
    def join(self) -> Round:
        """Take part in the current round, or in the next if this one has begun without us."""
        end = time.monotonic() + self.job.join_timeout
        while True:
            number = int(self._read("round") or 0)
            place = self.job.node_rank
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

    def _closed(self, number, place, end) -> int:
        """How many take part in a round, once that is known."""
        job = self.job
        if job.least_nodes == job.nodes and job.node_rank is not None:
            return job.nodes  # everybody's number is given: reading the sizes waits for all
        enough = None
        while (closed := self._read(f"{number}/closed")) is None:
            arrived = self._add(f"{number}/arrived", 0)
            if arrived >= job.least_nodes and enough is None:
                enough = time.monotonic()
            if place == 0 and enough and (arrived >= job.nodes or time.monotonic() - enough > job.last_call):
                self._set(f"{number}/closed", min(arrived, job.nodes))
            self._still(end, f"{arrived} of at least {job.least_nodes} machines have arrived")
        return int(closed)

    def _still(self, end, what):
        if time.monotonic() > end:
            raise RuntimeError(f"after {self.job.join_timeout:g} s {what}")
        if (text := self._read("ended")) is not None:
            raise JobEnded(text)
        time.sleep(0.05)

    # -- while ranks run ------------------------------------------------------------------------------------
    def look(self) -> None:
        """Now and then: NewRound or JobEnded if the others have decided so."""
        if self.job.nodes == 1 or time.monotonic() - self._last_look < _LOOKS:
            return
        self._last_look = time.monotonic()
        number, place = self.round.number, self.round.place
        try:
            if (text := self._read("ended")) is not None:
                raise JobEnded(text)
            if int(self._read("round") or 0) > number:
                raise NewRound("another machine has asked for it")
            self._add(f"{number}/beat/{place}")
            if self.round.nodes < self.job.nodes and self._read(f"{number}/late"):
                self._open_next(number)
                raise NewRound("a machine has joined")
            lost = self._silent(number)
            if lost:
                self._count_failure(f"the launchers of machines {lost} have fallen silent")
                raise NewRound(f"the launchers of machines {lost} have fallen silent")
        except DistError as err:
            raise JobEnded(f"the launcher that keeps the store is gone ({err})") from err

    def _silent(self, number) -> list:
        """Machines whose launcher has not said anything for long."""
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
        """A rank of this machine has failed: whether all start again. A round that fails in several places counts once."""
        try:
            return self._count_failure(what)
        except (DistError, JobEnded):  # the store has gone, and the job with it
            return False

    def _count_failure(self, what):
        number = self.round.number
        if self._add(f"{number}/failures") > 1:
            return self._read("ended") is None
        if self._add("failures") > self.job.max_restarts:
            self._set("ended", what)
            if self.job.nodes > 1 and self.keeps_store:
                time.sleep(2 * _LOOKS)  # the others still read it
            return False
        self._open_next(number)
        return True

    # -- the end --------------------------------------------------------------------------------------------
    def agree_on_end(self) -> None:
        """All ranks here have ended well: wait until they have everywhere (the store lives as long)."""
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
        ):  # all have ended well: nobody need wait for a machine that has gone
            if self.keeps_store:
                byes = [self._key(f"bye/{number}/{node}") for node in range(nodes) if node != place]
                self.store.wait(byes, timedelta(seconds=10))
            else:
                self._set(f"bye/{number}/{place}", 1)

    def leave(self, why: str) -> None:
        """This machine goes: the others start again without it if they may be fewer, else the job is over."""
        if self.round is None or self.job.nodes == 1:
            return
        with contextlib.suppress(DistError):
            if self.round.nodes > self.job.least_nodes and not self.keeps_store:
                self._open_next(self.round.number)
            else:
                self._set("ended", why)
                if self.keeps_store:
                    time.sleep(2 * _LOOKS)


def _is_local(host: str) -> bool:
    import socket

    try:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.bind((socket.gethostbyname(host), 0))
        return True
    except OSError:
        return False
