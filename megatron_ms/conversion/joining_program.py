"""Writes the divided files of a checkpoint as upstream's own: python joining_program.py FROM INTO"""

from __future__ import annotations

import sys
from pathlib import Path

from megatron_ms.recovery import apart


def main() -> None:
    import torch

    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    for file in sorted(source.rglob("*.pt")):
        state = apart.load(torch.load(file, map_location="cpu", weights_only=False), file)
        torch.save(state, target / file.relative_to(source))


if __name__ == "__main__":
    main()
