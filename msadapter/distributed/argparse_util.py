"""Arguments of a parser whose defaults are environment variables, as torchrun's are."""

from __future__ import annotations

import os
from argparse import Action

__all__ = ["check_env", "env"]


class env(Action):
    """Takes the default from the variable ``PET_`` and the argument's name in capitals. A required one may stand there alone."""

    def __init__(self, dest, default=None, required=False, **kwargs):
        default = os.environ.get(f"PET_{dest.upper()}", default)
        super().__init__(dest=dest, default=default, required=required and not default, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)


class check_env(Action):
    """A flag, which the variable ``PET_`` and its name in capitals sets too, unless that is 0.

    Raises:
        ValueError: the variable is no number.
    """

    def __init__(self, dest, default=False, **kwargs):
        given = os.environ.get(f"PET_{dest.upper()}")
        default = bool(default) if given is None else bool(int(given))
        super().__init__(dest=dest, const=True, default=default, nargs=0, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, self.const)
