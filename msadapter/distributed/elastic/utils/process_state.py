"""The state of a process, as Linux tells it."""

from __future__ import annotations

from ...._host.processes import state_of

__all__ = ["is_uninterruptible_state", "read_proc_state"]


def read_proc_state(pid: int) -> str | None:
    """The letter of a process's state, such as "R" or "Z". None if the process is gone or cannot be read."""
    try:
        return state_of(pid)
    except OSError:
        return None


def is_uninterruptible_state(state: str | None) -> bool:
    """Whether a state is "D": the process waits in the kernel, and no signal reaches it."""
    return state is not None and state.startswith("D")
