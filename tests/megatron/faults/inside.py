"""Faults in the middle of what upstream's functions do. Those that end the rank leave a file `where` that says how far it was.

The functions are called like those of sitecustomize.py, with the function that the fault is put around.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

_fault = json.loads(os.environ.get("FAULT", "{}"))
_HEAD_START = 3.0  # seconds that the other rank comes later to the collective
_began: list[float] = []  # when this rank began its part of the step


def _end(where: str) -> None:
    """Says where the rank is and ends it."""
    (Path(_fault["marks"]) / "where").write_text(where)
    os.kill(os.getpid(), signal.SIGKILL)


def kill_waiting(original, *arguments, **named):
    """The last rank is killed while it is inside a collective, in which it waits for the others, which come later."""
    if int(os.environ["RANK"]) + 1 < int(os.environ["WORLD_SIZE"]):
        time.sleep(_HEAD_START)
        return original(*arguments, **named)
    main = threading.main_thread().ident

    def kill() -> None:
        time.sleep(_HEAD_START / 2)
        frame, names = sys._current_frames()[main], []
        while frame is not None and frame.f_code.co_name != "finish_grad_sync":
            names.append(frame.f_code.co_name)
            frame = frame.f_back
        _end(" < ".join(names))

    threading.Thread(target=kill, daemon=True).start()
    return original(*arguments, **named)


def kill_between(original, *arguments, **named):
    """The rank is killed when half of its parameters are updated: their values, averages and counts of steps."""
    from msadapter import ops

    def halved(kernel):
        def half(*columns, **options):
            count = len(columns[0])
            kernel(*(column[: count // 2] for column in columns), **options)
            _end(f"{count // 2} of {count} parameters are updated")

        return half

    for name in ("_fused_adamw_", "_fused_adam_"):
        kernel = getattr(ops, name)
        for module in [one for one in list(sys.modules.values()) if vars(one).get(name) is kernel]:
            setattr(module, name, halved(kernel))
    original(*arguments, **named)
    raise AssertionError("the optimizer has not called a kernel that is known here")


def kill_opening(original, *arguments, **named):
    """The rank is killed when it opens a file of the checkpoint for writing."""

    def hook(event, given) -> None:
        if event == "open" and given[2] & (os.O_WRONLY | os.O_RDWR) and "/iter_" in str(given[0]):
            _end(f"{Path(given[0]).parent.name} is opened")

    sys.addaudithook(hook)
    return original(*arguments, **named)


def hang(original, *arguments, **named):
    """The step does not end, and the process goes on to give signs of life."""
    time.sleep(24 * 3600)


def double(original, *arguments, **named):
    """At the places forward, all-reduce and optimizer together: this rank works exactly as long again in each step.

    It sleeps as long as it has taken from the first forward pass to the reduction of gradients, and as long as the optimizer takes.
    """
    kind = original.__qualname__.rpartition(".")[2]
    if kind == "forward":
        if not _began:
            _began.append(time.perf_counter())
        return original(*arguments, **named)
    if kind == "finish_grad_sync":
        if _began:
            time.sleep(time.perf_counter() - _began.pop())
        return original(*arguments, **named)
    began = time.perf_counter()
    result = original(*arguments, **named)
    time.sleep(time.perf_counter() - began)
    return result
