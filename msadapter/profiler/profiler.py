"""`profile`: collects ranges according to a schedule and writes them as a chrome trace."""

import enum
import gzip
import json
import os
import socket
import time

from . import _ranges


class ProfilerActivity(enum.Enum):
    """What to record. Only ranges of the host exist here; the others are accepted."""

    CPU = "CPU"
    CUDA = "CUDA"
    XPU = "XPU"
    MTIA = "MTIA"
    PrivateUse1 = "PrivateUse1"


class ProfilerAction(enum.Enum):
    """What a step of the schedule does."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set:
    """The activities that are really recorded."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
):
    """`f(step) -> ProfilerAction`: skip_first steps, then cycles of wait, warmup and active steps."""
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
    """An on_trace_ready function that writes each trace into `dir_name` under a name of its own."""

    def handle(prof) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        ending = "pt.trace.json.gz" if use_gzip else "pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.{ending}"))

    return handle


class _Average:
    """One row of key_averages(): calls and time of all ranges of one name."""

    def __init__(self, key):
        self.key = key
        self.count = 0
        self.cpu_time_total = 0.0
        self.self_cpu_time_total = 0.0

    @property
    def cpu_time(self):
        return self.cpu_time_total / self.count if self.count else 0.0


class EventList(list):
    """Rows of key_averages()."""

    def table(self, sort_by=None, row_limit=100, **kwargs) -> str:
        """The rows as text, most expensive first."""
        rows = sorted(self, key=lambda row: -row.cpu_time_total)[:row_limit]
        width = max([len(row.key) for row in rows] + [4])
        lines = [f"{'Name':<{width}}  {'CPU total':>12}  {'CPU time avg':>12}  {'# of Calls':>10}"]
        lines += [
            f"{r.key:<{width}}  {r.cpu_time_total:>10.3f}us  {r.cpu_time:>10.3f}us  {r.count:>10}"
            for r in rows
        ]
        return "\n".join(lines)


class profile:
    """Records record_function ranges (optimizer steps, the user's own) of this process.

    schedule: from `schedule(...)`, advanced by step(); without it everything is recorded until stop().
    on_trace_ready: called with the profiler after each finished recording.
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
        use_cuda=None,
    ):
        self._schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._has_schedule = schedule is not None
        self._on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = ProfilerAction.NONE
        self._events = []
        self._metadata = {}
        self._step_start = 0

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *exc):
        self.stop()

    def add(self, name, args, start, end, thread):
        """A finished range, in nanoseconds."""
        self._events.append((name, args, start, end, thread))

    def events(self):
        """The recorded ranges as (name, args, start_ns, end_ns, thread)."""
        return list(self._events)

    def start(self) -> None:
        """Begin with step 0 of the schedule."""
        self._enter(self._schedule(self.step_num))
        self._step_start = time.perf_counter_ns()

    def stop(self) -> None:
        """End; what was being recorded is finished."""
        recording = self.current_action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)
        self._leave()
        if recording and self._on_trace_ready:
            self._on_trace_ready(self)

    def step(self) -> None:
        """The next step of the schedule."""
        if self in _ranges.recorders:
            self.add(f"ProfilerStep#{self.step_num}", None, self._step_start, time.perf_counter_ns(), 0)
        finished = self.current_action is ProfilerAction.RECORD_AND_SAVE
        self.step_num += 1
        self._leave()
        if finished and self._on_trace_ready:
            self._on_trace_ready(self)
        self._enter(self._schedule(self.step_num), fresh=finished)
        self._step_start = time.perf_counter_ns()

    def _enter(self, action, fresh=False):
        if fresh:
            self._events = []
        self.current_action = action
        if action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            _ranges.recorders.append(self)

    def _leave(self):
        if self in _ranges.recorders:
            _ranges.recorders.remove(self)
        self.current_action = ProfilerAction.NONE

    def add_metadata(self, key: str, value: str) -> None:
        """A text to store in the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """A JSON text to store in the trace."""
        self._metadata[key] = json.loads(value)

    def key_averages(self, group_by_input_shape=False, group_by_stack_n=0) -> EventList:
        """Calls and time by name."""
        rows = {}
        for name, _, start, end, _ in self._events:
            row = rows.setdefault(name, _Average(name))
            row.count += 1
            row.cpu_time_total += (end - start) / 1e3
        return EventList(rows.values())

    def export_chrome_trace(self, path: str) -> None:
        """Write the trace for chrome://tracing or Perfetto (gzip if the name ends with .gz)."""
        process = os.getpid()
        events = [
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": name,
                "pid": process,
                "tid": thread,
                "ts": start / 1e3,
                "dur": (end - start) / 1e3,
                "args": {"args": args} if args else {},
            }
            for name, args, start, end, thread in self._events
        ]
        opener = gzip.open if str(path).endswith(".gz") else open
        with opener(path, "wt") as stream:
            json.dump({"schemaVersion": 1, **self._metadata, "traceEvents": events}, stream)
