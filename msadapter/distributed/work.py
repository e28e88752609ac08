"""Handles of asynchronous operations."""
from ..futures import Future


class Work:
    """An operation that was started. `result` is what wait-ers read; `finish` is called once at the first
    wait."""

    def __init__(self, result=None, finish=None, source=-1):
        self._result = list(result or [])
        self._finish = finish
        self._source = source
        self._exception = None

    def _complete(self, timeout=None):
        if self._finish is not None:
            finish, self._finish = self._finish, None
            try:
                finish(timeout)
            except Exception as err:
                self._exception = err
                raise

    def wait(self, timeout=None) -> bool:
        """Wait for the end; True (an error of the operation is raised)."""
        self._complete(timeout)
        if self._exception is not None:
            raise self._exception
        return True

    def is_completed(self) -> bool:
        """Whether it has ended."""
        return self._finish is None

    def is_success(self) -> bool:
        """Whether it has ended without an error."""
        return self._finish is None and self._exception is None

    def exception(self):
        """Its error, or None."""
        return self._exception

    def synchronize(self) -> None:
        """Wait for the end."""
        self.wait()

    block_current_stream = synchronize

    def result(self) -> list:
        """The tensors that it has written."""
        self.wait()
        return self._result

    def source_rank(self) -> int:
        """The sender of a receive."""
        return self._source

    _source_rank = source_rank

    def get_future(self) -> Future:
        """A future of the tensors."""
        future = Future()
        self.wait()
        future.set_result(self._result)
        return future

    def abort(self) -> None:
        """Give the operation up."""
        self._finish = None


_Work = Work
