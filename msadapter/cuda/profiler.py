"""Start and stop of an outer profiler: there is none to talk to, the calls are accepted."""

from contextlib import contextmanager


def start() -> int:
    """Begin of the interesting part; 0 stands for success."""
    return 0


def stop() -> int:
    """End of the interesting part."""
    return 0


@contextmanager
def profile():
    """A block that is the interesting part."""
    start()
    try:
        yield
    finally:
        stop()
