"""The error that a command shows to its user, and where docs/troubleshooting.md explains one."""

from __future__ import annotations

PAGE = "docs/troubleshooting.md"
# msadapter/_host/troubleshooting.py has those of the adapter, which cannot be imported before it is built.
ENTRIES = frozenset(
    {
        "already-patched",
        "another-file",
        "busy-folder",
        "c-headers",
        "foreign-output",
        "hf-packages",
        "no-compiler",
        "nothing-to-resume",
        "offline",
        "whole-groups",
    }
)


class UserError(Exception):
    """Something outside of the program is wrong: a file, a key, an argument. The message names it and says what to do.

    The command line prints the message without a traceback and ends with exit code 2.
    """


def first_line(error: BaseException) -> str:
    """The first line of what an error says, or the name of its class if it says nothing."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def see(entry: str) -> str:
    """The address of an entry of the page in parentheses, for the end of a message. KeyError if there is no such entry."""
    if entry not in ENTRIES:
        raise KeyError(entry)
    return f"({PAGE}#{entry})"
