"""Runs upstream's program on one rank, observed: python rank.py WATCH.json PROGRAM FLAGS ...

The launcher starts this file instead of the program. It gives signs of life, wraps the functions of upstream that `hooks` lists
when upstream's modules are imported, and then runs the program as `python PROGRAM FLAGS` would.
"""

from __future__ import annotations

import atexit
import os
import runpy
import signal
import sys
from types import FrameType
from typing import NoReturn

from megatron_ms.monitor import hooks
from megatron_ms.monitor.watch import Watch
from megatron_ms.recovery.beats import Heart


def _as_sigterm(number: int, frame: FrameType | None) -> None:
    """SIGUSR1 asks for the same as SIGTERM, which upstream's --exit-signal-handler answers with a checkpoint."""
    os.kill(os.getpid(), signal.SIGTERM)


def _end_at_once(error: Exception) -> NoReturn:
    """Ends the process as an error does, but does not take the interpreter apart first, which takes a second or two.

    The other ranks notice the failure when the process has ended.
    """
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    sys.excepthook(type(error), error, error.__traceback__)
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def main() -> None:
    place, program = sys.argv[1:3]
    watch = Watch.of_file(place)
    heart = Heart(watch.settings.signs, watch.rank, lambda: watch.waiting.inside)
    heart.start()
    watch.heart = heart
    signal.signal(signal.SIGUSR1, _as_sigterm)
    hooks.install(watch)
    sys.argv[:] = sys.argv[2:]
    sys.path[0] = os.path.dirname(os.path.realpath(program))
    try:
        runpy.run_path(program, run_name="__main__")
    except Exception as error:
        heart.failed(error, f"rank {watch.rank}")
        watch.speak()
        _end_at_once(error)


if __name__ == "__main__":
    main()
