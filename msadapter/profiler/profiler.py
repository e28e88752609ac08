"""`profile`: records operators, backward nodes and named ranges according to a schedule."""

import enum
import json
import os
import socket
import time

from .._errors import unsupported
from .._host.native import load
from .._host.runtime import device_target
from . import _ranges
from .device import device_recording
from .events import EventList, chrome_events, tree, write_trace

_C = load()


class ProfilerActivity(enum.Enum):
    """The kinds of recording: the host's operators and the accelerator's kernels."""

    CPU = "CPU"
    CUDA = "CUDA"
    XPU = "XPU"
    MTIA = "MTIA"
    PrivateUse1 = "PrivateUse1"


class ProfilerAction(enum.Enum):
    """The action in a step of the schedule."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set:
    """The activities that are recorded on this machine."""
    return {ProfilerActivity.CPU} | (set() if device_target() == "CPU" else {ProfilerActivity.PrivateUse1})


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
):
    """Returns f(step) -> ProfilerAction: skip_first steps, followed by cycles of wait, warmup and active steps."""
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments")

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        length = wait + warmup + active
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        place = step % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False):
    """Returns an on_trace_ready function that writes each trace to `dir_name` under a unique name."""

    def handle(prof) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = "pt.trace.json.gz" if use_gzip else "pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.{ending}"))

    handle.dir_name = dir_name
    return handle


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class profile:
    """Records the operators of this process between start() and stop(), or in the active steps of a schedule.

    Args:
        activities: the kinds of recording (default: all that this machine supports). On an accelerator, MindSpore's profiler
            also records the kernels, to the folder of `tensorboard_trace_handler`.
        schedule: a result of `schedule(...)`, advanced by step(). Without it everything is recorded until stop().
        on_trace_ready: called with the profiler after each finished recording.
        record_shapes: record the shapes of operands.
        profile_memory: record the bytes that each operator allocates minus those that it frees.
        with_stack: record the Python callers of each operator, which is slow.
        with_flops: count floating point operations; implies ``record_shapes``.
    Raises:
        RuntimeError: another profiler is recording.
    """

    def __init__(
        self,
        *,
        activities=None,
        schedule=None,
        on_trace_ready=None,
        record_shapes=False,
        profile_memory=False,
        with_stack=False,
        with_flops=False,
        with_modules=False,
        experimental_config=None,
        execution_trace_observer=None,
        acc_events=False,
        custom_trace_id_callback=None,
        use_cuda=None,
    ):
        if execution_trace_observer is not None:
            raise unsupported("torch.profiler.ExecutionTraceObserver")
        self.activities = set(activities) if activities else supported_activities()
        self.record_shapes = record_shapes or with_flops
        self.profile_memory, self.with_stack, self.with_flops = profile_memory, with_stack, with_flops
        self._scheduled = schedule is not None
        self._schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._on_trace_ready = on_trace_ready
        self._config, self._keep, self._trace_id = experimental_config, acc_events, custom_trace_id_callback
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._records, self._events = [], None
        self._metadata = {}
        self._step_start = 0
        self._device = None

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def add(self, name, args, start, end, thread):
        """Adds a finished range. Times are in nanoseconds. `record_function` calls this."""
        self._records.append((name, "user_annotation", start, end, thread, 0, None, None))

    def events(self) -> EventList:
        """The recorded events in the order of their start, each with its children."""
        if self._events is None:
            self._events = tree(self._records)
            self._events._profile_memory, self._events._with_flops = self.profile_memory, self.with_flops
        return self._events

    def start(self) -> None:
        """Starts with step 0 of the schedule."""
        self._enter(self._schedule(self.step_num))

    def stop(self) -> None:
        """Stops and finishes the current recording."""
        recording = self.current_action in _RECORDING
        self._mark_step()
        self._leave()
        if recording and self._on_trace_ready:
            self._on_trace_ready(self)

    def step(self) -> None:
        """Advances to the next step of the schedule."""
        finished = self.current_action is ProfilerAction.RECORD_AND_SAVE
        self._mark_step()
        self.step_num += 1
        following = self._schedule(self.step_num)
        if finished or following not in _RECORDING:
            self._leave()
        if finished and self._on_trace_ready:
            self._on_trace_ready(self)
        self._enter(following, fresh=finished and not self._keep)

    def _mark_step(self):
        if self._scheduled and self.current_action in _RECORDING:
            self.add(
                f"ProfilerStep#{self.step_num}",
                None,
                self._step_start,
                time.perf_counter_ns(),
                _ranges.thread(),
            )

    def _enter(self, action, fresh=False):
        if fresh:
            self._records, self._events = [], None
        self.current_action = action
        if action in _RECORDING and self not in _ranges.recorders:
            if any(isinstance(other, profile) for other in _ranges.recorders):
                raise RuntimeError("Profiler is already enabled on this thread")
            _ranges.recorders.append(self)
            self._device = device_recording(
                self.activities,
                getattr(self._on_trace_ready, "dir_name", None),
                record_shapes=self.record_shapes,
                profile_memory=self.profile_memory,
                with_stack=self.with_stack,
                config=self._config,
            )
            if self._device:
                self._device.start()
            _C.trace_start(self.record_shapes, self.profile_memory, self.with_stack)
        self._step_start = time.perf_counter_ns()

    def _leave(self):
        if self in _ranges.recorders:
            _ranges.recorders.remove(self)
            self._records += _C.trace_stop()
            self._events = None
            if self._device:
                self._device.stop()
                self._device = None
        self.current_action = ProfilerAction.NONE

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the metadata of the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON text to the metadata of the trace."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def set_custom_trace_id_callback(self, callback) -> None:
        """Sets a callback that returns the name of the trace."""
        self._trace_id = callback

    def get_trace_id(self):
        """The result of the callback, or None."""
        return self._trace_id() if self._trace_id else None

    def key_averages(
        self, group_by_input_shape=False, group_by_stack_n=0, group_by_overload_name=False
    ) -> EventList:
        """Calls, time and memory by name; see `EventList.key_averages`."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n)

    def export_chrome_trace(self, path) -> None:
        """Writes the trace for chrome://tracing or Perfetto. It is compressed if the name ends with .gz."""
        kept = {
            "record_shapes": int(self.record_shapes),
            "profile_memory": int(self.profile_memory),
            "with_stack": int(self.with_stack),
        }
        if self._trace_id:
            kept["trace_id"] = self.get_trace_id()
        write_trace(path, chrome_events(self.events()), {**kept, **self._metadata})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes callers with their times, for flame graphs. Needs ``with_stack``."""
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: str | None = None) -> None:
        raise unsupported(
            "torch.profiler.profile.export_memory_timeline", "memory by category is not supported"
        )

    def toggle_collection_dynamic(self, enable: bool, activities) -> None:
        """Pauses or resumes the recording between start() and stop()."""
        if not enable and self in _ranges.recorders:
            action = self.current_action
            self._leave()
            self.current_action = action
        elif enable and self.current_action in _RECORDING:
            self._enter(self.current_action)


_KinetoProfile = profile
