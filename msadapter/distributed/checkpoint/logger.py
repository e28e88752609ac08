"""Events of checkpoints for programs that collect them. The logger `c10d-NullHandler-dcp_logger` prints nothing by itself."""

from __future__ import annotations

import functools
import logging
import time
from uuid import uuid4

from ..setup import get_backend, get_rank, get_world_size, is_initialized

__all__: list[str] = []

_dcp_logger = logging.getLogger("c10d-NullHandler-dcp_logger")
_dcp_logger.setLevel(logging.DEBUG)
_dcp_logger.propagate = False
_dcp_logger.addHandler(logging.NullHandler())


def _msg_dict_from_dcp_method_args(*args, **kwargs) -> dict:
    """What the arguments of a step say about its checkpoint: its id, a unique number, and the classes that take part."""
    parts = {
        name: kwargs[name] for name in ("storage_writer", "storage_reader", "planner") if kwargs.get(name)
    }
    where = kwargs.get("checkpoint_id")
    storage = parts.get("storage_writer") or parts.get("storage_reader")
    if not where and storage is not None:
        where = getattr(storage, "checkpoint_id", None)
    found = {"checkpoint_id": where if where is None else str(where), "uuid": str(uuid4().int)}
    return found | {name: type(part).__name__ for name, part in parts.items()}


def _get_msg_dict(func_name: str, *args, **kwargs) -> dict:
    """The event of a call: its checkpoint, the function's name, and, with several processes, the group and the ranks."""
    found = _msg_dict_from_dcp_method_args(*args, **kwargs) | {"func_name": func_name}
    if is_initialized():
        group = kwargs.get("group") or kwargs.get("process_group")
        found |= {
            "backend": str(get_backend(group)),
            "world_size": str(get_world_size()),
            "group_size": str(get_world_size(group)),
            "global_rank": str(get_rank()),
            "local_rank": str(get_rank(group)),
        }
    return found


def _dcp_method_logger(log_exceptions: bool = False, **wrapper_kwargs):
    """Decorate a step of a checkpoint: its start and its end are logged, and with log_exceptions an exception too (times in ns)."""

    def decorator(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            event = _get_msg_dict(function.__name__, *args, **{**wrapper_kwargs, **kwargs})
            begin = time.time_ns()
            _dcp_logger.debug(event | {"event": "start", "time": begin, "log_exceptions": log_exceptions})
            try:
                result = function(*args, **kwargs)
            except BaseException as error:
                if log_exceptions:
                    _dcp_logger.error(
                        event | {"event": "exception", "error": str(error), "time": time.time_ns()}
                    )
                raise
            end = time.time_ns()
            _dcp_logger.debug(event | {"event": "end", "time": end, "times_spent": end - begin})
            return result

        return wrapper

    return decorator
