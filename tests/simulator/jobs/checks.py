"""The loop with which the programs of this folder run their checks."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable


def run_checks(checks: dict[str, Callable[[], object]]) -> int:
    """Run all checks, or those that the command line names. Print "ok" and the name of each that holds.

    Returns the status of the process: 0 if all hold.
    """
    failed = []
    for name in sys.argv[1:] or checks:
        try:
            checks[name]()
            print("ok", name, flush=True)
        except Exception:
            traceback.print_exc()
            print("FAILED", name, flush=True)
            failed.append(name)
    return bool(failed)
