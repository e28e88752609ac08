"""How the runner of programs reads numbers, compares them and reports; no program is run."""

from __future__ import annotations

import sys

import pytest

from tests.programs import __main__ as runner
from tests.programs import report, run
from tests.programs.catalogue import PROGRAMS, Program
from tests.programs.run import Run, difference, numbers_in, parts_in

NAN = float("nan")


def test_numbers_of_chosen_lines():
    text = "Epoch 1 loss: 0.5 (12 ms)\nversion 3.1\nloss -2.5e-3 nan inf\n"
    assert numbers_in(text, "loss", r"\d+ ms") == pytest.approx(
        [1, 0.5, -0.0025, NAN, float("inf")], nan_ok=True
    )


def test_names_with_digits_are_no_numbers():
    assert numbers_in("conv2d layer1.weight x3 0x1f 7", ".", "0x[0-9a-f]+") == [7]


@pytest.mark.parametrize(
    "ours, theirs, gap",
    [
        ([1.0, 2.0], [1.0, 2.0], 0.0),
        ([1.001], [1.0], 1e-3),
        ([2002.0], [2000.0], 1e-3),
        ([0.001], [0.0], 1e-3),
        ([1.0], [1.0, 2.0], float("inf")),
        ([NAN], [NAN], 0.0),
        ([NAN], [1.0], float("inf")),
        ([1.0], [NAN], float("inf")),
    ],
)
def test_difference(ours, theirs, gap):
    assert difference(ours, theirs) == pytest.approx(gap)


def test_the_page_counts_what_pytorch_runs():
    rows = [
        {
            "name": "a",
            "verdict": "equal",
            "seconds": [[3.0, 2.0], [9.0, 1.6], [2.5, 5.0]],
            "start": [2.0, 1.0],
            "date": "2026-11-26",
            "numbers": 4,
            "difference": 1e-9,
            "note": "",
        },
        {
            "name": "b",
            "verdict": "fails",
            "numbers": 4,
            "note": "ValueError: x | y",
        },
        {
            "name": "c",
            "verdict": "not in PyTorch",
            "numbers": 0,
            "note": "too old",
        },
        {
            "name": "d",
            "verdict": "runs",
            "numbers": 0,
            "note": "prints no numbers",
        },
    ]
    page = report.page(rows)
    # a program that prints no numbers has none that could be equal
    assert "1 of 2 programs" in page and "1 more print none" in page
    assert "more print none" not in report.page(rows[:3])
    assert "| a | equal | 4 | 1.0e-09 | 1.50 | 1.00 | 2026-11-26 |  |" in page  # the median of the pairs
    assert "| b | fails | 4 |  |  |  |  | ValueError: x \\| y |" in page


def test_models_are_judged_one_by_one():
    """The noise of one model does not excuse the difference of another."""
    program = Program("zoo", "", "", models=True)
    theirs = {"a": [1.0, 2.0], "b": [5.0], "c": [3.0], "gone": [1.0]}
    ours = {"a": [1.0, 2.0], "b": [5.1], "c": [3.1]}
    rows = runner._judge(program, Run([1.0], 2.0, "", ours), Run([1.0], 3.0, "", theirs))
    assert [part["verdict"] for part in rows["parts"]] == ["equal", "differs", "differs", "differs"]
    noisy = {"a": [1.0, 2.0], "b": [5.3], "c": [3.0], "gone": [1.0]}
    judged = runner._with_verdict(_noise_of(runner, program, rows, theirs, [noisy]))
    assert [part["verdict"] for part in judged["parts"]] == ["equal", "rounding", "differs", "differs"]
    assert judged["verdict"] == "differs" and judged["difference"] == pytest.approx(0.1 / 3)
    assert judged["note"] == "1 of 4 models equal, 1 rounding"
    page = report.page([judged])
    assert (
        "0 of 1 programs" in page
        and "| zoo: b | rounding | 1 | 2.0e-02 |  |  |  | PyTorch itself differs by 6.0e-02 |" in page
    )


def _noise_of(module, program, rows, theirs, runs):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_repeated", lambda *_: [Run([], 1.0, "", parts) for parts in runs])
        return module._with_noise(program, rows, Run([], 1.0, "", theirs), None, None)


def test_lines_name_their_models():
    text = "vit_b: loss 0.5 gradient 2\nloading\nresnet18: loss nan gradient 1e-3\n"
    assert parts_in(text, ".", "\\d ms") == {
        "vit_b": [0.5, 2],
        "resnet18": [pytest.approx(NAN, nan_ok=True), 0.001],
    }


def test_a_program_that_cannot_run_here_says_why():
    program = Program("old", "", "", remark="It needs NumPy 2.")
    row = runner._judge(program, Run([], 0.0, "ValueError: no"), Run([1.0], 1.0, ""))
    assert row["verdict"] == "fails" and row["note"] == "ValueError: no It needs NumPy 2."


def _timed(monkeypatch, load: float, times: list[float], error: str = "") -> tuple[tuple, list[str]]:
    """Return what is measured of two pairs of runs that take these times, why there are none, and the order of the runs."""
    order: list[str] = []

    def one(program, side, sources):
        order.append(side.python)
        return Run([], times[len(order) - 1], error if side.python == "ours" else "")

    monkeypatch.setattr(run, "run", one)
    monkeypatch.setattr(run.os, "getloadavg", lambda: (load, 9.0, 9.0))
    sides = run.Side("theirs", False), run.Side("ours", True)
    return run.times(Program("p", "", ""), *sides, None, 2), order


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("one\nValueError: two\n", "ValueError: two"),
        ("\x1b[31mValueError: two\x1b[0m\nthree\n", "ValueError: two"),
        ("[rank1]: KeyError: one\nTraceback\ntorch.ChildFailedError: \n====\n", "[rank1]: KeyError: one"),
        ("one\ntwo\n\n", "two"),
        ("", ""),
    ],
)
def test_the_error_of_a_failed_run(text, error):
    assert run.error_in(text) == error


def test_both_sides_are_timed_in_turn(monkeypatch):
    found, order = _timed(monkeypatch, 0.5, [3.0, 2.0, 4.0, 1.0])
    assert (found, order) == (([(3.0, 2.0), (4.0, 1.0)], ""), ["theirs", "ours", "theirs", "ours"])


def test_a_busy_machine_measures_nothing(monkeypatch):
    assert _timed(monkeypatch, run.BUSY, [1.0] * 4) == (([], "the machine is busy"), [])


def test_a_failed_run_measures_nothing(monkeypatch):
    assert _timed(monkeypatch, 0.5, [1.0] * 4, "ValueError: no") == (
        ([], "ValueError: no"),
        ["theirs", "ours"],
    )


def test_the_time_is_that_of_the_last_script_alone(tmp_path, monkeypatch):
    """The clock is read when a script starts, and when the last one has ended."""
    clock = iter([1.0, 2.0, 5.0, 9.0])
    monkeypatch.setattr(run, "_cpu_seconds", lambda: next(clock))
    script = tmp_path / "one.py"
    script.write_text("print('loss 1.0')\n")
    program = Program("p", "", str(script), before=(str(script),))
    found = run.run(program, run.Side(sys.executable, False), tmp_path)
    assert found.numbers == [1.0] and found.seconds == 4.0


def test_the_page_is_written_from_the_results():
    assert report.PAGE.read_text() == report.page(report.load())


def test_rows_that_are_not_run_stay(monkeypatch, tmp_path):
    rows = [
        {"name": name, "verdict": "equal", "numbers": 1, "note": "", "date": "2026-11-24"}
        for name in ("timm", "peft")
    ]
    saved = []
    monkeypatch.setattr(report, "load", lambda: rows)
    monkeypatch.setattr(report, "save", saved.append)
    monkeypatch.setattr(runner, "_row", lambda program, *_: rows[1] | {"verdict": "differs"})
    arguments = ["--torch-python", "p", "--sources", str(tmp_path), "--only", "peft", "--pairs", "0"]
    assert runner.main(arguments) == 1
    assert [(row["name"], row["verdict"]) for row in saved[-1]] == [("timm", "equal"), ("peft", "differs")]


def test_names_are_unique():
    names = [program.name for program in PROGRAMS]
    assert len(names) == len(set(names))
