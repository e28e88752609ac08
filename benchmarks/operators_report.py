"""The page and the picture of `python -m benchmarks operators`."""

from __future__ import annotations

import fnmatch
import math
from pathlib import Path

HEAD = """# Every operator compared with PyTorch{limited}

Written by `{command}`; do not edit by hand.
The rows are generated from the operator table. Both sides run the same call in two processes that take turns on one machine
({cpu}, {threads} threads, load average {load} before the run), on inputs of about {sizes} elements, and on fewer for operators
of cubic cost.
A ratio is PyTorch's time divided by msadapter's, so msadapter is faster where it is above 1. Times are medians over {rounds} turns,
and over up to four times as many where the ratios of the turns differ by more than a fifth.
The targets hold for inputs of about {middle} elements, and so do times without a size.
PyTorch {torch}, MindSpore {mindspore}, {when}.

![The ratios of all operators by family]({picture})
"""

MEAN, FAMILY_MEAN, SLOWEST = 1.2, 0.9, 0.5  # the smallest ratios that the project aims at
CLIP = 4.0  # a larger ratio counts as this one in the second mean
MEMORY = 1.5  # the largest ratio of peak memory
MEMORY_NOISE = 2**20  # bytes; a smaller difference of two peaks is not looked at
WORK_SECONDS = 1e-4  # a call that takes less is mostly the call itself, not its work

REASONS = Path(__file__).with_name("operator_reasons.tsv")


def reasons(path: Path | None = None) -> list[list[str]]:
    """The lines of a table of reasons (default: REASONS): patterns of a call, an element type and a pass, and the reason.

    Raises ValueError for a line that has other than these four columns.
    """
    found, path = [], path or REASONS
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != 4 or not all(columns):
                raise ValueError(
                    f"{path}:{number}: expected call, type, pass and reason with tabs between them, got {line!r}"
                )
            found.append(columns)
    return found


def way(entry: dict) -> str:
    return "forward and backward" if entry["backward"] else "forward"


def reason_of(entry: dict, table: list[list[str]]) -> str:
    """Why a row is slower than half of PyTorch's speed, or nothing."""
    values = entry["label"], entry["dtype"], way(entry)
    for *patterns, reason in table:
        if all(map(fnmatch.fnmatchcase, values, patterns)):
            return reason
    return ""


def counted(results: dict) -> dict:
    """The rows that count in means."""
    return {key: entry for key, entry in results.items() if "ratio" in entry and "apart" not in entry}


def of_size(results: dict, size: int) -> dict:
    return {key: entry for key, entry in counted(results).items() if entry["size"] == size}


def mean(entries, clip: float = math.inf) -> float:
    """The geometric mean of the ratios, of which larger ones count as ``clip``."""
    ratios = [min(entry["ratio"], clip) for entry in entries]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def by_family(results: dict) -> dict[str, list[dict]]:
    """Family -> its counted rows, the family with the smallest mean first."""
    families: dict[str, list[dict]] = {}
    for entry in counted(results).values():
        families.setdefault(entry["family"], []).append(entry)
    return dict(sorted(families.items(), key=lambda item: mean(item[1])))


def by_call(results: dict) -> dict[str, dict[int, dict]]:
    """Call, element type and pass -> size -> its counted row."""
    calls: dict[str, dict[int, dict]] = {}
    for entry in counted(results).values():
        calls.setdefault(f"{entry['label']}, {entry['dtype']}, {way(entry)}", {})[entry["size"]] = entry
    return calls


def falling(results: dict) -> list[tuple[str, list[tuple[int, float]]]]:
    """The calls whose ratio at the largest size is below half of that at the smallest one, with sizes and ratios.

    Only the sizes count at which both sides take at least WORK_SECONDS: below that, the ratio is one of calls.
    """
    found = []
    for name, rows in by_call(results).items():
        ratios = [
            (size, row["ratio"])
            for size, row in sorted(rows.items())
            if min(row["ours"], row["theirs"]) >= WORK_SECONDS
        ]
        if len(ratios) > 1 and ratios[-1][1] < ratios[0][1] / 2:
            found.append((name, ratios))
    return sorted(found, key=lambda item: item[1][-1][1] / item[1][0][1])


def memory_ratio(entry: dict) -> float:
    """msadapter's peak bytes divided by PyTorch's; 1 where they differ by less than MEMORY_NOISE, NaN if not measured."""
    if "peak" not in entry:
        return math.nan
    ours, theirs = entry["peak"]["ours"], entry["peak"]["theirs"]
    return 1.0 if abs(ours - theirs) < MEMORY_NOISE else ours / max(theirs, MEMORY_NOISE)


def hungry(results: dict) -> list[tuple[float, str, dict]]:
    """The rows that need more than MEMORY times PyTorch's peak memory, the largest ratio first."""
    rows = [(memory_ratio(entry), key, entry) for key, entry in counted(results).items()]
    return sorted((row for row in rows if row[0] > MEMORY), key=lambda row: -row[0])


def middle_of(sizes: list[int]) -> int:
    """The size on which the targets are set: a million elements, or the nearest that was measured."""
    return min(sizes, key=lambda size: abs(math.log(size / 2**20)))


def targets(results: dict, size: int, table: list[list[str]]) -> list[tuple[str, str, bool]]:
    """(target, what was measured, whether it is met) for the rows of one size."""
    rows = of_size(results, size)
    low = [family for family, entries in by_family(rows).items() if mean(entries) < FAMILY_MEAN]
    unexplained = [
        key for key, entry in rows.items() if entry["ratio"] < SLOWEST and not reason_of(entry, table)
    ]
    large = hungry(rows)
    overall = mean(rows.values())
    return [
        (f"geometric mean at least {MEAN}", f"{overall:.2f}", overall >= MEAN),
        (f"no family's mean below {FAMILY_MEAN}", ", ".join(low) or "none", not low),
        (
            f"no row below {SLOWEST} without a reason",
            f"{len(unexplained)} of {len(rows)} rows",
            not unexplained,
        ),
        (f"no peak memory above {MEMORY} times PyTorch's", f"{len(large)} of {len(rows)} rows", not large),
    ]


def summary(results: dict, sizes: list[int]) -> str:
    """A few lines for the terminal: the targets, the means and the worst rows of the middle size."""
    table, size = reasons(), middle_of(sizes)
    rows = of_size(results, size)
    lines = [
        f"{'met' if met else 'MISSED'}: {target}: {found}"
        for target, found, met in targets(results, size, table)
    ]
    lines.append(
        f"geometric mean of {len(rows)} rows of {size} elements: {mean(rows.values()):.2f}, "
        f"{mean(rows.values(), CLIP):.2f} with ratios up to {CLIP:g}"
    )
    lines += [
        f"  {mean(entries):.2f}  {family} ({len(entries)})" for family, entries in by_family(rows).items()
    ]
    lines.append("the worst rows:")
    for key, entry in sorted(rows.items(), key=lambda item: item[1]["ratio"])[:40]:
        lines.append(f"  {entry['ratio']:.2f}  {key}  {reason_of(entry, table)}".rstrip())
    lines += ["memory:", *(f"  {ratio:.1f}  {key}" for ratio, key, _ in hungry(results)[:40])]
    return "\n".join(lines)


def _time(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def _megabytes(entry: dict, who: str) -> str:
    return f"{entry['peak'][who] / 2**20:.1f}"


def _table(titles: list[str], rows: list[list[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (titles, ["---"] * len(titles), *rows)]


def _means(results: dict, sizes: list[int], middle: int) -> list[str]:
    def row(name: str, of_name) -> list[str]:
        at = {size: [e for e in of_size(results, size).values() if of_name(e)] for size in sizes}
        smallest = min((entry["ratio"] for entry in at[middle]), default=math.nan)
        cells = [f"{mean(at[size]):.2f}" for size in sizes]
        return [name, str(len(at[middle])), *cells, f"{mean(at[middle], CLIP):.2f}", f"{smallest:.2f}"]

    titles = ["family", "rows", *(f"{size} elements" for size in sizes), f"ratios up to {CLIP:g}", "smallest"]
    families = by_family(of_size(results, middle))
    rows = [row(family, lambda entry, name=family: entry["family"] == name) for family in families]
    return ["## Geometric means\n", *_table(titles, [*rows, row("all", lambda entry: True)])]


def _all_rows(results: dict, sizes: list[int], middle: int, table: list[list[str]]) -> list[str]:
    def at_middle(rows: dict[int, dict]) -> dict:
        return rows.get(middle) or rows[max(rows)]

    rows = []
    for calls in sorted(by_call(results).values(), key=lambda calls: at_middle(calls)["ratio"]):
        entry = at_middle(calls)
        memory = memory_ratio(entry)
        rows.append([
            entry["label"],
            entry["dtype"],
            way(entry),
            _time(entry["theirs"]),
            _time(entry["ours"]),
            *(f"{calls[size]['ratio']:.2f}" if size in calls else "" for size in sizes),
            "" if math.isnan(memory) else f"{memory:.2f}",
            reason_of(entry, table) if entry["ratio"] < SLOWEST else "",
        ])  # fmt: skip
    titles = ["operator", "type", "pass", "PyTorch", "msadapter", *(f"ratio, {size}" for size in sizes)]
    return ["\n## All rows, the slowest first\n", *_table([*titles, "memory", "reason"], rows)]


def markdown(about: dict, results: dict, picture: str) -> str:
    table, sizes = reasons(), about["sizes"]
    middle = middle_of(sizes)
    rows = counted(results)
    lines = [HEAD.format(**{**about, "sizes": ", ".join(map(str, sizes))}, picture=picture, middle=middle)]
    met = [[target, found, "yes" if yes else "no"] for target, found, yes in targets(results, middle, table)]
    lines += ["## Targets\n", *_table(["target", "measured", "met"], met), ""]
    lines += _means(results, sizes, middle)
    if slower := falling(results):
        text = f"\n## Ratios that fall with the size\n\nOf sizes at which both sides take at least {_time(WORK_SECONDS)}.\n"
        cells = [
            [name, ", ".join(f"{ratio:.2f} at {size}" for size, ratio in ratios)] for name, ratios in slower
        ]
        lines += [text, *_table(["call", "ratios"], cells)]
    if large := hungry(results):
        text = f"\n## Peak memory above {MEMORY} times PyTorch's\n\nIn MiB, of one call with its result, without its operands.\n"
        cells = [
            [key.replace(" | ", ", "), _megabytes(entry, "theirs"), _megabytes(entry, "ours"), f"{ratio:.1f}"]
            for ratio, key, entry in large
        ]
        lines += [text, *_table(["row", "PyTorch", "msadapter", "ratio"], cells)]
    lines += _all_rows(results, sizes, middle, table)
    others = []
    for key, entry in results.items():
        if key not in rows:
            reason = (entry.get("apart") or entry["error"]).splitlines()[0].replace("|", "/")[:160]
            others.append([
                key.replace(" | ", ", "), f"{entry['ratio']:.2f}" if "ratio" in entry else "", reason
            ])  # fmt: skip
    if others:
        lines += ["\n## Rows that count in no mean\n", *_table(["row", "ratio", "reason"], others)]
    lines += _not_timed(about)
    return "\n".join(lines) + "\n"


def _not_timed(about: dict) -> list[str]:
    lines = []
    if about["left_out"]:
        cells = [[reason, ", ".join(f"`{n}`" for n in names)] for reason, names in about["left_out"].items()]
        lines += ["\n## Operators that are not timed\n", *_table(["reason", "operators"], cells)]
    if about["without"]:
        lines += [
            "\n## Operators without arguments\n",
            "Their schemas ask for more than tensors, and no line of",
        ]
        names = ", ".join(f"`{name}`" for name in about["without"])
        lines.append(f"`benchmarks/operator_arguments.py` gives it: {names}.")
    if about["fixed"]:
        names = ", ".join(f"`{name}`" for name in about["fixed"])
        lines += [
            "\n## Calls of one size\n",
            f"Their arguments do not follow the number of elements: {names}.",
        ]
    return lines


def plot(results: dict, path: Path, sizes: list[int]) -> None:
    """One line for each family, with a point for each row of the middle size; it fits a screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    families = by_family(of_size(results, middle_of(sizes)))
    figure, axes = pyplot.subplots(figsize=(11, 0.8 + 0.33 * len(families)))
    for height, entries in enumerate(families.values()):
        ratios = [entry["ratio"] for entry in entries]
        shifts = [((k * 7) % 11 - 5) / 18 for k in range(len(ratios))]
        colors = [
            "tab:red" if ratio < SLOWEST else "tab:orange" if ratio < FAMILY_MEAN else "tab:green"
            for ratio in ratios
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
