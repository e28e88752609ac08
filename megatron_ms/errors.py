"""The error that a command shows to its user."""

from __future__ import annotations


class UserError(Exception):
    """Something outside of the program is wrong: a file, a key, an argument. The message names it and says what to do.

    The command line prints the message without a traceback and ends with exit code 2.
    """
