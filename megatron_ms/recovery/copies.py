"""Copies of the checkpoints in memory at a neighbour: each machine sends its files to the next one.

With the usual layouts tensor and pipeline parallel ranks are on one machine, so the next machine has data parallel neighbours.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .manifest import Measured

_PIECE = 32 << 20  # bytes of a message


@dataclass(frozen=True)
class Machine:
    """The machine of this rank. number: among those of the run. local: the rank among its own. ranks: of the machine."""

    number: int
    count: int
    local: int
    ranks: int

    @property
    def leads(self) -> bool:
        """Whether this rank does what is done once on a machine."""
        return self.local == 0


def here() -> Machine:
    """The machine of this rank, as the launcher says."""
    return Machine(
        *(
            int(os.environ.get(name, default))
            for name, default in (
                ("GROUP_RANK", "0"),
                ("GROUP_WORLD_SIZE", "1"),
                ("LOCAL_RANK", "0"),
                ("LOCAL_WORLD_SIZE", "1"),
            )
        )
    )


def exchange(place: Path, machine: Machine, files: Mapping[int, Measured], leaders: Sequence[int]) -> None:
    """Sends the files of this machine's part of a checkpoint to the next one, and receives those of the one before.

    Called by the ranks that lead. files: machine -> what it has. leaders: the rank that leads each machine.
    """
    import torch

    after, before = (machine.number + 1) % machine.count, (machine.number - 1) % machine.count
    sent, received = _pieces(files[machine.number]), _pieces(files[before])
    for number in range(max(len(sent), len(received))):
        work = None
        if number < len(sent):
            name, offset, size = sent[number]
            data = torch.frombuffer(_read(place / name, offset, size), dtype=torch.uint8).to("cuda")
            work = torch.distributed.isend(data, leaders[after])
        if number < len(received):
            name, offset, size = received[number]
            room = torch.empty(size, dtype=torch.uint8, device="cuda")
            torch.distributed.recv(room, leaders[before])
            _write(place / name, offset, room.cpu().numpy())
        if work is not None:
            work.wait()


def _pieces(files: Measured) -> list[tuple[str, int, int]]:
    """File, offset and size of each message. Empty files are none, because they are part of no format."""
    found = []
    for name in sorted(files):
        size = int(files[name][0])
        found += [(name, at, min(_PIECE, size - at)) for at in range(0, size, _PIECE)]
    return found


def _read(file: Path, offset: int, size: int) -> bytearray:
    room = bytearray(size)
    with open(file, "rb") as opened:
        opened.seek(offset)
        if opened.readinto(room) != size:
            raise OSError(f"{file} has become shorter while it was copied to another machine")
    return room


def _write(file: Path, offset: int, data: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "r+b" if offset else "wb") as opened:
        opened.seek(offset)
        opened.write(data)
