"""Copies a Megatron checkpoint with other arguments of the training, which it has beside its weights.

    arguments_program.py ITERATION RESULT ARGUMENTS

ITERATION is the folder of an iteration, RESULT a new folder, and ARGUMENTS a JSON object of names and values. Optimizer and random
state are left out. Run in the environment of upstream's trees, because a checkpoint also has objects of upstream's classes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    import torch

    source, result, arguments = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    for file in sorted(source.glob("*/*.pt")):
        if "optim" in file.name and not file.name.startswith("model"):
            continue
        state = torch.load(file, map_location="cpu", weights_only=False)
        kept = {name: value for name, value in state.items() if name not in ("optimizer", "rng_state")}
        for name, value in arguments.items():
            setattr(kept["args"], name, value)
        place = result / file.parent.name
        place.mkdir(parents=True)
        torch.save(kept, place / file.name)


if __name__ == "__main__":
    main()
