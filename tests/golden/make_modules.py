"""The suite modules: which submodules of torch stand in sys.modules after `import torch`, by their first two parts."""

from __future__ import annotations

import subprocess
import sys

HEAD = {"python": sys.version.split()[0]}
_PROGRAM = "import sys, torch; print(*sorted(name for name in sys.modules if name.startswith('torch.')))"


def golden_answers(torch) -> dict:
    told = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True).stdout
    found: dict[str, list[str]] = {}
    for name in told.split():
        found.setdefault(".".join(name.split(".")[:2]), []).append(name)
    return found
