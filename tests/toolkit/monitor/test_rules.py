"""Spikes, skipped steps, stragglers, waiting time, goodput and the outputs, on known numbers."""

from __future__ import annotations

import json
import math
import random
import statistics
from pathlib import Path

import pytest

from megatron_ms.monitor import events, goodput, outputs, past, stragglers
from megatron_ms.monitor.health import Skips, Spikes
from megatron_ms.monitor.stragglers import Stragglers
from megatron_ms.monitor.waiting import Waiting


def test_a_spike_marks_checkpoints_until_it_leaves_the_window() -> None:
    spikes = Spikes(3.0, 10)
    for number in range(1, 11):
        assert spikes.add(number, {"loss": 2.0, "gradient norm": None}) == []
    assert spikes.reasons(10) == ()
    assert spikes.add(11, {"loss": 7.0}) == ["loss 7 at iteration 11 (usually 2)"]
    assert spikes.add(12, {"loss": 5.9}) == []
    assert spikes.reasons(20) == ("loss 7 at iteration 11 (usually 2)",)
    assert spikes.reasons(21) == ()


def test_a_spike_does_not_raise_the_median() -> None:
    spikes = Spikes(3.0, 4)
    for number in range(4):
        spikes.add(number, {"loss": 1.0})
    assert all(spikes.add(number, {"loss": 9.0}) for number in range(4, 12))


def test_the_first_steps_are_not_judged_but_nan_is_always_a_spike() -> None:
    spikes = Spikes(3.0, 10)
    assert spikes.add(1, {"loss": 1.0}) == [] and spikes.add(2, {"loss": 50.0}) == []
    assert len(spikes.add(3, {"loss": math.nan})) == 1
    assert Spikes(None, 10).add(3, {"loss": math.nan}) == []


def test_skips_are_counted_and_bounded() -> None:
    skips = Skips(5.0, 3)
    assert [skips.over(norm) for norm in (5.0, 5.1, math.inf, math.nan)] == [False, True, True, True]
    for skipped in (True, True, False, True, True):
        skips.count(skipped)
    assert (skips.total, skips.row, skips.too_many) == (4, 2, False)
    skips.count(True)
    assert skips.too_many and not Skips(None, 1).over(math.nan)


def test_a_checkpoint_before_a_spike_is_healthy() -> None:
    """Steps are judged together, so that the one after the checkpoint may have been judged already."""
    spikes = Spikes(3.0, 2)
    for number in (1, 2, 3):
        spikes.add(number, {"loss": 1.0})
    spikes.add(4, {"loss": 9.0})
    assert (
        spikes.reasons(3) == ()
        and len(spikes.reasons(4)) == len(spikes.reasons(5)) == 1
        and not spikes.reasons(6)
    )


def test_an_attempt_goes_on_counting_and_judging(tmp_path) -> None:
    """Steps 1 to 12 with a spike in 6 and 11, and skipped steps 4, 8, 9 and 12. The next attempt begins with step 10."""
    spikes, lines = Spikes(3.0, 4), outputs.Lines(tmp_path)
    events.append(tmp_path, "step", "", iteration=1)
    for first in (1, 5, 9):
        judged = [
            (number, {"loss": 9.0 if number in (6, 11) else number / 10})
            for number in range(first, first + 4)
        ]
        for number, values in judged:
            for text in spikes.add(number, values):
                events.append(tmp_path, "spike", text, iteration=number)
        lines.write({"iteration": first + 3, "judged": judged})
    for number in (4, 8, 9, 12):
        events.append(tmp_path, "skip", "", iteration=number)
    events.append(tmp_path, "step", "", iteration=10)
    found = past.read(events.read(tmp_path, outputs.MEASURED), events.read(tmp_path), 10, 99)
    assert found.skipped == (4, 8, 9) and [number for number, _ in found.spikes] == [6]
    again = Spikes(3.0, 4)
    again.refill(found)
    assert again.reasons(9) == ("loss 9 at iteration 6 (usually 0.35)",) and again.reasons(10) == ()
    assert again.add(10, {"loss": 9.0}) == ["loss 9 at iteration 10 (usually 0.75)"], (
        "the median of 5, 7, 8 and 9"
    )
    skips = Skips(1.0, 3)
    skips.refill(found, 10)
    assert (skips.total, skips.row) == (3, 2)
    skips.refill(past.Past(), 1)
    assert (skips.total, skips.row) == (0, 0)


def test_a_straggler_is_named_once_until_it_has_kept_up() -> None:
    found = Stragglers(1.5, 5, 0.0)
    said = [found.add([1.0, 1.1, 2.2, 0.9], 2.2) for _ in range(7)]
    assert [len(lines) for lines in said] == [0, 0, 0, 0, 1, 0, 0]
    text = "straggler: rank 2 works 2.2 times as long as the others (2.200 s of a step, they 1.000 s)"
    assert said[4] == [text]
    assert [found.add([1.0, 1.0, 1.0, 1.0], 1.0) for _ in range(5)] == [[]] * 5
    assert sum(len(found.add([1.0, 1.0, 9.0, 1.0], 9.0)) for _ in range(5)) == 1


def test_slow_steps_now_and_then_name_nobody() -> None:
    found = Stragglers(1.5, 4, 0.0)
    assert not any(found.add([1.0, 30.0 if number % 2 else 1.0], 30.0) for number in range(20))


def test_short_steps_are_judged_when_they_have_taken_long_enough() -> None:
    """Steps of 25 ms, and a measured line for every fourth: 20 s are 200 lines."""
    found = Stragglers(1.5)
    said = [found.add([0.025, 0.050], 0.1) for _ in range(210)]
    assert [number for number, lines in enumerate(said) if lines] == [199]


def test_each_rank_is_compared_with_the_median_of_the_others() -> None:
    drawn = random.Random(17)
    for count in range(2, 9):
        own = [drawn.choice([1.0, 2.0, drawn.random()]) for _ in range(count)]
        expected = [statistics.median(own[:rank] + own[rank + 1 :]) for rank in range(count)]
        assert stragglers._others(own) == expected


@pytest.fixture(scope="module")
def quiet() -> list[tuple[list[float], float]]:
    """The steps of a run without a fault on a busy machine: own times of two ranks, and of the step."""
    rows = (Path(__file__).with_name("quiet_run.tsv")).read_text().splitlines()
    values = [[float(value) / 1e3 for value in row.split("\t")] for row in rows if not row.startswith("#")]
    return [(own, seconds) for *own, seconds in values]


def test_nobody_is_named_on_a_busy_machine(quiet) -> None:
    found = Stragglers(1.5)
    assert not any(found.add(own, seconds) for own, seconds in quiet)
    short = Stragglers(1.5, 10, 0.0)  # without a least time
    assert any(short.add(own, seconds) for own, seconds in quiet)


@pytest.mark.parametrize("slow", [0, 1])
def test_a_rank_twice_as_slow_is_named_on_a_busy_machine(quiet, slow) -> None:
    found = Stragglers(1.5)
    said = []
    for own, seconds in quiet:
        late = [time * (2 if rank == slow else 1) for rank, time in enumerate(own)]
        said += found.add(late, seconds + own[slow])
    assert len(said) == 1 and said[0].startswith(f"straggler: rank {slow} works ")


def test_waiting_counts_nested_calls_once() -> None:
    now = iter(range(100))
    waiting = Waiting(lambda: float(next(now)))

    class Work:
        def wait(self) -> int:
            assert waiting.inside
            return 7

    class Backend:
        def allreduce(self, work: Work) -> int:
            return work.wait()

    waiting.install(Backend, Work)
    assert Backend().allreduce(Work()) == 7 and waiting.seconds == 1.0
    assert Work().wait() == 7 and waiting.seconds == 2.0 and not waiting.inside


def told(kind: str, when: float, **more) -> dict:
    return {"kind": kind, "time": when, "text": "", **more}


FAILED = [
    told("attempt", 100.0), told("step", 102.0, iteration=1), told("save", 120.0, iteration=2, seconds=10.0),
    told("failure", 130.0), told("restart", 130.1), told("attempt", 131.0), told("step", 135.0, iteration=3),
]  # fmt: skip


def test_goodput_of_a_run_with_a_failure() -> None:
    """Steps 1 to 4, of which 3 and 4 are computed again; 10 s of 60 for a checkpoint on the disk, 2 s for those in memory."""
    records = [{"iteration": number, "seconds": 5.0} for number in (1, 2, 3, 4, 3, 4)]
    records[3]["memory saving"] = records[5]["memory saving"] = 1.0
    spent = goodput.spent(records, FAILED, 160.0)
    assert (spent.training, spent.lost, spent.restarting, spent.saving) == (20.0, 10.0, 5.0, 12.0)
    assert spent.other == 13.0 and spent.goodput == pytest.approx(1 / 3)


def test_steps_after_the_checkpoint_are_lost_when_an_attempt_begins() -> None:
    """At its first step nothing has been computed again yet."""
    records = [{"iteration": number, "seconds": 5.0} for number in (1, 2, 3, 4)]
    spent = goodput.spent(records, FAILED, 135.0, begins=3)
    assert (spent.training, spent.lost, spent.restarting, spent.total) == (10.0, 10.0, 5.0, 35.0)


def test_a_record_of_few_steps_does_not_replace_one_of_many() -> None:
    """Ten steps a record. The run fails after step 20, and goes on from the checkpoint of step 14."""
    records = [{"iteration": number, "steps": 10, "seconds": 1.0} for number in (10, 20)]
    records.append({"iteration": 20, "steps": 6, "seconds": 2.0})
    spent = goodput.spent(records, [], 100.0)
    assert (spent.training, spent.lost) == (14.0 + 12.0, 6.0)


def test_steps_between_a_record_and_a_checkpoint_count() -> None:
    """The run fails in step 17. The event of checkpoint 14 covers the steps 11 to 14, which are in no record."""
    records = [{"iteration": 10, "steps": 10, "seconds": 1.0}, {"iteration": 20, "steps": 6, "seconds": 1.0}]
    save = told("save", 50.0, iteration=14, seconds=0.5, steps=4, step=3.0)
    assert goodput.spent(records, [save], 100.0).training == 10.0 + 4 * 3.0 + 6.0
    records[1] = {"iteration": 20, "steps": 10, "seconds": 2.0}  # without a failure its record has them
    assert goodput.spent(records, [save], 100.0).training == 10.0 + 20.0


def test_the_time_between_two_commands_is_no_restart() -> None:
    happened = [
        told("attempt", 0.0), told("step", 2.0), told("failure", 10.0), told("end", 10.0),
        told("attempt", 100.0), told("step", 103.0), told("failure", 110.0),
    ]  # fmt: skip
    assert goodput.spent([], happened, 114.0).restarting == 3.0 + 4.0


RECORD = {
    "iteration": 3,
    "loss": 2.5,
    "grad norm": None,
    "ranks": [{"loss": 2.0, "norm": {"a.weight": 1.5}}, {"loss": 3.0, "norm": {"a.weight": 1.0}}],
}


def test_lines_and_events_survive_a_cut_line(tmp_path) -> None:
    outputs.Lines(tmp_path).write(RECORD)
    with open(tmp_path / outputs.MEASURED, "a") as file:
        file.write('{"iteration": 4, "lo')
    assert events.read(tmp_path, outputs.MEASURED) == [json.loads(json.dumps(RECORD))]
    events.append(tmp_path, "save", "checkpoint 3 is written", seconds=2.0)
    assert events.read(tmp_path)[0]["seconds"] == 2.0


def test_numbers_that_json_does_not_have_are_read_again(tmp_path) -> None:
    """The lines are JSON by its standard, and those that Python has written with bare names are read too."""

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    record = {
        "loss": math.nan,
        "ranks": [{"norm": math.inf, "text": "NaN?"}],
        "judged": [(3, {"loss": -math.inf})],
    }
    outputs.Lines(tmp_path).write(record)
    events.append(tmp_path, "skip", "a step", norm=math.nan)
    for name in (outputs.MEASURED, events.NAME):
        json.loads((tmp_path / name).read_text(), parse_constant=refused)
    with open(tmp_path / outputs.MEASURED, "a") as file:
        file.write('{"loss": NaN}\n')
    first, second = events.read(tmp_path, outputs.MEASURED)
    assert math.isnan(first["loss"]) and math.isnan(second["loss"])
    assert first["ranks"] == [{"norm": math.inf, "text": "NaN?"}] and first["judged"] == [
        [3, {"loss": -math.inf}]
    ]
    assert math.isnan(events.read(tmp_path)[0]["norm"])


def test_scalars() -> None:
    assert sorted(outputs.scalars(RECORD), key=str) == [
        ("iteration", None, 3.0), ("loss", "0", 2.0), ("loss", "1", 3.0), ("loss", None, 2.5),
        ("norm/a.weight", "0", 1.5), ("norm/a.weight", "1", 1.0),
    ]  # fmt: skip


def test_prometheus_serves_on_loopback() -> None:
    pytest.importorskip(
        "prometheus_client", reason="needs prometheus-client: pip install 'msadapter[toolkit]'"
    )
    import urllib.request

    metrics = outputs.Metrics(0)
    metrics.write(RECORD)
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics") as answer:
        text = answer.read().decode()
    assert metrics.address == "127.0.0.1" and metrics.port > 0
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert lines == [
        "training_iteration 3.0", "training_loss 2.5", 'training_loss_of_rank{rank="0"} 2.0',
        'training_loss_of_rank{rank="1"} 3.0',
        'training_norm_of_parameter_and_rank{parameter="a.weight",rank="0"} 1.5',
        'training_norm_of_parameter_and_rank{parameter="a.weight",rank="1"} 1.0',
    ]  # fmt: skip
