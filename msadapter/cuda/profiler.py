"""torch.cuda.profiler: starts and stops an external profiler. There is none, so the functions have no effect."""

from contextlib import contextmanager


def start() -> int:
    """Does nothing and returns 0, the code for success."""
    return 0


def stop() -> int:
    """Does nothing and returns 0, the code for success."""
    return 0


@contextmanager
def profile():
    """A block between start() and stop()."""
    start()
    try:
        yield
    finally:
        stop()
