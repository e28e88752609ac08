"""Records which submodules of torch stand in sys.modules after `import torch`. Run it under real PyTorch 2.13.0:

python -m tests.golden.make_modules
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch


def main() -> None:
    names = sorted(name for name in sys.modules if name.startswith("torch."))
    answer = {"torch": torch.__version__, "python": sys.version.split()[0], "modules": names}
    Path(__file__).with_name("modules.json").write_text(json.dumps(answer, indent=0) + "\n")


if __name__ == "__main__":
    main()
