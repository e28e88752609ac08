"""The handler of errors that `record` uses unless it is given another one."""

from __future__ import annotations

from .error_handler import ErrorHandler

__all__ = ["get_error_handler"]


def get_error_handler() -> ErrorHandler:
    """Return a handler that writes the error file."""
    return ErrorHandler()
