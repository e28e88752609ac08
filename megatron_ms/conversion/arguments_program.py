"""Copies a Megatron checkpoint with other arguments of the training, which it has beside its weights.

    arguments_program.py ITERATION RESULT ARGUMENTS

ITERATION is the folder of an iteration, RESULT a new folder, and ARGUMENTS a JSON object of names and values. Optimizer and random
state are left out. Run in the environment of upstream's trees, because a checkpoint also has objects of upstream's classes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from megatron_ms.conversion.parts import copy_weights


def main() -> None:
    arguments = json.loads(sys.argv[3])

    def change(part: str, content: dict[str, Any]) -> None:
        for name, value in arguments.items():
            setattr(content["args"], name, value)

    copy_weights(Path(sys.argv[1]), Path(sys.argv[2]), change)


if __name__ == "__main__":
    main()
