"""What the notebooks of the course share: the corpus, the work folder, stored answers of PyTorch, and the exercises.

A notebook is run in this folder. `FAST=1` in the environment makes every chapter short.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FAST = os.environ.get("FAST") == "1"


def _refuse_networks(event: str, arguments: tuple) -> None:
    """An audit hook that refuses connections to other machines, so that a test sees what a chapter needs."""
    if event != "socket.connect":
        return
    address = arguments[1]
    host = address[0] if isinstance(address, tuple) else "localhost"
    if host not in ("localhost", "127.0.0.1", "::1"):
        raise OSError(f"the chapter needs no network, and connects to {host}")


if os.environ.get("COURSE_OFFLINE") == "1":
    sys.addaudithook(_refuse_networks)
warnings.filterwarnings(
    "ignore", "IProgress not found"
)  # tqdm would like a widget that the chapters do not need
if str(ROOT) not in sys.path:  # megatron_ms and patches stand beside the course
    sys.path.insert(0, str(ROOT))


def corpus() -> str:
    """The text that all chapters use: four plays of Shakespeare, 576 kB, which come with the project."""
    return (ROOT / "megatron_ms/data/shakespeare.txt").read_text(encoding="utf-8")


def work(chapter: int) -> Path:
    """The folder build/course/CHAPTER, where a chapter writes its files. It is made if it is missing."""
    folder = ROOT / "build/course" / str(chapter)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def stored(name: str) -> Any:
    """An answer of real PyTorch, which `answers/make.py` recorded.

    Raises:
        KeyError: there is no answer of this name.
    """
    return json.loads((HERE / "answers/pytorch.json").read_text(encoding="utf-8"))[name]


def check(number: str, answer: Any) -> None:
    """Says whether the answer of an exercise is right.

    number: that of the exercise, as "1.2". answer: what you have found; `...` says that you have not answered yet.

    Raises:
        AssertionError: the answer is wrong. The message is a hint.
    """
    chapter = number.partition(".")[0]
    if answer is ... and os.environ.get("COURSE_SOLUTIONS") == "1":
        answer = importlib.import_module(f"solutions.chapter{chapter}").ANSWERS[number]
    if answer is ...:
        print(f"Exercise {number} is still open. 练习 {number} 尚未完成。")
        return
    getattr(importlib.import_module(f"checks.chapter{chapter}"), "exercise_" + number.replace(".", "_"))(
        answer
    )
    print(f"Exercise {number}: right. 练习 {number}：正确。")


def plot():
    """matplotlib.pyplot, set so that pictures go into the notebook and fit a narrow screen."""
    import matplotlib

    if "ipykernel" not in sys.modules:
        matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(
        {"figure.figsize": (6, 3), "figure.autolayout": True, "axes.grid": True, "grid.alpha": 0.3}
    )
    return pyplot
