"""torch.distributed.pipelining: parts of a model on several ranks, which work on several microbatches at the same time."""

from . import schedules
from ._IR import Pipe, SplitPoint, pipe_split, pipeline
from .schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from .stage import PipelineStage, build_stage

__all__ = [  # noqa: PLE0604
    *(name for name in schedules.__all__ if name.startswith("Schedule")),
    "Pipe",
    "PipelineStage",
    "SplitPoint",
    "build_stage",
    "pipe_split",
    "pipeline",
]
