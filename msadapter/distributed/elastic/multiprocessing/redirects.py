"""Lets the standard output or error of this process, and of programs that it starts, go to a file."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

__all__ = ["redirect", "redirect_stderr", "redirect_stdout"]

_NAMES = ("stderr", "stdout")


@contextmanager
def redirect(std: str, to_file: str) -> Iterator[None]:
    """Let a standard stream go to a file, also what libraries in C and started programs write.

    std: "stdout" or "stderr".
    to_file: its folder must exist; a file that is there is overwritten.

    Lines of Python and of C may stand in another order than they were written in, because each has its own buffer.

    Raises:
        ValueError: `std` is another word.
    """
    if std not in _NAMES:
        raise ValueError(f"unknown standard stream <{std}>, must be one of {set(_NAMES)}")
    stream = getattr(sys, std)
    number = stream.fileno()
    before = os.dup(number)
    try:
        with open(to_file, "w+b") as target:
            _lead(stream, number, target.fileno())
            try:
                yield
            finally:
                _lead(stream, number, before)
    finally:
        os.close(before)


def _lead(stream, number: int, target: int) -> None:
    """Write what waits in the buffers of Python and C, then let the descriptor lead to another one."""
    ctypes.CDLL(None).fflush(None)
    stream.flush()
    os.dup2(target, number)


redirect_stdout = partial(redirect, "stdout")
redirect_stderr = partial(redirect, "stderr")
