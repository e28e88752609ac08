"""Moves started operations on while the program computes: MPI only works inside MPI calls."""

import threading
import time

_INTERVAL = (
    0.001  # seconds between polls: often enough for a pipeline of 64 KB pieces, cheap enough beside kernels
)
_works: set = set()
_wake = threading.Event()
_thread = None


def follow(work) -> None:
    """Poll `work` (and keep what it owns alive) until it has ended."""
    global _thread
    _works.add(work)
    _wake.set()
    if _thread is None or not _thread.is_alive():
        _thread = threading.Thread(target=_run, name="torch.distributed progress", daemon=True)
        _thread.start()


def pending() -> list:
    """Operations that have not ended."""
    return [work for work in list(_works) if not work.poll()]


def _run():
    while True:
        _wake.wait()
        for work in list(_works):
            if work.poll():
                _works.discard(work)
        if not _works:
            _wake.clear()
            if not _works:  # one may have come in between
                continue
            _wake.set()
        time.sleep(_INTERVAL)
