"""Where events go: the console, or nowhere."""

import logging

_log_handlers: dict[str, logging.Handler] = {
    "console": logging.StreamHandler(),
    "dynamic_rendezvous": logging.NullHandler(),
    "null": logging.NullHandler(),
}


def get_logging_handler(destination: str = "null") -> logging.Handler:
    """The handler of a destination: "console", "dynamic_rendezvous" or "null". KeyError for another one."""
    return _log_handlers[destination]
