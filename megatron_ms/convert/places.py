"""Checks, before anything is written, that no folder of the user would be overwritten."""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path

from patches import PatchError
from patches.tree import contains, resolved

from ..errors import see
from .steps import ROOT, ConvertError

MARK = ".lock"
_MARK_TEXT = "This folder is an output of auto_convert.sh, which writes and replaces files in it.\n"
# The names that a run writes into its output folder. In a folder without our mark, such a name belongs to the user.
_OURS = re.compile(
    rf"megatron|env\.sh|logs|downloads|sources|train|{re.escape(MARK)}|"
    rf"(packages|train)(-(llm|rl)(-\d[\w.]*)?)?(\.json)?|(core|llm|rl)(-\d[\w.]*)?"
)


def _ours_in(output: Path) -> list[str]:
    return sorted(name for name in os.listdir(output) if _OURS.fullmatch(name)) if output.is_dir() else []


def clean_path(path: Path, what: str) -> Path:
    """The absolute path with all links resolved.

    Raises:
        ConvertError: the path has a character that a shell file or PATH cannot contain, or its links form a cycle.
    """
    try:
        place = resolved(path)
    except PatchError as error:
        raise ConvertError(f"{what}: {error}") from None
    for name in (str(path), str(place)):
        check_characters(name, what)
    return place


def check_characters(name: str, what: str) -> None:
    """Raises ConvertError if the name contains a control character such as a line break, or a colon, which separates PATH."""
    bad = next((letter for letter in name if unicodedata.category(letter) == "Cc" or letter == ":"), None)
    if bad is not None:
        raise ConvertError(f"{what}: the path {name!r} contains {bad!r}; choose another path")


def check_output(output: Path, others: Mapping[str, Path]) -> None:
    """Raises ConvertError if the output and another folder contain one another, or if the output is part of this project.

    So must no folder in it that is a link to elsewhere, and through which a run would write.

    others: the option with which the user named a folder -> its path.
    """
    _check_place(output, f"the output folder {output}", others)
    for name in _ours_in(output):
        if (output / name).is_symlink():
            _check_place(output / name, f"{output / name}, a link to {resolved(output / name)},", others)


def _check_place(folder: Path, what: str, others: Mapping[str, Path]) -> None:
    """Raises ConvertError if a folder that will be written contains, or is in, another one or this project."""
    for option, place in others.items():
        if contains(folder, place) or contains(place, folder):
            raise ConvertError(
                f"{option} {place} and {what} contain one another: choose an output elsewhere with --output"
            )
    if contains(folder, ROOT):
        raise ConvertError(f"{what} contains this project: choose another one with --output")
    for name in _project_folders():
        if contains(ROOT / name, folder):
            raise ConvertError(
                f"{what} is inside {ROOT / name}, a part of this project: choose another one with --output"
            )


def check_trees(trees: Iterable[Path], others: Mapping[str, Path]) -> None:
    """Raises ConvertError if a tree that will be written and one of the other folders contain one another."""
    for tree in trees:
        for what, place in others.items():
            if contains(tree, place) or contains(place, tree):
                raise ConvertError(f"{what} {place} and {tree}, which will be written, contain one another")


def _project_folders() -> list[str]:
    """The folders of the clone that belong to the project itself, not to its output."""
    plain = {".git", ".venv", "benchmarks", "docs", "megatron_ms", "tests"}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    environments = {path.name for path in ROOT.glob(".venv-*")}
    return sorted(plain | packages | environments)


def claim(output: Path) -> None:
    """Marks the output folder as ours. An unmarked folder must not contain any name that a run writes.

    Raises:
        ConvertError: it contains such a name, which the message lists. Nothing was written.
    """
    mark = output / MARK
    try:
        status = mark.lstat()
        ours = stat.S_ISREG(status.st_mode) and (
            not status.st_size
            or mark.read_bytes() == _MARK_TEXT.encode()  # earlier versions wrote an empty file
        )
    except FileNotFoundError:
        ours = False
    if ours:
        return
    taken = _ours_in(output)
    if taken:
        raise ConvertError(
            f"{output} contains {', '.join(taken)}, which auto_convert.sh did not write and would have to replace: "
            "choose an empty or a new folder with --output. Nothing was written " + see("foreign-output")
        )
    with open(mark, "x", encoding="utf-8") as file:
        file.write(_MARK_TEXT)
