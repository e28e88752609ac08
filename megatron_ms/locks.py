"""Locks on files, which keep two processes from working in the same folder. A lock ends with its process."""

from __future__ import annotations

import fcntl
from typing import IO


def take(file: IO) -> bool:
    """Locks an open file until it is closed. False if another process has the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
