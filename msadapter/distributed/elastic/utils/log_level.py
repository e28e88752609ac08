"""The level of logging."""


def get_log_level() -> str:
    """The level of the loggers of `get_logger` if the environment variable LOGLEVEL is not set."""
    return "WARNING"
