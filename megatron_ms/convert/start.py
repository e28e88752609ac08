"""Runs the converter as a program file, so that no folder of the caller is on Python's path."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:] = [str(HERE.parents[1]), *(place for place in sys.path if place not in ("", str(HERE)))]

from megatron_ms.convert.__main__ import main  # noqa: E402  (the path comes first)

sys.exit(main())
