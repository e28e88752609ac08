"""Who saves and who repairs whom, computed from what the ranks have told. Nothing here communicates.

The optimizer's state is divided among the ranks of a group, and there are several copies of it: of 4 ranks and 2 copies, ranks 0
and 2 of the group have the first half, ranks 1 and 3 the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .names import RepairType


@dataclass(frozen=True)
class Copies:
    """The ranks among which a state is divided, in order, and the number of copies of the whole."""

    ranks: tuple[int, ...]
    count: int

    @property
    def parts(self) -> int:
        return len(self.ranks) // self.count

    def holders(self, place: int) -> list[int]:
        """The ranks that have the same part as the one at this place of the group."""
        return list(self.ranks[place % self.parts :: self.parts])


@dataclass(frozen=True)
class Standing:
    """A rank's optimizer: the steps that it has finished, None before the first; and whether it is writing."""

    step: int | None
    updating: bool = False

    def has(self, step: int) -> bool:
        return self.step == step and not self.updating


Groups = Mapping[int, Sequence[Copies]]  # rank -> its groups, by the number of the optimizer


@dataclass(frozen=True)
class Dump:
    """A last checkpoint. infos: rank that saves -> for each optimizer its number and the ranks that save it together."""

    step: int
    infos: dict[int, list[dict]]


@dataclass(frozen=True)
class Repair:
    """The step from which all go on, and what ranks do before. infos: rank -> arguments of its repair callback."""

    step: int | None
    infos: dict[int, dict] = field(default_factory=dict)


def steps(standings: Iterable[Standing]) -> list[int]:
    """The steps that ranks have finished, the last one first."""
    return sorted({one.step for one in standings if one.step is not None and not one.updating}, reverse=True)


def dump(groups: Groups, standings: Mapping[int, Standing]) -> Dump | None:
    """The last checkpoint that these ranks can write together; None if a part of the state is nowhere.

    groups: of all ranks, also of those that have failed. standings: of the ranks that can save.
    """
    for step in steps(standings.values()):
        infos = _savers(groups, {rank for rank, one in standings.items() if one.has(step)})
        if infos is not None:
            return Dump(step, infos)
    return None


def _savers(groups: Groups, able: set[int]) -> dict[int, list[dict]] | None:
    chosen: dict[int, list[dict]] = {}
    for optimizer in range(max(map(len, groups.values()), default=0)):
        for copies in dict.fromkeys(own[optimizer] for own in groups.values()):
            picked = []
            for part in range(copies.parts):
                holders = [rank for rank in copies.holders(part) if rank in able]
                if not holders:
                    return None
                # A rank that saves the first optimizer saves the others as well, because its callback saves all.
                picked.append(next((rank for rank in holders if rank in chosen or not optimizer), holders[0]))
            for rank in picked:
                chosen.setdefault(rank, []).append({"type": optimizer, "ranks": picked})
    return chosen or None


def repair(groups: Groups, standings: Mapping[int, Standing], lost: Iterable[int]) -> Repair | None:
    """How all ranks get to the same step; None if a part of the state is nowhere.

    lost: ranks whose memory was lost. Others that are not at the step of the most advanced one are brought there.
    """
    lost = set(lost)
    able = {rank: one for rank, one in standings.items() if rank not in lost and not one.updating}
    found = steps(able.values())
    if not found:
        return None if lost or any(one.updating for one in standings.values()) else Repair(None)
    step = found[0]
    pairs: dict[int, list[tuple[int, int, int]]] = {}  # rank -> (source, destination, optimizer)
    kinds: dict[int, RepairType] = {}
    for rank in sorted(standings):
        if rank in able and able[rank].has(step):
            continue
        for optimizer, copies in enumerate(groups[rank]):
            holders = copies.holders(copies.ranks.index(rank))
            source = next((one for one in holders if one in able and able[one].has(step)), None)
            if source is None or source in kinds:
                return None
            for one in (rank, source):
                pairs.setdefault(one, []).append((source, rank, optimizer))
        kinds[rank] = RepairType.RT_UCE_HIGHLEVEL if rank in lost else RepairType.RT_RECV_REPAIR
    return Repair(step, {rank: _info(rank, found, kinds) for rank, found in _closed(pairs).items()})


def _closed(pairs: dict[int, list[tuple[int, int, int]]]) -> dict[int, tuple[list, list[int]]]:
    """With the pairs of each rank, the ranks of its repair group: all that are connected by pairs."""
    groups: list[set[int]] = []
    for found in pairs.values():
        joined = {rank for source, target, _ in found for rank in (source, target)}
        for one in [one for one in groups if one & joined]:
            groups.remove(one)
            joined |= one
        groups.append(joined)
    return {
        rank: (found, sorted(next(one for one in groups if rank in one))) for rank, found in pairs.items()
    }


def _info(rank: int, found: tuple[list, list[int]], kinds: Mapping[int, RepairType]) -> dict:
    pairs, ranks = found
    return {
        "type": [optimizer for _, _, optimizer in pairs],
        "repair_type": kinds.get(rank, RepairType.RT_SEND).value,
        "src": [source for source, _, _ in pairs],
        "dst": [target for _, target, _ in pairs],
        "rank_list": ranks,
    }


def loading(ranks: Iterable[int], lost: Iterable[int]) -> Repair:
    """All ranks load the last checkpoint. The step is what they then report."""
    lost = set(lost)
    infos = {}
    for rank in ranks:
        kind = RepairType.RT_LOAD_REBUILD if rank in lost else RepairType.RT_LOAD_CKPT
        infos[rank] = {"type": [0], "repair_type": kind.value, "src": [], "dst": [], "rank_list": []}
    return Repair(None, infos)
