"""A page that compares runs: their losses as curves, their last numbers, and the keys in which they differ.

It is one HTML file without scripts, and it loads nothing.
"""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _EDGE = 720, 320, 60, 36, 12
_MOST = 400  # points of a curve
# Colours that people with colour blindness can tell apart (Okabe and Ito). Beyond them, curves are dashed.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; color: #222; background: #fff }
table { border-collapse: collapse; margin: 1rem 0; display: block; overflow-x: auto }
th, td { border-bottom: 1px solid #ddd; padding: .3rem .8rem; text-align: left; vertical-align: top }
td.number { text-align: right; font-variant-numeric: tabular-nums }
svg { max-width: 100%; height: auto } text { font: 12px system-ui, sans-serif; fill: #444 }
.mark { display: inline-block; width: 1.4em; height: .35em; margin-right: .5em; vertical-align: middle }
"""


@dataclass(frozen=True)
class Entry:
    """A run: its name, state, losses by iteration, and the keys of its configuration."""

    name: str
    state: str
    losses: Sequence[tuple[int, float]]
    seconds: float
    keys: Mapping[str, Any]

    @property
    def finite(self) -> list[tuple[int, float]]:
        return [(number, loss) for number, loss in self.losses if math.isfinite(loss)]


def page(entries: Sequence[Entry], title: str) -> str:
    """The whole page."""
    parts = [f"<h1>{_text(title)}</h1>", _table(entries), _curves(entries), _differences(entries)]
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}<title>{_text(title)}</title><style>{_STYLE}</style></head>\n'
        "<body>\n" + "\n".join(part for part in parts if part) + "\n</body></html>\n"
    )


def _text(value: Any) -> str:
    return html.escape(str(value))


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def _table(entries: Sequence[Entry]) -> str:
    rows = []
    for number, one in enumerate(entries):
        losses = one.losses
        cells = [
            f'<td><span class="mark" style="background: {_colour(number)}"></span>{_text(one.name)}</td>',
            f"<td>{_text(one.state)}</td>",
            _number(losses[-1][0] if losses else None),
            _number(losses[0][1] if losses else None),
            _number(losses[-1][1] if losses else None),
            _number(min((loss for _, loss in one.finite), default=None)),
            _number(one.seconds),
        ]
        rows.append("<tr>" + "".join(cells) + "</tr>")
    names = ("run", "state", "step", "first loss", "last loss", "least loss", "seconds")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _number(value: float | None) -> str:
    shown = "" if value is None else str(value) if isinstance(value, int) else f"{value:.5g}"
    return f'<td class="number">{shown}</td>'


def _curves(entries: Sequence[Entry]) -> str:
    """The losses over the steps."""
    points = [point for one in entries for point in one.finite]
    if not points:
        return "<p>No run has a loss yet.</p>"
    steps, losses = [number for number, _ in points], [loss for _, loss in points]
    across, up = _Scale(min(steps), max(steps)), _Scale(min(losses), max(losses))
    width, height = _WIDTH - _LEFT - _EDGE, _HEIGHT - _BOTTOM - _EDGE

    def place(number: float, loss: float) -> tuple[float, float]:
        return _LEFT + width * across.part(number), _EDGE + height * (1 - up.part(loss))

    drawn = []
    for tick in across.ticks():
        x = place(tick, up.low)[0]
        drawn.append(f'<text x="{x:.1f}" y="{_HEIGHT - 16}" text-anchor="middle">{tick:g}</text>')
    for tick in up.ticks():
        y = place(across.low, tick)[1]
        drawn.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _EDGE}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>')
        drawn.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    drawn.append(f'<text x="{_LEFT + width / 2:.0f}" y="{_HEIGHT - 2}" text-anchor="middle">step</text>')
    for number, one in enumerate(entries):
        finite = one.finite
        every = max(1, -(-len(finite) // _MOST))
        kept = finite[::every] + (finite[-1:] if finite and (len(finite) - 1) % every else [])
        if kept:
            line = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in kept)
            dashed = ' stroke-dasharray="6 4"' if number >= len(_COLOURS) else ""
            title = f"<title>{_text(one.name)}</title>"
            last = place(*kept[-1])
            drawn.append(
                f'<polyline points="{line}" fill="none" stroke="{_colour(number)}" stroke-width="2"{dashed}>{title}</polyline>'
                f'<circle cx="{last[0]:.1f}" cy="{last[1]:.1f}" r="3" fill="{_colour(number)}">{title}</circle>'
            )
    label = f"losses of {len(entries)} runs over their steps"
    return f'<h2>Losses</h2>\n<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{"".join(drawn)}</svg>'


class _Scale:
    """A range of numbers, and round ones in it."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high if high > low else low + max(1.0, abs(low) / 1000)

    def part(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        span = self.high - self.low
        unit = 10.0 ** math.floor(math.log10(span / 4))
        step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor * 5 >= span)
        first = math.ceil(self.low / step)
        return [round(number * step, 12) for number in range(first, math.floor(self.high / step) + 1)]


def _differences(entries: Sequence[Entry]) -> str:
    """The keys that are not the same in all runs."""
    if len(entries) < 2:
        return ""
    keys = sorted({key for one in entries for key in one.keys})
    rows = []
    for key in keys:
        values = [one.keys.get(key) for one in entries]
        if any(value != values[0] for value in values):
            cells = "".join(f"<td>{'' if value is None else _text(value)}</td>" for value in values)
            rows.append(f"<tr><td>{_text(key)}</td>{cells}</tr>")
    if not rows:
        return "<p>All runs have the same configuration.</p>"
    head = "".join(f"<th>{_text(one.name)}</th>" for one in entries)
    body = "".join(rows)
    return f"<h2>Different keys</h2>\n<table><thead><tr><th>key</th>{head}</tr></thead><tbody>{body}</tbody></table>"


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Sections and keys as SECTION.KEY -> value."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
