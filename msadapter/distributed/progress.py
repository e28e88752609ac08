"""Polls started operations in a thread while the program computes, because MPI makes progress only inside MPI calls."""

import threading
import time

_INTERVAL = (
    0.001  # seconds between polls; sufficient for a pipeline of 64 KB pieces, and cheap compared with kernels
)
_works: set = set()
_wake = threading.Event()
_polling = threading.Lock()
_thread = None


def follow(work) -> None:
    """Polls `work` until it has ended, and keeps it alive until then."""
    global _thread
    _works.add(work)
    _wake.set()
    if _thread is None or not _thread.is_alive():
        _thread = threading.Thread(target=_run, name="torch.distributed progress", daemon=True)
        _thread.start()


def stop() -> None:
    """Polls nothing any more, because MPI ends."""
    with _polling:
        _works.clear()


def pending() -> list:
    """Operations that have not ended."""
    return [work for work in list(_works) if not work.poll()]


def _run():
    while True:
        _wake.wait()
        with _polling:
            for work in list(_works):
                if work.poll():
                    _works.discard(work)
        if not _works:
            _wake.clear()
            if not _works:  # check again, because one may have been added in the meantime
                continue
            _wake.set()
        time.sleep(_INTERVAL)
