"""The checkpoints of transformers' Trainer in a run's folder, and which of them are whole."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

PREFIX = "checkpoint-"  # before the step
STATE = "trainer_state.json"  # the file that the Trainer writes last


def found(folder: Path) -> list[tuple[int, Path]]:
    """The steps and the folders of the checkpoints, the first step first."""
    places = [place for place in folder.glob(f"{PREFIX}*") if place.name[len(PREFIX) :].isdigit()]
    return sorted((int(place.name[len(PREFIX) :]), place) for place in places)


def last(folder: Path) -> tuple[int, Path] | None:
    """The last one that is whole. One that the Trainer was killed at lacks files, and those before it are as good as ever."""
    return next((one for one in reversed(found(folder)) if not fault(one[1])), None)


def fault(place: Path) -> str:
    """What is wrong with a checkpoint; "" if it is whole."""
    try:
        json.loads((place / STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return f"{STATE} is missing"
    except ValueError:
        return f"{STATE} is truncated"
    weights = sorted(place.glob("*.safetensors"))
    archives = sorted(file for kind in ("*.pt", "*.pth") for file in place.glob(kind))
    cut = [file for file in weights if not _is_whole(file)]
    cut += [file for file in archives if not zipfile.is_zipfile(file)]
    if cut:
        return f"{cut[0].name} is truncated"
    return "" if weights else "it has no weights"


def _is_whole(file: Path) -> bool:
    """Whether a safetensors file has as many bytes as its head says."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(file, framework="numpy"):
            return True
    except SafetensorError:
        return False
