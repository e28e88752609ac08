"""Records what a training step of the course's model launches on the simulated NPU: .venv/bin/python course/answers/npu.py

The first run builds the simulated NPU, which takes some minutes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path

COURSE = Path(__file__).resolve().parents[1]


def measured() -> dict:
    """The losses of two steps, and how often the second launched each operator.

    Raises:
        CalledProcessError: the step failed.
    """
    command = [sys.executable, "-m", "msadapter", "--simulated-npu", str(COURSE / "programs/step.py")]
    done = subprocess.run(
        command,
        cwd=COURSE.parent,
        env=os.environ | {"MSADAPTER_DEVICE": "npu"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    origin = f"simulated NPU, MindSpore {version('mindspore')}, recorded by course/answers/npu.py on {date.today()}"
    path = Path(__file__).with_name("npu_operators.json")
    path.write_text(json.dumps({"origin": origin, **measured()}, indent=1) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
