"""torch.futures: values that are not available yet."""

import logging
import threading
import traceback
import types

__all__ = ["Future", "collect_all", "wait_all"]

_log = logging.getLogger(__name__)


def _failure(error: Exception) -> str:
    """Return PyTorch's description of an error in a callback, with the places where it was raised, the innermost first."""
    places = reversed(traceback.extract_tb(error.__traceback__))
    at = "".join(f"  {place.filename}({place.lineno}): {place.name}\n" for place in places)
    return f"Got the following error when running the callback: {type(error).__name__}: {error}\n\nAt:\n{at}"


class Future:
    """A value that another thread will set. Callbacks run when it is set."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, *, devices=None):
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._value = None
        self._error = None
        self._failed = False  # by `_fail`
        self._callbacks = []

    def __reduce__(self):
        raise RuntimeError("Can not pickle torch.futures.Future")

    def done(self) -> bool:
        """Return whether the value or an error has been set."""
        return self._ready.is_set()

    def wait(self):
        """Wait for the value and return it. If an error was set, raise it."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """Return the value, which must have been set."""
        if not self.done():
            raise RuntimeError("The Future is not completed; value() may only be called on a completed one")
        return self.wait()

    def then(self, callback) -> "Future":
        """Return a future for the result of `callback(this future)`.

        An error in the callback is a RuntimeError for whoever waits for its result.
        """
        if not callable(callback):
            raise TypeError(f"then(): incompatible function arguments: {callback!r} is not callable")
        following = Future()

        def run(future):
            try:
                following.set_result(callback(future))
            except Exception as error:
                following.set_exception(RuntimeError(_failure(error)))

        self.add_done_callback(run)
        return following

    def add_done_callback(self, callback) -> None:
        """Call `callback(this future)` when the value is set. Its errors are logged, and the other callbacks run."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        self._run(callback)

    def _run(self, callback) -> None:
        try:
            callback(self)
        except Exception as error:
            _log.error(_failure(error))

    def set_result(self, result) -> None:
        """Set the value."""
        self._finish(result, None)

    def set_exception(self, result) -> None:
        """Set an error."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _fail(self, error: Exception) -> None:
        """Set an error of the package itself. Other than an error of a program, it ends `collect_all` at once, as in PyTorch."""
        self._failed = True
        self._finish(None, error)

    def _finish(self, value, error):
        with self._lock:
            if self.done():
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. "
                    "Note that a Future can only be marked completed once."
                )
            self._value, self._error = value, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._run(callback)


def collect_all(futures) -> Future:
    """Return a future for the list of the given futures, which is set when all of them are done.

    Waiting for it raises the error of the first of them that has one. A remote procedure call that fails ends it at once; the
    others may not be done then.
    """
    futures = list(futures)
    result = Future()
    left, ended = len(futures), False
    lock = threading.Lock()

    def one_done(future):
        nonlocal left, ended
        with lock:
            left -= 1
            last = not ended and (future._failed or not left)
            ended = ended or last
        if not last:
            return
        errors = [done for done in futures if done._error is not None]
        if future._failed:
            result._fail(future._error)
        elif errors:
            result.set_exception(errors[0]._error)
        else:
            result.set_result(futures)

    if not futures:
        result.set_result(futures)
    for future in futures:
        future.add_done_callback(one_done)
    return result


def wait_all(futures) -> list:
    """Wait for all futures and return their values."""
    return [future.wait() for future in collect_all(futures).wait()]
