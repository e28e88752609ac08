"""torch._C._profiler: where in a program something happened."""

from __future__ import annotations

import sys
import traceback

__all__ = ["gather_traceback", "symbolize_tracebacks"]


def gather_traceback(python: bool = True, script: bool = True, cpp: bool = True) -> traceback.StackSummary:
    """Return the calls that run now, the outermost first. Those of C++ and of TorchScript are never among them."""
    if not python:
        return traceback.StackSummary()
    frames = traceback.walk_stack(sys._getframe(1))
    found = traceback.StackSummary.extract(frames, lookup_lines=False)
    found.reverse()
    return found


def symbolize_tracebacks(tracebacks: list) -> list[list[dict]]:
    """Return the calls of each traceback as dicts, the innermost first."""
    return [
        [{"filename": f.filename, "line": f.lineno, "name": f.name} for f in reversed(one)]
        for one in tracebacks
    ]
