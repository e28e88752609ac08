"""torch_npu.profiler: the NPU's profiler, whose names are those of its module `profiler`."""

from ...profiler import ProfilerAction, schedule
from . import profiler
from .profiler import (
    AiCMetrics,
    ExportType,
    ProfilerActivity,
    ProfilerLevel,
    _ExperimentalConfig,
    profile,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "AiCMetrics",
    "ExportType",
    "ProfilerAction",
    "ProfilerActivity",
    "ProfilerLevel",
    "_ExperimentalConfig",
    "profile",
    "profiler",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
