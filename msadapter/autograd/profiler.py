"""torch.autograd.profiler: the older interface of torch.profiler."""

from __future__ import annotations

import contextlib

from .._errors import unsupported
from ..profiler import ProfilerActivity, record_function
from ..profiler import profile as _profile
from ..profiler._ranges import recorders
from ..profiler.events import EventList, FunctionEvent


def kineto_available() -> bool:
    """Return True: `profile` records what PyTorch's library Kineto would record."""
    return True


class profile:
    """Records the operators that run inside this block. The results are `function_events`, `table`, ...

    Args:
        enabled: False disables the recording.
        record_shapes, with_flops, profile_memory, with_stack: see `torch.profiler.profile`.
    """

    def __init__(
        self,
        enabled=True,
        *,
        use_cuda=False,
        use_device=None,
        record_shapes=False,
        with_flops=False,
        profile_memory=False,
        with_stack=False,
        with_modules=False,
        use_kineto=False,
        use_cpu=True,
        experimental_config=None,
        acc_events=False,
        custom_trace_id_callback=None,
    ):
        self.enabled = enabled
        activities = {ProfilerActivity.CPU} | (
            {ProfilerActivity.PrivateUse1} if use_cuda or use_device else set()
        )
        self._inner = _profile(
            activities=activities,
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            experimental_config=experimental_config,
            custom_trace_id_callback=custom_trace_id_callback,
        )
        self._entered = False

    def __enter__(self):
        if self._entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        if self.enabled:
            self._entered = True
            self._inner.start()
        return self

    def __exit__(self, *exc):
        if self.enabled:
            self._inner.stop()
        return False

    @property
    def function_events(self) -> EventList:
        if not self._entered:
            raise RuntimeError("Profiler didn't finish running")
        return self._inner.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Return the CPU time of all events in microseconds."""
        return self.function_events.self_cpu_time_total

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False
    ) -> EventList:
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n)

    def __str__(self) -> str:
        return self.table() if self._entered else "<unfinished torch.autograd.profile>"

    def table(self, *args, **options) -> str:
        return self.function_events.table(*args, **options)

    def total_average(self):
        return self.function_events.total_average()

    def export_chrome_trace(self, path) -> None:
        self._inner.export_chrome_trace(path)

    def export_stacks(self, path, metric="self_cpu_time_total") -> None:
        self._inner.export_stacks(path, metric)


def _profiler_enabled() -> bool:
    """Return whether a profiler records now."""
    return bool(recorders)


class emit_nvtx(contextlib.nullcontext):
    """Runs the block without marking ranges, because there is no NVIDIA profiler."""

    def __init__(self, enabled=True, record_shapes=False):
        super().__init__(self)


class emit_itt(emit_nvtx):
    """Runs the block without marking ranges, because there is no Intel profiler."""


def load_nvprof(path):
    raise unsupported("torch.autograd.profiler.load_nvprof", "NVIDIA's traces are not read")


__all__ = ["EventList", "FunctionEvent", "emit_itt", "emit_nvtx", "load_nvprof", "profile", "record_function"]
