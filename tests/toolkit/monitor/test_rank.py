"""How an observed rank ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from megatron_ms.monitor import rank

_RUN = """
import atexit, sys
from megatron_ms.monitor.rank import _end_at_once
atexit.register(lambda: print("at exit, after", repr(sys.last_value)))
class Late:
    def __del__(self): print("taken apart")
late = Late()
try:
    print("before", end=" ")
    raise RuntimeError("the device was lost")
except RuntimeError as error:
    _end_at_once(error)
"""


def test_a_failed_rank_ends_without_taking_the_interpreter_apart() -> None:
    """It prints the error, and calls what is registered for the exit, which asks whether the program has failed."""
    done = subprocess.run(
        [sys.executable, "-c", _RUN],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(rank.__file__).parents[2],
    )
    assert done.returncode == 1
    assert done.stdout == "before at exit, after RuntimeError('the device was lost')\n"
    assert done.stderr.startswith("Traceback") and done.stderr.endswith("RuntimeError: the device was lost\n")
