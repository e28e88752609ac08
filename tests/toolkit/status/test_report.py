"""The page that compares runs: its numbers, what it escapes, and how a browser shows it."""

from __future__ import annotations

import json
import math
import os
from pathlib import Path

import pytest

from megatron_ms import commands
from megatron_ms.status import report
from tests.toolkit.inference.browser import PROGRAM, Browser


def entry(name: str, losses, **keys) -> report.Entry:
    return report.Entry(name, "done", losses, 12.0, keys)


@pytest.fixture
def runs(here) -> Path:
    """Two runs of different learning rates, one of which lost a step."""
    for number, rate in enumerate((0.01, 0.002), 1):
        folder = here / f"runs/toy/2026010{number}-000000"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text(f"train: {{lr: {rate}, iterations: 100}}\nname: toy\n")
        (folder / "status.json").write_text(json.dumps({"state": "done", "started": 0, "ended": 60}))
        losses = [
            {"iteration": n, "lm loss": 5 * math.exp(-n * rate) + 1}
            for n in range(1, 101)
            if n != 50 * number
        ]
        (folder / "losses.jsonl").write_text("".join(json.dumps(one) + "\n" for one in losses))
    return here


def test_the_command_writes_it_once(runs, capsys) -> None:
    assert commands.main(["status", "--report", "report.html"]) == 0
    assert "report.html: 2 runs" in capsys.readouterr().out
    text = (runs / "report.html").read_text()
    assert text.count("<polyline") == 2 and "<td>train.lr</td><td>0.01</td><td>0.002</td>" in text
    assert "train.iterations" not in text  # the same in both
    assert "2.8394" in text and "<script" not in text and "http" not in text
    assert commands.main(["status", "--report", "report.html"]) == 2
    assert "exists and is not overwritten" in capsys.readouterr().err
    assert commands.main(["status", "--report", "none/report.html"]) == 2


def test_names_and_values_are_no_markup() -> None:
    text = report.page([entry("<b>a</b>", [(1, 2.0)], path='"><script>'), entry("b", [], path="x")], "<i>")
    assert "<b>" not in text and "<script>" not in text and "<i>" not in text
    assert "&lt;b&gt;a&lt;/b&gt;" in text


def test_runs_with_few_or_strange_losses() -> None:
    assert "No run has a loss yet" in report.page([entry("a", [])], "x")
    text = report.page([entry("a", [(1, 3.0)]), entry("b", [(1, math.nan), (2, math.inf), (3, 3.0)])], "x")
    assert "<polyline" in report.page(
        [entry("a", [(1, 1e20), (2, 1e20)])], "x"
    )  # one more is the same number
    points = [part.split('"')[0] for part in text.split('points="')[1:]]
    assert len(points) == 2 and "nan" not in "".join(points) and "inf" not in "".join(points)
    many = report.page([entry("a", [(n, 1.0 / n) for n in range(1, 5001)])], "x")
    assert 300 < many.split('points="')[1].split('"')[0].count(",") <= 402


@pytest.mark.parametrize(("low", "high"), [(0, 1), (1, 1), (3.001, 3.002), (1, 1e6), (-5, 7)])
def test_ticks_are_inside_and_few(low, high) -> None:
    scale = report._Scale(low, high)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 6
    assert all(scale.low - 1e-9 <= tick <= scale.high + 1e-9 for tick in ticks)


@pytest.mark.skipif(PROGRAM is None, reason="needs Chromium: apt install chromium")
def test_a_browser_shows_it(runs, tmp_path) -> None:
    assert commands.main(["status", "--report", "report.html"]) == 0
    browser = Browser(tmp_path / "profile")
    try:
        browser.size(360, 740)
        browser.open(f"file://{runs / 'report.html'}")
        assert browser.run("document.documentElement.scrollWidth <= 360")
        assert browser.run("document.querySelectorAll('tbody tr').length") == 3
        assert browser.run(
            "[...document.querySelectorAll('polyline')].every(line => line.getBBox().width > 500)"
        )
        if picture := os.environ.get("MSADAPTER_PICTURE"):
            browser.size(1000, 760)
            browser.picture(Path(picture))
    finally:
        browser.close()
