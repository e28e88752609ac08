"""Writes report.html into a run's folder: its curves, its events and the use of its time, on one page without a network."""

from __future__ import annotations

import html
import io
import math
import string
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..convert.steps import write_atomically
from . import events, goodput, outputs

NAME = "report.html"
SIMULATED = "SIMULATED NPU: no time, speed or memory figure is one of a device"
_PAGE = Path(__file__).with_name("report.html")
_POINTS = 2000  # of a curve; of longer runs every n-th step is shown
_RANKS = 16  # curves of single ranks
_PARAMETERS = 12  # curves of single parameters, the largest ones
_NORMS = {
    "norm": "gradient norms of parameters",
    "weight": "norms of parameters",
    "state": "norms of the optimizer's state",
}
_USES = {
    "training": "steps that count",
    "lost": "steps that were computed again",
    "restarting": "restarts",
    "saving": "checkpoints",
    "other": "the first start and the rest",
}
Records = Sequence[Mapping[str, Any]]


def write(folder: Path, title: str, status: Mapping[str, Any]) -> Path | None:
    """Writes the page and returns its path; None if no step was measured.

    status: what status.json says.
    """
    lines, happened = events.read(folder, outputs.MEASURED), events.read(folder)
    records = [record for _, record in sorted({line["iteration"]: line for line in lines}.items())]
    if not records:
        return None
    until = max([line["time"] for line in [*lines, *happened]])
    spent = goodput.spent(lines, happened, until)
    page = string.Template(_PAGE.read_text(encoding="utf-8")).substitute(
        title=html.escape(title),
        facts="".join(_row(name, value) for name, value in _facts(records, status, spent).items()),
        bar="".join(
            f'<div class="{use}" style="flex-grow: {getattr(spent, use):.3f}"></div>' for use in _USES
        ),
        legend=" &emsp; ".join(
            f'<span class="key {use}"></span>{text}: {getattr(spent, use):.0f} s'
            for use, text in _USES.items()
        ),
        charts=_charts(records, happened),
        events="".join(_event(event) for event in happened),
    )
    write_atomically(folder / NAME, page)
    return folder / NAME


def _facts(records: Records, status: Mapping[str, Any], spent: goodput.Spent) -> dict[str, str]:
    last = records[-1]
    found = {
        "state": str(status.get("state", "unknown")),
        "reason": str(status.get("reason", "")),
        "device": SIMULATED if status.get("simulated") else "",
        "step": f"{last['iteration']} of {status.get('iterations', '?')}",
        "loss": _number(last["loss"]),
        "goodput": f"{100 * spent.goodput:.1f} % of {spent.total:.0f} s",
        "tokens per second": _number(last["tokens per second"]),
        "MFU": f"{100 * last['mfu']:.1f} %" if "mfu" in last else "",
        "memory": f"{last['memory']:.3g} GB on the largest rank",
        "skipped steps": str(last["skipped"]),
        "ranks": str(len(last["ranks"])),
    }
    return {name: text for name, text in found.items() if text}


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.5g}"


def _row(name: str, value: str) -> str:
    return f"<tr><th>{html.escape(name)}</th><td>{html.escape(value)}</td></tr>"


def _event(event: Mapping[str, Any]) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event["time"]))
    return f"<tr><td>{when}</td><td>{html.escape(str(event['kind']))}</td><td>{html.escape(str(event['text']))}</td></tr>"


def _charts(records: Records, happened: Records) -> str:
    """The curves as SVG pictures: one of small charts, and a wide chart for each kind of norms."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    shown = records[:: 1 + len(records) // _POINTS]
    steps = [record["iteration"] for record in shown]
    names = ["loss", "grad norm", "learning rate", "tokens per second", "own time", "memory"]
    names += [name for name in ("mfu", "embedding norm") if name in shown[-1]]
    with rc_context({"svg.fonttype": "none", "font.size": 9, "axes.grid": True, "grid.alpha": 0.3}):
        rows = (len(names) + 1) // 2
        figure = Figure(figsize=(10, 2.4 * rows))
        places = figure.subplots(rows, 2, sharex=True)
        for place, name in zip(places.flat, names, strict=False):
            _curve(place, name, steps, shown)
            _mark(place, happened)
        for place in places.flat[len(names) :]:
            place.set_visible(False)
        figures = [figure]
        for kind in _NORMS:
            if any(own.get(kind) for record in shown for own in record["ranks"]):
                figures.append(Figure(figsize=(10, 3)))
                place = figures[-1].subplots()
                _norms(place, kind, steps, shown)
                _mark(place, happened)
        return "\n".join(map(_picture, figures))


def _mark(place: Any, happened: Records) -> None:
    """Marks the steps in which something has happened."""
    for event in happened:
        if event["kind"] in ("failure", "skip", "spike") and "iteration" in event:
            place.axvline(event["iteration"], color="#c44", linewidth=0.7, linestyle=":")


def _picture(figure: Any) -> str:
    """A figure as an element of the page."""
    figure.tight_layout()
    text = io.StringIO()
    figure.savefig(text, format="svg", metadata={"Date": None})
    return text.getvalue()[text.getvalue().index("<svg") :]


def _curve(place: Any, name: str, steps: Sequence[int], shown: Records) -> None:
    """A curve of the whole run; of loss and own time also those of single ranks."""
    key = {"loss": "loss", "own time": "seconds"}.get(name)
    count = len(shown[-1]["ranks"]) if key else 0
    for rank in range(count if 1 < count <= _RANKS or name == "own time" else 0):
        own = [record["ranks"][rank].get(key) if rank < len(record["ranks"]) else None for record in shown]
        if any(value is not None for value in own):
            place.plot(
                steps, [_or_gap(value) for value in own], linewidth=0.7, alpha=0.6, label=f"rank {rank}"
            )
    if name != "own time":
        place.plot(steps, [_or_gap(record.get(name)) for record in shown], color="black", linewidth=1)
    norms = [record.get(name) or 0.0 for record in shown] if name == "grad norm" else [0.0]
    if 0 < 20 * min(norms) < max(norms):
        place.set_yscale("log")
    if 1 < count <= _RANKS:
        place.legend(fontsize=7)
    place.set_title(
        {"own time": "own time of each rank, s", "memory": "memory, GB"}.get(name, name), fontsize=10
    )


def _norms(place: Any, kind: str, steps: Sequence[int], shown: Records) -> None:
    """A curve for each parameter or kind of state: the norm on the rank where it is largest."""
    curves: dict[str, list[float]] = {}
    for number, record in enumerate(shown):
        for own in record["ranks"]:
            for name, value in own.get(kind, {}).items():
                values = curves.setdefault(name, [float("nan")] * len(shown))
                if not value <= values[number]:  # NaN is shown as a gap
                    values[number] = value
    largest = sorted(curves, key=lambda name: _last(curves[name]), reverse=True)[:_PARAMETERS]
    for number, name in enumerate(largest):
        label = name if len(name) < 50 else f"...{name[-46:]}"
        place.plot(
            steps,
            curves[name],
            linewidth=1,
            label=label,
            color=f"C{number % 10}",
            linestyle="-:"[number // 10],
        )
    place.set_yscale("log")
    place.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    part = f", the largest {len(largest)} of {len(curves)}" if len(largest) < len(curves) else ""
    place.set_title(f"{_NORMS[kind]}, largest rank{part}", fontsize=10)


def _last(values: Sequence[float]) -> float:
    """The last finite value; 0 if there is none."""
    return next((value for value in reversed(values) if math.isfinite(value)), 0.0)


def _or_gap(value: float | None) -> float:
    return float("nan") if value is None else value
