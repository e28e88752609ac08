"""torch_npu.profiler.profiler: torch.profiler with the NPU's options, which are stored.

Only work on the CPU is recorded.
"""

from __future__ import annotations

import enum
import os

from ... import profiler as _profiler


class ProfilerActivity(enum.Enum):
    """The kinds of recording."""

    CPU = _profiler.ProfilerActivity.CPU
    NPU = _profiler.ProfilerActivity.PrivateUse1


class ProfilerLevel(enum.Enum):
    """The amount of detail about the device's work."""

    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"
    Level_none = "Level_none"


class AiCMetrics(enum.Enum):
    """The hardware counters of the device's cores that are read."""

    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"
    AiCoreNone = "ACL_AICORE_NONE"


class ExportType(enum.Enum):
    """The format of the device's records."""

    Text = "text"
    Db = "db"


class _ExperimentalConfig:
    """Options of the NPU's profiler."""

    def __init__(
        self,
        profiler_level=ProfilerLevel.Level0,
        aic_metrics=AiCMetrics.AiCoreNone,
        l2_cache: bool = False,
        msprof_tx: bool = False,
        mstx: bool = False,
        data_simplification: bool | None = True,
        record_op_args: bool = False,
        op_attr: bool = False,
        gc_detect_threshold: float | None = None,
        export_type=None,
        **more,
    ):
        self.profiler_level = profiler_level
        self.aic_metrics = aic_metrics
        self.l2_cache = l2_cache
        self.mstx = mstx or msprof_tx
        self.data_simplification = data_simplification
        self.record_op_args = record_op_args
        self.op_attr = op_attr
        self.gc_detect_threshold = gc_detect_threshold
        self.export_type = export_type if isinstance(export_type, list) else [export_type or ExportType.Text]
        self.more = more


class profile(_profiler.profile):
    """torch.profiler.profile that takes this module's activities and configuration."""

    def __init__(self, *, activities=None, **options):
        if activities is not None:
            activities = [one.value if isinstance(one, ProfilerActivity) else one for one in activities]
        super().__init__(activities=activities, **options)


def tensorboard_trace_handler(
    dir_name: str | None = None,
    worker_name: str | None = None,
    analyse_flag: bool = True,
    async_mode: bool = False,
):
    """Return an on_trace_ready function that writes each trace to `dir_name` (default: the present folder).

    The trace is complete when it is written, so analyse_flag and async_mode, which say when the device's raw records are
    analysed, have no effect.
    """
    return _profiler.tensorboard_trace_handler(os.getcwd() if dir_name is None else dir_name, worker_name)


def supported_activities() -> set:
    """Return the activities that are actually recorded."""
    return {ProfilerActivity.CPU}


def analyse(profiler_path: str, max_process_number: int | None = None, export_type=None) -> None:
    """Refuse to analyse raw records of a device. Recordings are complete here when they are written.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError(
        "torch_npu.profiler.profiler.analyse is not supported (docs/coverage.md): recordings are analysed when they are written"
    )
