"""torch.utils.benchmark: the texts, numbers and tables that it makes of given times."""

import importlib
import random


def _benchmark():
    return importlib.import_module("torch.utils.benchmark")  # import torch alone does not load it


def _measurement(b, number, times, **task):
    return b.Measurement(number, times, b.TaskSpec("x + 1", "pass", **task))


def _measurements(b):
    """Steady and unsteady times of several units, with and without labels, threads and environments."""
    choose = random.Random(5)
    found = []
    for sub in ("float", "int"):
        for description in ("n=1", "n=1000"):
            for threads in (1, 4):
                one = 2.5 * 10 ** -choose.randint(3, 7)
                times = [
                    one * 100 * (1 + 0.05 * choose.random()) for _ in range(choose.choice([1, 3, 4, 9, 20]))
                ]
                found.append(
                    _measurement(
                        b,
                        100,
                        times,
                        label="add",
                        sub_label=sub,
                        description=description,
                        num_threads=threads,
                    )
                )
    for place, sub in enumerate(("f", "g", "a long name")):
        for description in ("A", "B"):
            for env in ("old", "new"):
                if (sub, description) != ("g", "B"):
                    one = 3.3e-5 * (1 + place)
                    times = [one * 10 * (1 + 0.8 * place * choose.random()) for _ in range(12)]
                    found.append(
                        _measurement(
                            b, 10, times, label="mul", sub_label=sub, description=description, env=env
                        )
                    )
    return found


def benchmark_measurements(torch):
    b = _benchmark()
    return [
        [
            repr(one).splitlines()[1:],
            one.median,
            one.mean,
            one.iqr,
            one.significant_figures,
            one.has_warnings,
            one.times[:2],
            one.as_row_name,
            one.title,
            one.env,
        ]
        for one in _measurements(b)
    ]


def _table(torch, prepare):
    compared = _benchmark().Compare(_measurements(_benchmark()))
    prepare(compared)
    return str(compared).splitlines()


def benchmark_table(torch):
    return _table(torch, lambda c: None)


def benchmark_table_of_significant_figures(torch):
    return _table(torch, lambda c: c.trim_significant_figures())


def benchmark_table_with_warnings_and_colours(torch):
    def prepare(compared):
        compared.highlight_warnings()
        compared.colorize()

    return _table(torch, prepare)


def benchmark_table_with_colours_by_row(torch):
    def prepare(compared):
        compared.trim_significant_figures()
        compared.colorize(rowwise=True)

    return _table(torch, prepare)


def benchmark_merged_measurements(torch):
    b = _benchmark()
    merged = b.Measurement.merge([*_measurements(b), *_measurements(b)[::2]])
    return [[len(one.times), one.number_per_run, one.median, one.task_spec.summarize()] for one in merged]


def benchmark_units_and_figures(torch):
    b = _benchmark()
    units = [b.select_unit(t) for t in (3e-10, 1e-9, 5e-7, 2e-6, 1e-3, 0.5, 1.0, 20.0, 1000.0)]
    trimmed = [
        b.trim_sigfig(*v)
        for v in ((3.14159, 2), (12345.678, 3), (-0.00123456, 2), (99.96, 3), (1.0, 2), (0.25, 1))
    ]
    return [
        units,
        trimmed,
        [b.unit_to_english(u) for u in ("ns", "us", "ms", "s")],
        b.ordered_unique("abcab"),
    ]


def benchmark_figures_that_are_no_number(torch):
    return _benchmark().trim_sigfig(3.0, 1.5)


def benchmark_titles(torch):
    b = _benchmark()
    tasks = (
        b.TaskSpec("a", "b"),
        b.TaskSpec("a\nb", "c\nd", sub_label="q"),
        b.TaskSpec("a", "pass", label="L", sub_label="S", description="D"),
        b.TaskSpec("a\nb", "", description="zz"),
    )
    return [[task.title, task.setup_str(), task.summarize()] for task in tasks]


class _Clock:
    """A clock of which each look costs a little, and which the statement `clock.work()` moves by the times given, in turn."""

    def __init__(self, *times, look=0.0):
        self.now, self.times, self.worked, self.look = 0.0, times, 0, look

    def work(self):
        self.now += self.times[self.worked % len(self.times)]
        self.worked += 1

    def __call__(self):
        self.now += self.look
        return self.now


def _timer(b, clock):
    return b.Timer("clock.work()", globals={"clock": clock}, timer=clock)


def benchmark_runs(torch):
    """How often the statement and its set-up run, with what threads, and what is seen of the names given."""
    b, seen = _benchmark(), []
    before = torch.get_num_threads()
    timer = b.Timer(
        "seen.append(torch.get_num_threads())",
        "seen.append('set up')",
        globals={"seen": seen},
        num_threads=1,
        timer=_Clock(look=0.25),
    )
    found = timer.timeit(300)
    return [
        seen.count("set up"),
        seen.count(1),
        found.number_per_run,
        found.raw_times,
        torch.get_num_threads() == before,
    ]


def benchmark_blocks(torch):
    b, told = _benchmark(), []
    found = _timer(b, _Clock(0.004, look=1e-7)).blocked_autorange(
        callback=lambda n, t: told.append((n, t)), min_run_time=0.2
    )
    free = _timer(b, _Clock(0.0005)).blocked_autorange()
    return [found.number_per_run, found.raw_times, told, free.number_per_run, free.raw_times]


def benchmark_until_settled(torch):
    b = _benchmark()
    steady = _timer(b, _Clock(0.06)).adaptive_autorange(min_run_time=0.01)
    unsteady = _timer(b, _Clock(0.05, 0.4, 0.01)).adaptive_autorange(max_run_time=1.5)
    return [steady.number_per_run, steady.raw_times, unsteady.number_per_run, unsteady.raw_times]


def benchmark_statement_that_is_no_text(torch):
    return _benchmark().Timer(lambda: 1)


def benchmark_language_that_is_none(torch):
    return _benchmark().Timer("pass", language="fortran")


def benchmark_global_setup(torch):
    return _benchmark().Timer("pass", global_setup="#include <a>")


def benchmark_repeat(torch):
    return _benchmark().Timer("pass").repeat()
