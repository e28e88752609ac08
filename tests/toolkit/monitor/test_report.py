"""The page at the end of a run."""

from __future__ import annotations

import json
import math
import re

import pytest

from megatron_ms.monitor import events, outputs, report
from tests.toolkit.inference.browser import PROGRAM, Browser


def step(number: int, loss: float | None, seconds: float = 2.0, **more) -> dict:
    return {
        "iteration": number, "time": 100.0 + 2 * number, "seconds": seconds, "steps": 1, "skipped": 0, "loss": loss,
        "grad norm": 1.0 + number, "learning rate": 1e-3, "tokens per second": 1000.0, "tflops": 1.0, "memory": 2.5,
        "ranks": [{"loss": loss, "seconds": 1.0}, {"loss": loss, "seconds": 1.5}], **more,
    }  # fmt: skip


def test_the_page_shows_the_run_and_needs_no_network(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(events.time, "time", lambda: 100.0)
    events.append(tmp_path, "attempt", "attempt 1 begins")
    events.append(tmp_path, "failure", "rank 1 <b>failed</b>", iteration=3)
    lines = [step(1, 3.0), step(2, None, mfu=0.25), step(3, 2.5), step(3, 2.25, mfu=0.5)]
    (tmp_path / outputs.MEASURED).write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = report.write(tmp_path, "toy & co", {"state": "done", "iterations": 3})
    assert page is not None
    text = page.read_text()
    for part in (
        "<title>toy &amp; co</title>", "rank 1 &lt;b&gt;failed&lt;/b&gt;", "<td>3 of 3</td>", "<td>2.25</td>", "<td>50.0 %</td>",
        "steps that count: 6 s", "steps that were computed again: 2 s", "restarts: ",
        ">own time of each rank, s<", "default-src 'none'",
    ):  # fmt: skip
        assert part in text, part
    assert "SIMULATED" not in text
    assert report.write(tmp_path, "toy", {"simulated": True}) == page and "SIMULATED NPU" in page.read_text()
    assert "<script" not in text and not re.search(r'(?:src|href)="(?!#)', text)


def test_norms_of_parameters_and_of_the_optimizer_are_drawn(tmp_path) -> None:
    """Of many parameters only the largest. Infinity and NaN are gaps."""
    lines = []
    for number in range(1, 5):
        line = step(number, 3.0)
        names = {f"layer.{one}.weight": float(one) + number / 8 for one in range(20)}
        bad = math.nan if number == 2 else math.inf if number == 3 else 50.0
        line["ranks"][0] |= {"norm": names, "weight": {"layer.0.weight": 2.0}, "state": {"exp_avg": 0.5}}
        line["ranks"][1] |= {"norm": names | {"layer.3.weight": bad}, "weight": {}}
        lines.append(line | {"embedding norm": 0.25})
    (tmp_path / outputs.MEASURED).write_text("".join(map(events.line_of, lines)))
    page = report.write(tmp_path, "toy", {})
    assert page is not None
    text = page.read_text()
    for part in (
        "gradient norms of parameters, largest rank, the largest 12 of 20", ">norms of parameters, largest rank<",
        ">norms of the optimizer's state, largest rank<", ">embedding norm<", ">layer.3.weight<", ">layer.19.weight<", ">exp_avg<",
    ):  # fmt: skip
        assert part in text, part
    assert ">layer.2.weight<" not in text


@pytest.mark.skipif(PROGRAM is None, reason="needs Chromium: apt install chromium")
def test_a_browser_shows_all_of_the_page(tmp_path) -> None:
    """The curves are drawn, colours are not blocked by the page's own policy, nothing is fetched and nothing sticks out."""
    events.append(tmp_path, "failure", "rank 1, iteration 3: RuntimeError: the device was lost", iteration=3)
    lines = [step(number, 3.0 - number / 10) for number in range(1, 9)]
    (tmp_path / outputs.MEASURED).write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = report.write(tmp_path, "toy", {"state": "done", "iterations": 8})
    assert page is not None
    browser = Browser(tmp_path / "profile")
    try:
        browser.size(1100, 1800)
        browser.open(page.as_uri())
        assert "the device was lost" in browser.run("document.body.innerText")
        drawn = browser.run(
            "[...document.querySelectorAll('svg')].map(one => one.getBoundingClientRect().width)"
        )
        assert drawn and min(drawn) > 300
        colours = "new Set([...document.querySelectorAll('*')].map(one => getComputedStyle(one).backgroundColor)).size"
        assert browser.run(colours) > 3  # those of the use of the time
        assert browser.run("performance.getEntriesByType('resource').length") == 0
        assert browser.run("document.documentElement.scrollWidth <= innerWidth")
        browser.picture(tmp_path / "report.png")
    finally:
        browser.close()


def test_without_measured_steps_there_is_no_page(tmp_path) -> None:
    events.append(tmp_path, "attempt", "attempt 1 begins")
    assert report.write(tmp_path, "toy", {}) is None and not (tmp_path / report.NAME).exists()
