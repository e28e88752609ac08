"""Writes the results of an evaluation: a table, JSON files and a picture."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .harness import Score


def table(scores: Sequence[Score]) -> str:
    """The scores as lines of text, with the subjects of a benchmark that has several."""
    lines = [f"{'benchmark':40} {'measure':12} {'score':>7} {'questions':>10}"]
    for score in scores:
        lines.append(f"{score.benchmark:40} {score.metric:12} {100 * score.value:6.2f}% {score.questions:10}")
        if len(score.subjects) > 1:
            for subject, (value, count) in score.subjects.items():
                lines.append(f"  {subject:38} {'':12} {100 * value:6.2f}% {count:10}")
    return "\n".join(lines)


def write(
    folder: Path, scores: Sequence[Score], records: Sequence[dict[str, Any]], facts: dict[str, Any]
) -> None:
    """Writes results.json, samples.jsonl and results.png into a new folder."""
    results = {
        score.benchmark: {
            "measure": score.metric,
            "score": score.value,
            "questions": score.questions,
            "subjects": {
                name: {"score": value, "questions": count} for name, (value, count) in score.subjects.items()
            },
        }
        for score in scores
    }
    text = json.dumps({**facts, "results": results}, indent=1, ensure_ascii=False)
    (folder / "results.json").write_text(text + "\n", encoding="utf-8")
    with (folder / "samples.jsonl").open("w", encoding="utf-8") as file:
        for record in records:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")
    _picture(folder / "results.png", scores)


def _picture(path: Path, scores: Sequence[Score]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 1 + 0.45 * len(scores)))
    names = [f"{score.benchmark} ({score.metric})" for score in scores]
    bars = axes.barh(names, [100 * score.value for score in scores])
    axes.bar_label(bars, fmt="%.1f%%", padding=3)
    axes.set_xlim(0, 110)
    axes.set_xlabel("score in percent")
    axes.invert_yaxis()
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
