"""What Linux tells about a process. Standard library only; see doctor.py."""

from __future__ import annotations


def state_of(pid: int) -> str | None:
    """Return the letter of a process's state, such as "R" or "Z".

    None if there is no such process, also if it ends while it is asked about. One that has ended, but for which its parent has
    not waited, has the state "Z".

    Raises:
        OSError: the state cannot be read for another reason.
    """
    try:
        with open(f"/proc/{pid}/stat") as stream:
            text = stream.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(")")[2].split()[0]  # the name before it may contain spaces and parentheses


def has_ended(pid: int) -> bool:
    """Return whether a process runs no more, whether or not its parent has waited for it."""
    state = state_of(pid)
    return state is None or state in "ZX"
