"""Prints the hashes of the tensors of a Megatron checkpoint as JSON: {part/name: [type, shape, sha256]}.

Run in the environment of upstream's trees, because a checkpoint also has objects of upstream's classes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from megatron_ms.conversion.parts import fact

MARK = "tensors: "


def main() -> None:
    import torch

    folder = Path(sys.argv[1])
    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*/*.pt")):
        state = torch.load(file, map_location="cpu", weights_only=False)
        for chunk in sorted(name for name in state if name.startswith("model")):
            for name, value in state[chunk].items():
                if isinstance(value, torch.Tensor):
                    found[f"{file.parent.name}/{chunk}/{name}"] = fact(value)
    print("\n" + MARK + json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
