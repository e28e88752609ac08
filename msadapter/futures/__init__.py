"""torch.futures: values that come later."""

import threading
import types

__all__ = ["Future", "collect_all", "wait_all"]


class Future:
    """A value that another thread sets; callbacks run when it is there."""

    __class_getitem__ = classmethod(types.GenericAlias)

    def __init__(self, *, devices=None):
        self._ready = threading.Event()
        self._lock = threading.Lock()
        self._value = None
        self._error = None
        self._callbacks = []

    def done(self) -> bool:
        """Whether the value or an error is there."""
        return self._ready.is_set()

    def wait(self):
        """The value; an error is raised."""
        self._ready.wait()
        if self._error is not None:
            raise self._error
        return self._value

    def value(self):
        """The value, which must be there."""
        if not self.done():
            raise RuntimeError("The Future is not completed; value() may only be called on a completed one")
        return self.wait()

    def then(self, callback) -> "Future":
        """A future of `callback(this future)`."""
        following = Future()

        def run(future):
            try:
                following.set_result(callback(future))
            except Exception as err:  # the error belongs to whoever waits for the result
                following.set_exception(err)

        self.add_done_callback(run)
        return following

    def add_done_callback(self, callback) -> None:
        """Call `callback(this future)` when it is done."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result) -> None:
        """Set the value."""
        self._finish(result, None)

    def set_exception(self, result) -> None:
        """Set an error."""
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value, error):
        with self._lock:
            if self.done():
                raise RuntimeError("Future can only be marked completed once")
            self._value, self._error = value, error
            self._ready.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback(self)


def collect_all(futures) -> Future:
    """A future of the list of done futures."""
    futures = list(futures)
    result = Future()
    left = [len(futures)]
    lock = threading.Lock()

    def one_done(_):
        with lock:
            left[0] -= 1
            last = left[0] == 0
        if last:
            result.set_result(futures)

    if not futures:
        result.set_result(futures)
    for future in futures:
        future.add_done_callback(one_done)
    return result


def wait_all(futures) -> list:
    """The values of all futures."""
    return [future.wait() for future in collect_all(futures).wait()]
