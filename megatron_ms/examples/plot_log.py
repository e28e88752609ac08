"""Reads the losses from the log of Megatron's trainer, and draws them.

    python -m megatron_ms.examples.plot_log LOG --save FOLDER

writes FOLDER/losses.json (loss and gradient norm of each iteration, validation losses) and FOLDER/loss.png. A log may contain
several runs, one after the other. They form one curve: if an iteration occurs twice, the later run counts.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path

_ITERATION = re.compile(r"iteration\s+(\d+)/\s*\d+ \|.*?lm loss: (\S+) \|.*?grad norm: (\S+) \|")
_VALIDATION = re.compile(r"validation loss at iteration (\d+) on validation set \| lm loss value: (\S+) \|")


def losses(text: str) -> dict:
    """{"iterations": [{"iteration", "loss", "grad_norm"}], "validation": [{"iteration", "loss"}]} of a log."""
    steps = {int(n): (float(loss), float(norm)) for n, loss, norm in _ITERATION.findall(text)}
    checks = {int(n): float(loss) for n, loss in _VALIDATION.findall(text)}
    return {
        "iterations": [{"iteration": n, "loss": a, "grad_norm": b} for n, (a, b) in sorted(steps.items())],
        "validation": [{"iteration": n, "loss": loss} for n, loss in sorted(checks.items())],
    }


def draw(found: dict, path: Path, title: str) -> None:
    """Draws the result of `losses` as a PNG file, which appears completely or not at all."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    steps = found["iterations"]
    axes.plot([step["iteration"] for step in steps], [step["loss"] for step in steps], label="lm loss")
    if found["validation"]:
        checks = found["validation"]
        axes.plot([c["iteration"] for c in checks], [c["loss"] for c in checks], "o", label="validation")
    axes.set(xlabel="iteration", ylabel="loss", title=title)
    axes.legend()
    axes.grid(alpha=0.3)
    figure.tight_layout()
    beside = path.with_name(path.name + ".part")
    figure.savefig(beside, dpi=120, format="png")
    os.replace(beside, path)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log", type=Path, help="file with the output of the trainer")
    parser.add_argument("--save", type=Path, required=True, help="folder for losses.json and loss.png")
    parser.add_argument("--title", default="training", help="title of the picture")
    args = parser.parse_args(arguments)
    try:
        found = losses(args.log.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        print(f"plot_log: {args.log}: {error.strerror}", file=sys.stderr)
        return 1
    if not found["iterations"]:
        print(f"plot_log: {args.log} has no line with an iteration and its lm loss", file=sys.stderr)
        return 1
    args.save.mkdir(parents=True, exist_ok=True)
    (args.save / "losses.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    draw(found, args.save / "loss.png", args.title)
    first, last = found["iterations"][0], found["iterations"][-1]
    print(
        f"loss {first['loss']:.4f} at iteration {first['iteration']}, {last['loss']:.4f} at {last['iteration']}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
