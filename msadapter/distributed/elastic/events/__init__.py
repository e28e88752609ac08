"""torch.distributed.elastic.events: events of a job, written as JSON by the loggers of the standard library.

The events of a rendezvous go to the destination "dynamic_rendezvous", which drops them unless a program gives it a handler.
"""

from __future__ import annotations

import inspect
import logging
import os
import socket
import traceback

from .api import Event, EventMetadataValue, EventSource, NodeState, RdzvEvent
from .handlers import get_logging_handler

__all__ = [
    "Event",
    "EventMetadataValue",
    "EventSource",
    "NodeState",
    "RdzvEvent",
    "construct_and_record_rdzv_event",
    "get_logging_handler",
    "record",
    "record_rdzv_event",
]

_RENDEZVOUS = "dynamic_rendezvous"  # the destination of all events of rendezvous
_events_loggers: dict[str, logging.Logger] = {}


def _get_or_create_logger(destination: str = "null") -> logging.Logger:
    """The logger of a destination. Its level is that of the environment variable LOGLEVEL, by default INFO."""
    if destination not in _events_loggers:
        logger = logging.getLogger(f"torchelastic-events-{destination}")
        logger.setLevel(os.environ.get("LOGLEVEL", "INFO"))
        logger.propagate = False  # an event is written once
        logger.addHandler(get_logging_handler(destination))
        _events_loggers[destination] = logger
    return _events_loggers[destination]


def record(event: Event, destination: str = "null") -> None:
    """Writes an event to a destination of `get_logging_handler`."""
    _get_or_create_logger(destination).info(event.serialize())


def record_rdzv_event(event: RdzvEvent) -> None:
    """Writes an event of a rendezvous."""
    _get_or_create_logger(_RENDEZVOUS).info(event.serialize())


def construct_and_record_rdzv_event(
    run_id: str,
    message: str,
    node_state: NodeState,
    name: str = "",
    hostname: str = "",
    pid: int | None = None,
    master_endpoint: str = "",
    local_id: int | None = None,
    rank: int | None = None,
) -> None:
    """Makes an event of a rendezvous and writes it. Does nothing if nobody receives such events.

    The event's name is the caller's file and ``name``, by default the caller's function. ``hostname`` and ``pid`` are by
    default those of this process. With FAILED, the event has the traceback of the exception that is being handled.
    """
    if isinstance(get_logging_handler(_RENDEZVOUS), logging.NullHandler):
        return
    caller = inspect.stack(context=0)[1]
    record_rdzv_event(
        RdzvEvent(
            name=f"{os.path.basename(caller.filename)}:{name or caller.function}",
            run_id=run_id,
            message=message,
            hostname=hostname or socket.getfqdn(),
            pid=pid or os.getpid(),
            node_state=node_state,
            master_endpoint=master_endpoint,
            rank=rank,
            local_id=local_id,
            error_trace=traceback.format_exc() if node_state == NodeState.FAILED else "",
        )
    )
