"""Writes the results as Markdown tables and as pictures."""

from __future__ import annotations

import math
from pathlib import Path

HEAD = """# Speed compared with PyTorch

Written by `python -m benchmarks --torch-python PATH`; do not edit by hand. PyTorch and msadapter run the same code of
`benchmarks/` in two processes that take turns on the same machine ({cpu}, {threads} threads, load average {load}).
A ratio is PyTorch's time divided by msadapter's time, so msadapter is faster where it is above 1.
Ratios and times are medians over {rounds} turns, and over up to four times as many where the turns differ by more than a fifth.
PyTorch {torch}, MindSpore {mindspore}, {when}.

![Ratios of all works](benchmarks_ratios.png)

The next picture shows how the time of a GPT's training step grows with each of its sizes, and with the number of ranks that
share this machine's processors. The base is 4 layers, hidden size 128, sequence length 128 and micro batch 2.

![Step time against layers, hidden size, sequence length, micro batch and ranks](benchmarks_growth.png)
"""


def _time(seconds: float) -> str:
    for limit, unit, factor in ((1e-3, "us", 1e6), (1, "ms", 1e3)):
        if seconds < limit:
            return f"{seconds * factor:.2f} {unit}"
    return f"{seconds:.2f} s"


def _amount(value: float, kind: str) -> str:
    return f"{value / 2**20:.0f} MB" if kind == "memory" else _time(value)


def _rate(entry: dict, who: str) -> str:
    if entry.get("flops"):
        return f"{entry['flops'] / entry[who] / 1e9:.0f} GFLOP/s"
    if entry.get("moved"):
        return f"{entry['moved'] / entry[who] / 1e9:.1f} GB/s"
    return ""


CEILINGS = {
    "copy, GB/s": ("moved", ("copy 64 MB",)),
    "float32, GFLOP/s": ("flops", ("matmul 1024 float32", "matmul 2048 float32")),
    "bfloat16, GFLOP/s": ("flops", ("matmul 512 bfloat16", "matmul 1024 bfloat16")),
}


def roofline(results: dict) -> dict:
    """The best rates that either side reached in this run, as an estimate of the machine's limits."""
    best = {}
    for label, (amount, names) in CEILINGS.items():
        seen = [results[n] for n in names if "ratio" in results.get(n, {})]
        if seen:
            best[label] = max(entry[amount] / min(entry["ours"], entry["theirs"]) / 1e9 for entry in seen)
    return best


def _row(name: str, entry: dict) -> str:
    target = entry.get("target")
    goal = f"{target:.2f}" if target else ""
    if "absent" in entry:
        return f"| {name} | | | left out: {entry['absent']} | {goal} | |"
    if "error" in entry:
        return f"| {name} | | | {entry['error'].splitlines()[0][:100]} | {goal} | |"
    ratio = f"{entry['ratio']:.2f}"
    if target and entry["ratio"] < target:
        ratio += " (below)"
    rates = " / ".join(filter(None, (_rate(entry, "theirs"), _rate(entry, "ours"))))
    theirs, ours = (_amount(entry[who], entry["kind"]) for who in ("theirs", "ours"))
    return f"| {name} | {theirs} | {ours} | {ratio} | {goal} | {rates} |"


def geometric_mean(results: dict, group: str) -> float:
    """The geometric mean of the ratios of a group's rows with a target of at least 0.9; 0 if there are none."""
    ratios = [
        e["ratio"]
        for e in results.values()
        if e["group"] == group and e.get("target", 0) >= 0.9 and "ratio" in e
    ]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else 0.0


def markdown(run: dict) -> str:
    lines = [HEAD.format(**run["about"])]
    titles = "| work | PyTorch | msadapter | ratio | target | rates, PyTorch / msadapter |"
    ceiling = ", ".join(f"{label} {rate:.0f}" for label, rate in run["roofline"].items())
    if ceiling:
        lines.append(
            f"The machine's limits, measured as the best rate of either side in this run: {ceiling}.\n"
        )
    groups: dict[str, list[str]] = {}
    for name, entry in run["results"].items():
        groups.setdefault(entry["group"], []).append(_row(name, entry))
    for group, rows in groups.items():
        mean = geometric_mean(run["results"], group)
        rows += (
            [f"| geometric mean of the rows with a target | | | {mean:.2f} | 1.00 | |"]
            if mean and "8x8" in group
            else []
        )
        lines += [f"## {group[0].upper()}{group[1:]}\n", titles, "|---|---|---|---|---|---|", *rows, ""]
    return "\n".join(lines)


NPU_TITLE = "## What a training step issues on the simulated NPU"
NPU_TEXT = """
Counted on [the simulated NPU](simulated_npu.md) by `python -m benchmarks npu --table docs/benchmarks.md` on {when}, in {rounds}
processes. "Operators" are calls of PyTorch's operators and backward nodes, which are the same on a CPU. "Launches" are those of
`aclnn` operators. "Copies" are those between the host and the device. The batch is on the device before the step, and the loss is
not read. A number in a formula travels with its launch. The launches vary from process to process, because a first gradient is
copied if the queue still holds it, and taken over otherwise.
"""


def npu_section(counts: dict) -> str:
    """The section about the steps that benchmarks/npu.py has counted."""
    rounds = max(len(seen) for seen in counts["steps"].values())
    lines = [NPU_TITLE, NPU_TEXT.format(when=counts["when"], rounds=rounds)]
    lines += [
        "| step | operators | launches | copies to the host | copies to the device |",
        "|---|---|---|---|---|",
    ]
    for name, seen in counts["steps"].items():
        ranges = [(min(column), max(column)) for column in zip(*seen, strict=True)]
        cells = [str(low) if low == high else f"{low} to {high}" for low, high in ranges]
        lines.append("| " + " | ".join((name, *cells)) + " |")
    return "\n".join(lines) + "\n"


def npu_section_of(page: str) -> str:
    """This section of a page, which is its last one, or nothing."""
    return NPU_TITLE + page.partition(NPU_TITLE)[2] if NPU_TITLE in page else ""


def with_npu_section(page: str, counts: dict) -> str:
    """The page with this section replaced, or added at the end."""
    return page.partition(NPU_TITLE)[0].rstrip("\n") + "\n\n" + npu_section(counts)


def plot(run: dict, path: Path, columns: int = 3) -> None:
    """Draws one bar per work: its ratio on a logarithmic axis, with a line at 1. The columns let it fit a screen."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [
        (name, entry["ratio"], entry.get("target", 0))
        for name, entry in run["results"].items()
        if "ratio" in entry and entry["group"] != "growth"
    ]
    height = -(-len(rows) // columns)
    figure, all_axes = pyplot.subplots(
        1, columns, figsize=(5.4 * columns, 1 + 0.18 * height), sharex=True, squeeze=False
    )
    for k, axes in enumerate(all_axes[0]):
        part = rows[k * height : (k + 1) * height]
        colors = ["tab:green" if ratio >= goal else "tab:orange" for _, ratio, goal in part]
        axes.barh(range(len(part)), [ratio for _, ratio, _ in part], color=colors)
        axes.set_yticks(range(len(part)), [name for name, _, _ in part], fontsize=8)
        # The first work is at the top, and bars are equally high in every column.
        axes.set_ylim(height - 0.4, -0.6)
        axes.axvline(1, color="black", linewidth=1)
        axes.set_xscale("log")
    all_axes[0][columns // 2].set_xlabel("PyTorch's time / msadapter's time")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


# Name of a bar in the README's picture -> which rows it summarises. Other rows are too special for the picture.
FAMILIES = {
    "matrix products, float32": lambda name, group: group == "products" and name.endswith("float32"),
    "element-wise, reductions, norms (1024x1024)": lambda name, group: group == "1024x1024 float32",
    "small operator calls (8x8), with autograd": lambda name, group: "8x8" in group and "no grad" not in name,
    "backward passes": lambda name, group: name.startswith(("backward of", "20 muls")),
    "attention, forward and backward": lambda name, group: name.startswith("attention"),
    "optimizer steps": lambda name, group: name.startswith(("AdamW", "clip_grad")),
    "training steps, float32 (GPT, Llama, Megatron)": lambda name, group: (
        " step" in name and "bfloat16" not in name and not name.startswith("peak") and "compiled" not in name
    ),
    "peak memory": lambda name, group: name.startswith("peak memory"),
    "start of python with torch": lambda name, group: name == "start of python with torch",
}


def family_means(results: dict) -> dict[str, tuple[float, int]]:
    """Family -> (geometric mean of its rows' ratios, number of rows). Families without rows are left out."""
    means = {}
    for family, belongs in FAMILIES.items():
        logs = [
            math.log(entry["ratio"])
            for name, entry in results.items()
            if "ratio" in entry and entry["group"] != "growth" and belongs(name, entry["group"])
        ]
        if logs:
            means[family] = math.exp(sum(logs) / len(logs)), len(logs)
    return means


def plot_summary(run: dict, path: Path) -> None:
    """Draws the README's picture: for each family of rows, a bar with the geometric mean of the ratios."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = list(family_means(run["results"]).items())[::-1]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.38 * len(rows)))
    bars = axes.barh([f"{name} ({count})" for name, (_, count) in rows], [mean for _, (mean, _) in rows])
    axes.bar_label(bars, [f"{mean:.2f}" for _, (mean, _) in rows], padding=3)
    axes.axvline(1, color="black", linewidth=1)
    axes.margins(x=0.12)
    axes.set_xlabel("speed relative to PyTorch (geometric mean; number of rows in brackets)")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def plot_growth(run: dict, path: Path) -> None:
    """Draws the step time of both sides over each size of the model, on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves: dict[str, list] = {}
    for name, entry in run["results"].items():
        if entry["group"] == "growth" and "ratio" in entry:
            size, value = name.removeprefix("GPT, ").split()
            curves.setdefault(size, []).append((int(value), entry["theirs"], entry["ours"]))
    figure, all_axes = pyplot.subplots(
        1, len(curves), figsize=(3.2 * len(curves), 3), sharey=True, squeeze=False
    )
    for axes, (size, points) in zip(all_axes[0], curves.items(), strict=True):
        values, theirs, ours = zip(*points, strict=True)
        axes.plot(values, [1e3 * t for t in theirs], "o-", label="PyTorch", color="tab:gray")
        axes.plot(values, [1e3 * t for t in ours], "o-", label="msadapter", color="tab:green")
        axes.set(xscale="log", yscale="log", xlabel=size.replace("_", " "))
        axes.set_xticks(values, [str(v) for v in values])
        axes.minorticks_off()
    shown = (10, 20, 50, 100, 200, 500)
    all_axes[0][0].set_yticks(shown, [str(v) for v in shown])
    all_axes[0][0].set_ylabel("step, ms")
    all_axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
