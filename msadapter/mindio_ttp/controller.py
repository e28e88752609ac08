"""Decides what happens after a failure. Each rank has one; the leader's is at work, at first that of rank 0.

A failure is an error that a rank reports, or a rank that has gone. Then the controller stops all ranks, and

- if every rank is there and the errors are of the kinds that can be repaired: lets all clean up, lets those that lost their memory
  receive it from others or all load the last checkpoint, lets all roll back to the same step, and the training goes on;
- otherwise lets the ranks that have a whole copy of the state write a last checkpoint, and ends all.
"""

import logging
import time

from . import plan
from .names import REPAIRABLE, RET_NO_REBUILD, RET_OK, ReportState
from .plan import Copies, Standing

log = logging.getLogger("mindio_ttp")

_GATHER = 0.3  # seconds in which other reports belong to the same failure
_SILENCE = 20.0  # seconds without a sign of life after which a rank counts as gone
_MOST = 3  # repairs at the same step
_UCE = (ReportState.RS_UCE.value, ReportState.RS_UCE_CORRUPTED.value)


class Failed(Exception):
    """Not all ranks have done what they were ordered."""


class Controller:
    """processor: of the same rank."""

    def __init__(self, processor):
        self.processor, self.rank = processor, processor.rank
        self.everyone = set(range(processor.world_size))
        self.gone: set[int] = set()
        self.done: set[int] = set()
        self._beats: dict[int, tuple[object, float]] = {}
        self._repairs: dict[int | None, int] = {}
        self._heard = 0
        self._errors: list[dict] = []

    @property
    def board(self):
        return self.processor.board

    def run(self) -> None:
        while not self.processor.over.is_set() or self.rank == self.board.leader():
            if self.rank != self.board.leader():
                self._take_over_if_needed()
                time.sleep(0.5)
                continue
            if self._listen(0.5) and self._failed():
                self._handle()
                self.board.set("handled", self._heard)
            if self.done | self.gone == self.everyone:
                return

    def _take_over_if_needed(self) -> None:
        """A rank whose leader has gone takes its place; if several do, the first one succeeds."""
        leader = self.board.leader()
        if leader in self.processor.dead() or self._silent(leader):
            if not self.board.lead(leader, self.rank):
                return
            self._heard = self.board.get("handled") or 0
            self._listen(0.01)
            if leader not in self.done:
                log.warning("rank %d controls the job, because rank %d has gone", self.rank, leader)
                self.gone.add(leader)
                self._errors.append({"rank": leader, "kind": "gone", "ranks": [leader]})
                self._handle()
                self.board.set("handled", self._heard)

    # -- what is heard --------------------------------------------------------------------------------------
    def _listen(self, seconds: float) -> bool:
        """Takes in what was told in this time. True if there was anything."""
        found = False
        while (event := self.board.event(self._heard + 1, 0.01 if found else seconds)) is not None:
            self._heard, found = self._heard + 1, True
            if event["kind"] == "done":
                self.done.add(event["rank"])
            else:
                self.gone |= set(event.get("ranks", event.get("dead", ())))
                self._errors.append(event)
        lost = {rank for rank in self.everyone - self.gone - self.done if self._silent(rank)}
        if lost:
            self.gone |= lost
            self._errors.append({"rank": self.rank, "kind": "gone", "ranks": sorted(lost)})
        return found or bool(lost)

    def _silent(self, rank: int) -> bool:
        """Whether a rank that has given signs of life gives none any more."""
        beat, now = self.board.get(f"beat/{rank}"), time.monotonic()
        known, since = self._beats.get(rank, (None, now))
        if beat is None or beat != known:
            self._beats[rank] = (beat, now)
            return False
        return now - since > _SILENCE

    def _failed(self) -> bool:
        self._errors = [one for one in self._errors if one["kind"] != "gone" or set(one["ranks"]) - self.done]
        return bool(self._errors)

    def _alive(self, rank: int) -> bool:
        return rank not in self.gone and rank not in self.processor.dead()

    def _order(self, action: str, ranks, strict: bool = True, **facts) -> dict[int, dict]:
        """Orders something and returns the answers. Failed if one is missing or an error."""
        ranks = set(ranks)
        number = self.board.command(action, ranks, **facts)
        found = self.board.answers(number, ranks, self.processor.patience + 5, self._alive)
        if strict and (bad := ranks - {rank for rank, one in found.items() if one["ret"] == RET_OK}):
            raise Failed(f"ranks {sorted(bad)} failed to {action}")
        return found

    # -- what is done ---------------------------------------------------------------------------------------
    def _handle(self) -> None:
        time.sleep(_GATHER)
        self._listen(0.01)
        alive = self.everyone - self.gone - self.done
        log.warning("%s", self._said())
        answers = self._order("stop", alive, strict=False)
        self._listen(0.01)
        stopped = {rank: one for rank, one in answers.items() if one["ret"] == RET_OK}
        normal = {
            rank for rank, one in stopped.items() if one["state"] == ReportState.RS_NORMAL.value
        } - self.gone
        self._errors = []
        try:
            if set(stopped) == self.everyone and all(one["state"] in REPAIRABLE for one in stopped.values()):
                self._repair(stopped)
                return
            self._order("clean", normal, type="dump")
        except Failed as failed:
            log.warning("the training cannot go on: %s", failed)
        self._dump(stopped, normal)
        self.board.command("exit", self.everyone - self.gone - self.done)
        if self.processor.keeps_store:
            time.sleep(2.0)  # the others still read their orders

    def _said(self) -> str:
        lines = []
        for one in self._errors:
            if one["kind"] == "gone":
                lines.append(f"the processes of ranks {one['ranks']} have ended or are silent")
            else:
                state = ReportState(one["state"]).name
                lines.append(f"rank {one['rank']} has failed ({state}): {one['text']}")
        return "; ".join(lines)

    def _repair(self, stopped: dict[int, dict]) -> None:
        """All ranks go on from the same step. Failed if they cannot."""
        cleaned = self._order("clean", self.everyone, strict=False, type="retry")
        lost = {rank for rank in cleaned if stopped[rank]["state"] in _UCE}
        bad = {
            rank
            for rank in self.everyone
            if cleaned.get(rank, {"ret": -1})["ret"]
            not in ((RET_OK, RET_NO_REBUILD) if rank in lost else (RET_OK,))
        }
        if bad:
            raise Failed(f"ranks {sorted(bad)} failed to clean up")
        rebuilt = {rank for rank in lost if cleaned[rank]["ret"] == RET_OK}
        retried = any(one["state"] == ReportState.RS_RETRY.value for one in stopped.values())
        found = None if retried else plan.repair(_groups(stopped), _standings(stopped), rebuilt)
        if found is None:
            found = plan.loading(self.everyone, rebuilt)
        self._repairs[found.step] = self._repairs.get(found.step, 0) + 1
        if self._repairs[found.step] > _MOST:
            raise Failed(f"{_MOST} repairs at step {found.step} did not help")
        self._order("retry", self.everyone)
        step = found.step
        if found.infos:
            answers = self._order("repair", found.infos, step=step, infos=found.infos)
            if step is None:
                step = max((one["loaded"] or 0 for one in answers.values()), default=0)
        self._order("rollback", self.everyone, step=step or 0)
        self._order("go on", self.everyone)
        log.warning("repaired: all ranks train on from step %d", step or 0)

    def _dump(self, stopped: dict[int, dict], normal: set[int]) -> None:
        """Ranks that are whole write a last checkpoint."""
        groups = _groups(stopped, self.everyone)
        standings = {rank: one for rank, one in _standings(stopped).items() if rank in normal}
        found = plan.dump(groups, standings) if groups else None
        if found is None:
            log.warning(
                "no last checkpoint can be written: the ranks that are left lack a part of the state, or no step was done"
            )
            return
        try:
            self._order("save", found.infos, step=found.step, infos=found.infos)
            self._order("rename", {min(found.infos)}, step=found.step)
        except Failed as failed:
            log.warning("the last checkpoint was not written: %s", failed)
        else:
            log.warning("ranks %s have written a checkpoint of step %d", sorted(found.infos), found.step)


def _groups(stopped: dict[int, dict], everyone=()) -> plan.Groups:
    """The groups of all ranks. Those of ranks that do not answer are known from the others of the same group."""
    found: dict[int, list[Copies]] = {}
    for rank, one in stopped.items():
        found[rank] = [Copies(tuple(ranks), count) for ranks, count in one["groups"]]
    if any(not one for one in found.values()):
        return {}
    for rank in set(everyone) - set(found):
        known = [
            next(
                (copies for own in found.values() for copies in own[i : i + 1] if rank in copies.ranks), None
            )
            for i in range(max(map(len, found.values()), default=0))
        ]
        if None in known:
            return {}  # a whole group has gone
        found[rank] = known
    return found


def _standings(stopped: dict[int, dict]) -> dict[int, Standing]:
    return {rank: Standing(one["step"], one["updating"]) for rank, one in stopped.items()}
