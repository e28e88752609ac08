"""The checkpoints of a run: their sizes, and whether every file is there and complete."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path

from ..recovery import manifest
from ..training import trainer_checkpoints

_TORCH = "model_optim_rng.pt"
_UNVERIFIED = "its content cannot be verified, because it was saved without manifests"
_RANK = re.compile(r"mp_rank_(\d\d)(?:_(\d\d\d))?(?:_(\d\d\d))?")


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint: its iteration, bytes, format, and what is wrong with it ("" if nothing is)."""

    iteration: int
    size: int
    format: str
    fault: str


def of(folder: Path, processes: int = 0, verify: bool = False) -> list[Checkpoint]:
    """The checkpoints in a folder, the oldest first.

    processes: how many parts one in the format torch has (tensor x pipeline x expert sizes); 0 if it is not known. verify: whether
    to read all files and compare their sha256 with the manifest. Without it a changed content of the right size is not noticed.
    """
    trainers = [_of_trainer(step, place, verify) for step, place in trainer_checkpoints.found(folder)]
    places = [place for place in folder.glob("iter_*") if place.name[5:].isdigit()]
    manifests = manifest.demanded(folder)
    return [*(_one(place, processes, manifests, verify) for place in sorted(places)), *trainers]


def _of_trainer(step: int, place: Path, verify: bool) -> Checkpoint:
    """A checkpoint of transformers' Trainer, which has no manifest."""
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    fault = trainer_checkpoints.fault(place) or (_UNVERIFIED if verify else "")
    return Checkpoint(step, size, "safetensors", fault)


def _one(place: Path, processes: int, manifests: bool, verify: bool) -> Checkpoint:
    files = [file for file in place.rglob("*") if file.is_file()]
    distributed = any(file.suffix == ".distcp" for file in files) or (place / ".metadata").is_file()
    fault = _distributed_fault(place, files) if distributed else _torch_fault(place, processes)
    fault = fault or next(
        (f"{_near(file, place)} is empty" for file in files if file.stat().st_size == 0), ""
    )
    if manifests:
        fault = fault or manifest.fault(place, content=verify)
    elif verify:
        fault = fault or _UNVERIFIED
    size = sum(file.stat().st_size for file in files)
    return Checkpoint(int(place.name[5:]), size, "torch_dist" if distributed else "torch", fault)


def _distributed_fault(place: Path, files: list[Path]) -> str:
    missing = [name for name in (".metadata", "common.pt", "metadata.json") if not (place / name).is_file()]
    if missing:
        return f"{missing[0]} is missing"
    return "" if any(file.suffix == ".distcp" for file in files) else "it has no .distcp files"


def _torch_fault(place: Path, processes: int) -> str:
    ranks = sorted(rank for rank in place.iterdir() if rank.is_dir() and _RANK.fullmatch(rank.name))
    if not ranks:
        return "it has no mp_rank folders"
    if processes and len(ranks) != processes:
        return f"it has {len(ranks)} of {processes} parts"
    for rank in ranks:
        file = rank / _TORCH
        if not file.is_file():
            return f"{_near(file, place)} is missing"
        for each in sorted(rank.glob("*.pt")):
            if fault := _archive_fault(each):
                return f"{_near(each, place)} {fault}"
    return ""


def _archive_fault(file: Path) -> str:
    """What is wrong with a file of torch.save, whose end lists its parts."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError):
        return "is truncated"
    return "" if any(name.endswith("data.pkl") for name in names) else "contains no tensors"


def _near(file: Path, place: Path) -> str:
    return str(file.relative_to(place))
