"""The result of a profiler: a tree of events, their sums by name, tables and the Chrome trace."""

from __future__ import annotations

import enum
import gzip
import json
import math
import os


class DeviceType(enum.Enum):
    """The kind of device on which an event ran."""

    CPU = 0
    CUDA = 1
    PrivateUse1 = 20


class Interval:
    """A range of time from ``start`` to ``end``, in microseconds."""

    __slots__ = ("start", "end")

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        return self.end - self.start


# PyTorch's profiler has formulas for these names alone. It counts them in the events of any library, so they are not facts
# of our operators.
_MULTIPLY_ADDS = {"mm": (0, 1), "addmm": (1, 2), "bmm": (0, 1), "baddbmm": (1, 2), "matmul": (0, 1)}


def flops_of(name: str, shapes) -> int:
    """The floating point operations of a call, computed from the shapes of its operands; 0 for unknown operators.

    A matrix product counts a multiplication and an addition for each term. add and mul count the elements of the result.
    """
    if not shapes or not name.startswith("aten::"):
        return 0
    name = name.removeprefix("aten::").removesuffix("_")
    if name in _MULTIPLY_ADDS:
        a, b = (shapes[i] for i in _MULTIPLY_ADDS[name])
        return 2 * math.prod(a) * b[-1] if len(a) >= 2 and len(b) >= 2 else 0
    if name == "linear":
        return 2 * math.prod(shapes[0]) * shapes[1][0] if len(shapes[1]) == 2 else 0
    if name in ("add", "mul", "sub", "div"):
        return max(math.prod(shape) for shape in shapes[:2])
    return 0


class FunctionEvent:
    """One range of time: an operator, a node of the backward pass, or a `record_function`.

    Times are in microseconds. Memory is the bytes allocated minus the bytes freed during the event. ``self_*`` values exclude
    the children.
    """

    def __init__(
        self,
        id,
        name,
        thread,
        start_us,
        end_us,
        overload_name=None,
        fwd_thread=None,
        input_shapes=None,
        stack=None,
        scope=0,
        use_device=None,
        cpu_memory_usage=0,
        device_memory_usage=0,
        is_async=False,
        is_remote=False,
        sequence_nr=-1,
        node_id=-1,
        device_type=DeviceType.CPU,
        device_index=0,
        device_resource_id=None,
        is_legacy=False,
        flops=None,
        trace_name=None,
        concrete_inputs=None,
        kwinputs=None,
        is_user_annotation=False,
    ):
        self.id, self.name, self.key, self.trace_name = id, name, name, trace_name or name
        self.category = "user_annotation" if is_user_annotation else "cpu_op"
        self.thread, self.fwd_thread, self.overload_name = thread, fwd_thread, overload_name
        self.time_range = Interval(start_us, end_us)
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.input_shapes, self.stack = input_shapes, stack or []
        self.concrete_inputs, self.kwinputs = concrete_inputs, kwinputs
        self.flops = flops_of(name, input_shapes) if flops is None else flops
        self.count, self.scope, self.sequence_nr, self.node_id = 1, scope, sequence_nr, node_id
        self.cpu_parent, self.cpu_children = None, []
        self.device_type, self.device_index, self.use_device = device_type, device_index, use_device
        self.device_resource_id = thread if device_resource_id is None else device_resource_id
        self.is_user_annotation = is_user_annotation
        self.is_async, self.is_remote, self.is_legacy = is_async, is_remote, is_legacy

    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = 0.0
    self_device_memory_usage = 0

    @property
    def cpu_time_total(self) -> float:
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def cpu_time(self) -> float:
        return self.cpu_time_total

    def __repr__(self):
        return (
            f"<FunctionEvent id={self.id} name={self.name} thread={self.thread} "
            f"cpu_time={_time(self.cpu_time_total)} cpu_children={[c.id for c in self.cpu_children]}>"
        )


class FunctionEventAvg:
    """The sum of the events with one name, and, if they are grouped by them, equal shapes and callers."""

    SUMS = (
        "count",
        "cpu_time_total",
        "self_cpu_time_total",
        "cpu_memory_usage",
        "self_cpu_memory_usage",
        "flops",
    )

    def __init__(self, key=None):
        self.key = key
        self.input_shapes, self.stack = None, []
        for name in self.SUMS:
            setattr(self, name, 0)
        self.device_type = DeviceType.CPU

    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0

    def add(self, event) -> FunctionEventAvg:
        """Adds an event or another sum."""
        if self.key is None:
            self.key = event.key
        if not self.count:
            self.input_shapes, self.stack = event.input_shapes, event.stack
        for name in self.SUMS:
            setattr(self, name, getattr(self, name) + getattr(event, name))
        return self

    __iadd__ = add

    @property
    def cpu_time(self) -> float:
        """The mean time per call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def __repr__(self):
        return f"<FunctionEventAvg key={self.key} count={self.count} cpu_time={_time(self.cpu_time)}>"


def _time(us: float) -> str:
    for limit, unit in ((1e6, "s"), (1e3, "ms")):
        if us >= limit:
            return f"{us / limit:.3f}{unit}"
    return f"{us:.3f}us"


def _bytes(n: int) -> str:
    for limit, unit in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if abs(n) >= limit:
            return f"{n / limit:.2f} {unit}"
    return f"{n} B"


def _cut(text: str, width: int, head: bool = True) -> str:
    if len(text) <= width:
        return text
    return text[: width - 3] + "..." if head else "..." + text[3 - width :]


class EventList(list):
    """A list of events, or of their sums (`key_averages`)."""

    def __init__(self, events=(), *, profile_memory=False, with_flops=False, **_):
        super().__init__(events)
        self._profile_memory, self._with_flops = profile_memory, with_flops

    @property
    def self_cpu_time_total(self) -> float:
        return sum(event.self_cpu_time_total for event in self)

    def _populate_cpu_children(self) -> None:
        """Sets the parent of every event: the smallest event of its thread that contains it."""
        events = [e for e in self if not e.is_async and e.device_type is DeviceType.CPU]
        open_events: list[FunctionEvent] = []
        for event in sorted(events, key=lambda e: (e.thread, e.time_range.start, -e.time_range.end)):
            while open_events and (
                open_events[-1].thread != event.thread
                or event.time_range.start >= open_events[-1].time_range.end
                or event.time_range.end > open_events[-1].time_range.end
            ):
                open_events.pop()
            if open_events:
                event.cpu_parent = open_events[-1]
                event.cpu_parent.cpu_children.append(event)
            open_events.append(event)

    def total_average(self) -> FunctionEventAvg:
        total = FunctionEventAvg("Total")
        for event in self:
            total.add(event)
        return total

    def key_averages(
        self, group_by_input_shapes=False, group_by_stack_n=0, group_by_overload_name=False
    ) -> EventList:
        """The sums of the events by name, and optionally by operand shapes and the innermost ``group_by_stack_n`` callers."""
        rows: dict = {}
        for event in self:
            key = (
                event.key,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack[:group_by_stack_n]),
            )
            rows.setdefault(key, FunctionEventAvg(event.key)).add(event)
        for row in rows.values():
            row.stack = row.stack[:group_by_stack_n]
            row.input_shapes = row.input_shapes if group_by_input_shapes else None
        return EventList(rows.values(), profile_memory=self._profile_memory, with_flops=self._with_flops)

    def _columns(self, max_name_column_width, max_src_column_width):
        spent = self.self_cpu_time_total or 1.0
        shapes, sources = any(e.input_shapes for e in self), any(e.stack for e in self)
        columns = [
            ("Name", lambda e: _cut(e.key, max_name_column_width)),
            ("Self CPU %", lambda e: f"{100 * e.self_cpu_time_total / spent:.2f}%"),
            ("Self CPU", lambda e: _time(e.self_cpu_time_total)),
            ("CPU total %", lambda e: f"{100 * e.cpu_time_total / spent:.2f}%"),
            ("CPU total", lambda e: _time(e.cpu_time_total)),
            ("CPU time avg", lambda e: _time(e.cpu_time)),
        ]
        if self._profile_memory:
            columns += [
                ("CPU Mem", lambda e: _bytes(e.cpu_memory_usage)),
                ("Self CPU Mem", lambda e: _bytes(e.self_cpu_memory_usage)),
            ]
        columns.append(("# of Calls", lambda e: str(e.count)))
        if shapes:
            columns.append(("Input Shapes", lambda e: str(e.input_shapes or [])))
        if sources:
            columns.append(
                (
                    "Source Location",
                    lambda e: _cut(e.stack[0], max_src_column_width, head=False) if e.stack else "",
                )
            )
        if self._with_flops:
            columns.append(("Total FLOPs", lambda e: str(e.flops) if e.flops else "--"))
        return columns

    def table(
        self,
        sort_by=None,
        row_limit=100,
        max_src_column_width=75,
        max_name_column_width=55,
        max_shapes_column_width=80,
        header=None,
        top_level_events_only=False,
        time_unit=None,
    ) -> str:
        """The events as text.

        Args:
            sort_by: ``count`` or an attribute of the rows, such as ``cpu_time_total``, ``self_cpu_time_total``,
                ``cpu_memory_usage``; largest first. None keeps the order.
            row_limit: the maximum number of rows, -1 for all.
        Raises:
            AttributeError: the rows have no attribute ``sort_by``.
        """
        rows = [e for e in self if not (top_level_events_only and getattr(e, "cpu_parent", None))]
        if sort_by is not None:
            rows.sort(key=lambda e: getattr(e, sort_by), reverse=True)
        rows = rows if row_limit < 0 else rows[:row_limit]
        columns = self._columns(max_name_column_width, max_src_column_width)
        cells = [[title for title, _ in columns]] + [
            [_cut(text(e), max(max_shapes_column_width, 80)) for _, text in columns] for e in rows
        ]
        widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
        rule = "  ".join("-" * w for w in widths)
        lines = ["  ".join(c.rjust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
        head = [rule, header] if header else []
        return "\n".join(
            [
                *head,
                rule,
                lines[0],
                rule,
                *lines[1:],
                rule,
                f"Self CPU time total: {_time(self.self_cpu_time_total)}",
                "",
            ]
        )

    def __str__(self):
        return self.table()

    def export_chrome_trace(self, path) -> None:
        """Writes the events for chrome://tracing or Perfetto."""
        write_trace(path, chrome_events(self), {})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes one line per event with a stack, for flame graphs: its callers, outermost first, and the metric."""
        if metric not in ("self_cpu_time_total", "self_cuda_time_total", "self_device_time_total"):
            raise ValueError(
                f"metric should be one of: self_cpu_time_total, self_cuda_time_total, got {metric}"
            )
        characters = str.maketrans(" ;\t\n", "____")
        with open(path, "w") as stream:
            for event in self:
                value = int(getattr(event, metric))
                if event.stack and value > 0:
                    frames = [frame.translate(characters) for frame in reversed(event.stack)]
                    stream.write(f"{';'.join(frames)} {value}\n")


_ATEN_NAMES = {
    "aten::true_divide": "aten::div",
    "aten::true_divide_": "aten::div_",
}  # of operators that are named otherwise here


def tree(records) -> EventList:
    """Makes events from (name, category, start, end, thread, memory, shapes, stack). Inner ranges become children."""
    ordered = sorted(records, key=lambda r: (r[4], r[2], -r[3]))
    made = EventList()
    for i, (name, category, start, end, thread, memory, shapes, stack) in enumerate(ordered):
        event = FunctionEvent(
            i,
            _ATEN_NAMES.get(name, name),
            thread,
            start / 1e3,
            end / 1e3,
            input_shapes=shapes,
            stack=stack,
            cpu_memory_usage=memory,
            is_user_annotation=category == "user_annotation",
        )
        event.category = category
        made.append(event)
    made._populate_cpu_children()
    return made


def _format_time(time_us: float) -> str:
    """Return a time in microseconds as text, in the unit that suits it."""
    return _time(time_us)


def chrome_events(events) -> list[dict]:
    """The events in the Chrome trace format (times in microseconds)."""
    pid = os.getpid()
    named = {"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "ts": 0, "args": {"name": "python"}}
    out = [named]
    for event in events:
        args = {"External id": event.id, "Ev Idx": event.id}
        if event.input_shapes is not None:
            args["Input Dims"] = event.input_shapes
        if event.stack:
            args["Call stack"] = ";".join(event.stack)
        if event.cpu_memory_usage:
            args["Bytes"] = event.cpu_memory_usage
        out.append(
            {
                "ph": "X",
                "cat": event.category,
                "name": event.name,
                "pid": pid,
                "tid": event.thread,
                "ts": event.time_range.start,
                "dur": event.time_range.elapsed_us(),
                "args": args,
            }
        )
    return out


def write_trace(path, events, metadata: dict) -> None:
    """Writes a Chrome trace to a temporary name and renames it. It is compressed if the name ends with .gz."""
    path = os.fspath(path)
    beside = f"{path}.{os.getpid()}.tmp"
    opener = gzip.open if path.endswith(".gz") else open
    with opener(beside, "wt") as stream:
        json.dump(
            {
                "schemaVersion": 1,
                "deviceProperties": [],
                "displayTimeUnit": "ms",
                **metadata,
                "traceEvents": events,
                "traceName": path,
            },
            stream,
        )
    os.replace(beside, path)
