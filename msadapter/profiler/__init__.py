"""torch.profiler: operators, backward nodes and named ranges, as tables and as a Chrome trace."""

from ._ranges import record_function
from .events import DeviceType
from .profiler import (
    ProfilerAction,
    ProfilerActivity,
    _KinetoProfile,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)


def kineto_available() -> bool:
    """Returns False, because this package has its own recorder instead of Kineto."""
    return False


__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
