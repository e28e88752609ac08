"""Events, handlers and statistics, compared with PyTorch's."""

from __future__ import annotations

import datetime


def _far() -> datetime.timedelta:
    """Return a window so long that no test meets its end."""
    return datetime.timedelta(days=4000)


def events_and_handlers(torch):
    m = torch.monitor
    when = datetime.datetime(2020, 1, 2, 3, 4, 5)
    event = m.Event("loss", when, {"value": 2.5, "step": 3, "text": "a"})
    first, second = [], []
    handle = m.register_event_handler(first.append)
    other = m.register_event_handler(second.append)
    m.log_event(event)
    m.unregister_event_handler(handle)
    m.log_event(event)
    m.unregister_event_handler(other)
    m.log_event(event)
    found = [len(first), len(second), first[0] is event, event.name, event.timestamp == when]
    found += [sorted(event.data.items()), type(handle).__name__]
    event.data = {"other": 1}
    found.append(event.data)
    for arguments in (("a", "now", {}), ("a", when, {"x": []}), ("a", when)):
        try:
            m.Event(*arguments)
        except TypeError:
            found.append("refused")
    return found


def statistics(torch):
    m = torch.monitor
    a = m.Aggregation
    kinds = (a.SUM, a.COUNT, a.MEAN, a.MAX, a.MIN)
    events = []
    handle = m.register_event_handler(events.append)
    found = [[k.name, int(k)] for k in (a.VALUE, *kinds)]

    def state(stat):
        return [stat.name, stat.count, sorted((k.name, v) for k, v in stat.get().items())]

    stat = m.Stat("s", kinds, _far(), 3)
    found.append(state(stat))
    for v in (1.5, -2, 4):
        stat.add(v)
        found.append(state(stat))
    stat.add(100)
    found.append(state(stat))
    left = m.Stat("left", (a.MAX, a.MIN), _far())
    left.add(2)
    left.add(True)
    found.append(state(left))
    empty = m.Stat("empty", (a.SUM,), _far())
    del stat, left, empty
    m.unregister_event_handler(handle)
    found += [[e.name, sorted(e.data.items())] for e in events]
    try:
        m.Stat("bad", kinds, _far()).add("x")
    except (TypeError, ValueError):
        found.append("refused")
    return found


def windows_end_with_time(torch):
    m = torch.monitor
    events = []
    handle = m.register_event_handler(events.append)
    stat = m.Stat("w", (m.Aggregation.COUNT,), datetime.timedelta(milliseconds=1))
    import time

    stat.add(1)
    time.sleep(0.05)
    found = [stat.count]
    stat.add(2)
    time.sleep(0.05)
    stat.add(3)
    del stat
    m.unregister_event_handler(handle)
    return [*found, [e.data for e in events], all(e.name == m.STAT_EVENT for e in events)]


def scalars_for_tensorboard(torch):
    m = torch.monitor
    rows = []

    class Writer:
        def add_scalar(self, name, value, walltime):
            rows.append([name, value, walltime])

    handler = m.TensorboardEventHandler(Writer())
    when = datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)
    handler(m.Event(m.STAT_EVENT, when, {"a.sum": 1.5}))
    try:
        handler(m.Event("other", when, {"a.sum": 2.5}))
    except Exception as error:
        rows.append(type(error).__name__)
    return rows
