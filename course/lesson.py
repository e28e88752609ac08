"""What the notebooks of the course share: the corpus, the work folder, stored answers of PyTorch, and the exercises.

A notebook is run in this folder. `FAST=1` in the environment makes every chapter short.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
FAST = os.environ.get("FAST") == "1"
WORK = Path(os.environ.get("COURSE_WORK", ROOT / "build/course"))  # where chapters write their files


warnings.filterwarnings(
    "ignore", "IProgress not found"
)  # tqdm would like a widget that the chapters do not need
if str(ROOT) not in sys.path:  # megatron_ms and patches stand beside the course
    sys.path.insert(0, str(ROOT))


def corpus() -> str:
    """The text that all chapters use: four plays of Shakespeare, 576 kB, which come with the project."""
    return (ROOT / "megatron_ms/data/shakespeare.txt").read_text(encoding="utf-8")


def base() -> dict:
    """The weights of the pretrained model under transformers' names: those of chapter 2, if you have run it in full, else ours."""
    from safetensors.torch import load_file

    own = WORK / "2/base.safetensors"
    return load_file(own if own.exists() else HERE / "base.safetensors")


def work(chapter: int) -> Path:
    """The folder build/course/CHAPTER, where a chapter writes its files. It is made if it is missing.

    The variable COURSE_WORK names another folder than build/course, so that several runs do not disturb one another.
    """
    folder = WORK / str(chapter)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def megatron() -> Path:
    """The folder of Megatron Core, which auto_convert.sh converted. Raises FileNotFoundError if it did not run yet."""
    folder = Path(os.environ.get("MSADAPTER_BUILD", ROOT / "build")) / "megatron"
    if not (folder / "megatron/core").is_dir():
        raise FileNotFoundError(f"{folder}: run bash auto_convert.sh first, which converts Megatron Core")
    return folder


def program(
    *words: object,
    folder: Path,
    expect: int = 0,
    paths: tuple = (),
    typed: str | None = None,
    **variables: str,
) -> str:
    """Runs Python with these arguments in a folder and returns what it printed.

    paths come first on its PYTHONPATH, variables are added to its environment, and typed is what it reads from its input.

    Raises:
        RuntimeError: its exit code is another one than `expect`. The message has the end of what it printed.
    """
    known = os.environ.get("PYTHONPATH")
    path = os.pathsep.join(map(str, [*([known] if known else []), *paths, ROOT]))
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path} | variables,
        input=typed,
        capture_output=True,
        text=True,
    )
    if done.returncode != expect:
        raise RuntimeError(f"exit code {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout + (done.stderr if expect else "")


def toolkit(folder: Path, *words: object, expect: int = 0, typed: str | None = None) -> str:
    """Runs `python -m megatron_ms ...` in a folder and returns what it printed."""
    return program("-m", "megatron_ms", *words, folder=folder, expect=expect, typed=typed)


def torchrun(processes: int, *words: object, folder: Path, expect: int = 0, **variables: str) -> str:
    """Runs a program on several processes, with Megatron Core, and returns what it printed.

    Megatron makes tensors on `cuda`. Without an NPU that name means the host, unless MSADAPTER_DEVICE says otherwise.
    """
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", processes)
    device = os.environ.get("MSADAPTER_DEVICE", "cuda")
    settings = {"MSADAPTER_DEVICE": device, "CUDA_DEVICE_MAX_CONNECTIONS": "1"} | variables
    paths = (ROOT / "msadapter/alias/shim", megatron())
    return program(*launcher, *words, folder=folder, expect=expect, paths=paths, **settings)


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
