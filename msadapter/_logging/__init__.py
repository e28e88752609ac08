"""torch._logging: the levels of torch's loggers."""

from ._internal import (
    DEFAULT_LOGGING,
    LazyString,
    _init_logs,
    dtrace_structured,
    get_structured_logging_overhead,
    getArtifactLogger,
    hide_warnings,
    set_logs,
    trace_structured,
    warning_once,
)

__all__ = [
    "DEFAULT_LOGGING",
    "LazyString",
    "_init_logs",
    "dtrace_structured",
    "getArtifactLogger",
    "get_structured_logging_overhead",
    "hide_warnings",
    "set_logs",
    "trace_structured",
    "warning_once",
]
