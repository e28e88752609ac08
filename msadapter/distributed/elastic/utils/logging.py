"""Loggers whose level is that of the environment variable LOGLEVEL."""

from __future__ import annotations

import inspect
import logging
import os
import warnings

from .log_level import get_log_level


def get_logger(name: str | None = None) -> logging.Logger:
    """The logger of a name, by default the name of the caller's module."""
    logger = logging.getLogger(name or _derive_module_name(depth=2))
    logger.setLevel(os.environ.get("LOGLEVEL", get_log_level()))
    return logger


def _derive_module_name(depth: int = 1) -> str | None:
    """The name of the module that is this many calls above, or the name of its file if it has no module.

    None, with a RuntimeWarning, if there is no such call.
    """
    try:
        frame = inspect.stack(context=0)[depth]
        module = inspect.getmodule(frame.frame)
        return module.__name__ if module else os.path.splitext(os.path.basename(frame.filename))[0]
    except Exception as error:  # a logger without a name is better than none
        warnings.warn(
            f"Error deriving logger module name, using <None>. Exception: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
