"""The page and the picture of `python -m benchmarks operators`."""

from __future__ import annotations

import math
from pathlib import Path

HEAD = """# Every operator compared with PyTorch

Written by `python -m benchmarks operators --torch-python PATH --table docs/operators_speed.md`; do not edit by hand. The rows are
generated from the operator table. Both sides run the same call in two processes that take turns on one machine ({cpu}, {threads}
threads, load average {load} before the run), on inputs of about {sizes} elements, and on fewer for operators of cubic cost.
A ratio is PyTorch's time divided by msadapter's, so msadapter is faster where it is above 1. Times are medians over {rounds} turns.
PyTorch {torch}, MindSpore {mindspore}, {when}.

![The ratios of all operators by family]({picture})
"""


def counted(results: dict) -> dict:
    """The rows that count in means."""
    return {key: entry for key, entry in results.items() if "ratio" in entry and "apart" not in entry}


def mean(entries) -> float:
    ratios = [entry["ratio"] for entry in entries]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def by_family(results: dict) -> dict[str, list[dict]]:
    """Family -> its counted rows, the family with the smallest mean first."""
    families: dict[str, list[dict]] = {}
    for entry in counted(results).values():
        families.setdefault(entry["family"], []).append(entry)
    return dict(sorted(families.items(), key=lambda item: mean(item[1])))


def falling(results: dict) -> list[tuple[str, list[float]]]:
    """The rows whose ratio at the largest size is below half of that at the smallest one, with their ratios."""
    growth: dict[str, dict[int, float]] = {}
    for entry in counted(results).values():
        way = "forward and backward" if entry["backward"] else "forward"
        growth.setdefault(f"{entry['label']}, {entry['dtype']}, {way}", {})[entry["size"]] = entry["ratio"]
    found = []
    for name, ratios in growth.items():
        ordered = [ratios[size] for size in sorted(ratios)]
        if len(ordered) > 1 and ordered[-1] < ordered[0] / 2:
            found.append((name, ordered))
    return sorted(found, key=lambda item: item[1][-1] / item[1][0])


def summary(results: dict) -> str:
    """A few lines for the terminal: the means and the worst rows."""
    rows = counted(results)
    lines = [f"geometric mean of {len(rows)} rows: {mean(rows.values()):.2f}"]
    lines += [
        f"  {mean(entries):.2f}  {family} ({len(entries)})" for family, entries in by_family(results).items()
    ]
    worst = sorted(rows.items(), key=lambda item: item[1]["ratio"])[:40]
    return "\n".join([*lines, "the worst rows:", *(f"  {entry['ratio']:.2f}  {key}" for key, entry in worst)])


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def _row(entry: dict) -> str:
    way = "forward, backward" if entry["backward"] else "forward"
    times = f"{_time(entry['theirs'])} | {_time(entry['ours'])} | {entry['ratio']:.2f}"
    return f"| {entry['label']} | {entry['dtype']} | {way} | {entry['size']} | {times} |"


def markdown(about: dict, results: dict, picture: str) -> str:
    rows = counted(results)
    sizes = ", ".join(map(str, about["sizes"]))
    lines = [HEAD.format(**{**about, "sizes": sizes}, picture=picture)]
    lines += ["## Means\n", "| family | rows | geometric mean | smallest |", "|---|---|---|---|"]
    for family, entries in by_family(results).items():
        lines.append(
            f"| {family} | {len(entries)} | {mean(entries):.2f} | {min(e['ratio'] for e in entries):.2f} |"
        )
    lines.append(
        f"| all | {len(rows)} | {mean(rows.values()):.2f} | {min((e['ratio'] for e in rows.values()), default=math.nan):.2f} |"
    )
    if slower := falling(results):
        lines += [
            "\n## Ratios that fall with the size\n",
            f"| call | ratios at {sizes} elements |",
            "|---|---|",
        ]
        lines += [f"| {name} | {', '.join(f'{ratio:.2f}' for ratio in ratios)} |" for name, ratios in slower]
    titles = [
        "\n## All rows, the slowest first\n",
        "| operator | type | pass | elements | PyTorch | msadapter | ratio |",
    ]
    lines += [*titles, "|---|---|---|---|---|---|---|"]
    lines += [_row(entry) for entry in sorted(rows.values(), key=lambda entry: entry["ratio"])]
    others = {key: entry for key, entry in results.items() if key not in rows}
    if others:
        lines += ["\n## Rows that count in no mean\n", "| row | ratio | reason |", "|---|---|---|"]
        for key, entry in others.items():
            reason = (entry.get("apart") or entry["error"]).splitlines()[0].replace("|", "/")[:160]
            ratio = f"{entry['ratio']:.2f}" if "ratio" in entry else ""
            lines.append(f"| {key.replace(' | ', ', ')} | {ratio} | {reason} |")
    if about["without"]:
        lines += [
            "\n## Operators without arguments\n",
            "Their schemas ask for more than tensors, and no line of",
        ]
        lines += [
            "`benchmarks/operator_arguments.py` gives it: "
            + ", ".join(f"`{n}`" for n in about["without"])
            + "."
        ]
    return "\n".join(lines) + "\n"


def plot(results: dict, path: Path) -> None:
    """One line for each family, with a point for each row; it fits a screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    families = by_family(results)
    figure, axes = pyplot.subplots(figsize=(11, 0.8 + 0.33 * len(families)))
    for height, entries in enumerate(families.values()):
        ratios = [entry["ratio"] for entry in entries]
        shifts = [((k * 7) % 11 - 5) / 18 for k in range(len(ratios))]
        colors = [
            "tab:red" if ratio < 0.5 else "tab:orange" if ratio < 0.9 else "tab:green" for ratio in ratios
        ]
        axes.scatter(ratios, [height + shift for shift in shifts], s=9, c=colors, alpha=0.6, linewidths=0)
        axes.plot([mean(entries)] * 2, [height - 0.4, height + 0.4], color="black", linewidth=2)
    axes.axvline(1, color="gray", linewidth=0.8)
    axes.set_xscale("log")
    ticks = [0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_yticks(
        range(len(families)), [f"{family} ({len(rows)})" for family, rows in families.items()], fontsize=8
    )
    axes.set_xlabel(
        "PyTorch's time / msadapter's time (a point for each row, a bar for the geometric mean)", fontsize=8
    )
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
