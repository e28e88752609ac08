"""torch.distributed.elastic.multiprocessing."""

from . import errors, redirects, tail_log
from .api import DefaultLogsSpecs, LogsDest, LogsSpecs, SignalException, Std, to_map
from .errors import ProcessFailure

__all__ = [
    "DefaultLogsSpecs",
    "LogsDest",
    "LogsSpecs",
    "ProcessFailure",
    "SignalException",
    "Std",
    "errors",
    "redirects",
    "tail_log",
    "to_map",
]
