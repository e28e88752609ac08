"""Makes the notebooks from their sources: python course/make.py [--check] [CHAPTER ...]

Each chapter is written as a Python file in jupytext's percent format. This command runs it and writes the notebook with its
outputs beside it. Chapter 2 also leaves base.safetensors, from which chapters 3 to 5 begin. With --check the command runs the
chapters quickly, with the solutions of the exercises and without a network, and writes nothing. An error in a cell ends it with
exit code 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SECONDS = 1800  # the most that one cell may take


class Kernel(AsyncKernelManager):
    """Kernels that are reached through sockets of the file system, so that no port is opened."""

    def __init__(self, **settings) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="course-")
        super().__init__(**settings | {"transport": "ipc", "ip": f"{self._folder.name}/kernel"})


def sources(chapters: list[str]) -> list[Path]:
    """The source of each chapter, in order. `chapters` are numbers; none means all."""
    found = sorted(HERE.glob("[0-9]_*.py"))
    return [path for path in found if not chapters or path.name[0] in chapters]


def notebook_of(source: Path) -> nbformat.NotebookNode:
    """The notebook of a source, without outputs. Its cells have numbers for names, so that they stay the same."""
    notebook = jupytext.read(source)
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
    for number, cell in enumerate(notebook.cells):
        cell["id"], cell["metadata"] = f"cell{number}", {}
    return notebook


def run(source: Path, **environment: str) -> nbformat.NotebookNode:
    """The notebook of a source with the outputs of its cells.

    Raises:
        CellExecutionError: a cell raises an error.
    """
    notebook = notebook_of(source)
    before = dict(os.environ)
    os.environ.update(environment)  # the kernel inherits it
    if (
        environment.get("COURSE_OFFLINE") == "1"
    ):  # Python imports sitecustomize.py from there, in each child too
        paths = (str(HERE / "offline"), before.get("PYTHONPATH"))
        os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    try:
        place = {"metadata": {"path": str(HERE)}}
        NotebookClient(notebook, timeout=SECONDS, resources=place, kernel_manager_class=Kernel).execute()
    finally:
        os.environ.clear()
        os.environ.update(before)
    for cell in notebook.cells:
        cell["metadata"] = {}  # without the times of execution
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
    return notebook


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python course/make.py", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("chapters", nargs="*", metavar="CHAPTER", help="a number; all chapters by default")
    parser.add_argument("--check", action="store_true", help="run the chapters quickly and write nothing")
    args = parser.parse_args(arguments)
    chosen = sources(args.chapters)
    if not chosen or len(chosen) < len(set(args.chapters)):
        parser.error(f"there are the chapters {', '.join(path.name[0] for path in sources([]))}")
    quick = {"FAST": "1", "COURSE_SOLUTIONS": "1", "COURSE_OFFLINE": "1"} if args.check else {"FAST": "0"}
    with tempfile.TemporaryDirectory(prefix="course-") as folder:
        return make(chosen, quick | ({"COURSE_WORK": folder} if args.check else {}), write=not args.check)


def make(chosen: list[Path], environment: dict[str, str], write: bool) -> int:
    """Runs chapters one after the other, and writes their notebooks if asked to. Returns 1 if one fails, else 0."""
    for source in chosen:
        began = time.perf_counter()
        print(f"{source.stem} ... ", end="", flush=True)
        try:
            notebook = run(source, **environment)
        except CellExecutionError as error:
            print(f"failed\n{error}", file=sys.stderr)
            return 1
        if write:
            nbformat.write(notebook, source.with_suffix(".ipynb"))
            if source.name.startswith("2"):  # what it has pretrained comes with the course
                shutil.copyfile(ROOT / "build/course/2/base.safetensors", HERE / "base.safetensors")
        print(f"{time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
