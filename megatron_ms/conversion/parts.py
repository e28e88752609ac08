"""The files of a Megatron checkpoint, one for each part of the model, for programs in the environment of upstream's trees."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_NO_WEIGHTS = ("optimizer", "rng_state")


def fact(tensor: Any) -> list[Any]:
    """What is compared of a tensor: type, shape and the hash of its bytes."""
    import torch

    raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    return [str(tensor.dtype), list(tensor.shape), hashlib.sha256(raw).hexdigest()]


def copy_weights(source: Path, result: Path, change: Callable[[str, dict[str, Any]], None]) -> None:
    """Copies an iteration without optimizer and random state.

    result: a new folder. change: called with the name of a part, such as mp_rank_00, and its content, which it may change.
    """
    import torch

    for file in sorted(source.glob("*/*.pt")):
        if "optim" in file.name and not file.name.startswith("model"):
            continue
        state = torch.load(file, map_location="cpu", weights_only=False)
        kept = {name: value for name, value in state.items() if name not in _NO_WEIGHTS}
        change(file.parent.name, kept)
        place = result / file.parent.name
        place.mkdir(parents=True)
        torch.save(kept, place / file.name)
