"""Errors of distributed checkpoints."""

import traceback

__all__ = ["CheckpointException"]
WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]


def _wrap_exception(exc: BaseException):
    """(exception, traceback) in a form that can be sent to other processes."""
    return exc, traceback.extract_tb(exc.__traceback__)


def _is_wrapped_exception(obj) -> bool:
    return isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[0], BaseException)


class CheckpointException(BaseException):
    """Saving or loading failed on some processes. `failures` is {rank: (exception, traceback)}."""

    def __init__(self, msg: str, failures: dict):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self) -> dict:
        return self._failures

    def __str__(self):
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, trace) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            text += "".join(traceback.format_list(trace)) if trace is not None else ""
            text += "".join(traceback.format_exception_only(type(error), error))
        return text
