"""The folder in which a conversion is made, and what the result says about itself."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..config import Document
from ..convert import steps
from ..convert.steps import file_sha256, write_atomically
from ..recovery import apart
from ..training.folder import LATEST
from ..training.lines import last_errors
from . import joining_program

MANIFEST = "manifest.json"
# What belongs to a model's folder beside the weights.
_BESIDE = (
    "config.json", "generation_config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json",
    "merges.txt", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
)  # fmt: skip


class ProofError(Exception):
    """A conversion was made, but its result is not equal to its source."""


@contextmanager
def folder_for(document: Document, output: Path, needed: int) -> Iterator[Path]:
    """A folder beside the output, which is removed at the end. What is named `result` in it then becomes the output.

    Raises:
        UserError: the output exists, its parent does not, or the disk has less than `needed` bytes free.
    """
    if os.path.lexists(output):
        raise document.error("convert.output", f"{output} exists and is not overwritten: name another folder")
    if not output.parent.is_dir():
        raise document.error("convert.output", f"there is no folder {output.parent}")
    free = shutil.disk_usage(output.parent).free
    if free < needed:
        message = (
            f"the conversion needs {needed / 1e9:.3g} GB, but {output.parent} has {free / 1e9:.3g} GB free"
        )
        raise document.error("convert.output", message)
    work = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".part", dir=output.parent))
    try:
        yield work
        work.chmod(0o755)
        (work / "result").rename(output)  # fails if something of this name exists by now
    finally:
        shutil.rmtree(work, ignore_errors=True)


def run_program(work: Path, words: Sequence[object], what: str, variables: Mapping[str, str]) -> str:
    """Runs a program of upstream, or one in its environment, and returns what it has printed.

    variables: what its environment has beside ours. What it printed is also in log.txt of the folder of work.

    Raises:
        ProofError: it failed. The message begins with `what` and has its last lines.
    """
    try:
        return steps.run([str(word) for word in words], work / "log.txt", None, {**os.environ, **variables})
    except steps.ChildError as error:
        last = "\n".join("    " + line for line in last_errors(error.output.splitlines()))
        raise ProofError(f"{what} ended with exit code {error.code}\n{last}") from None


def joined(work: Path, folder: Path, variables: Mapping[str, str]) -> Path | None:
    """A copy of an iteration whose tensors are in files of safetensors, as upstream writes them; None if they are not apart.

    variables: the environment of upstream's trees.
    """
    if not any(apart.beside(file).is_file() for file in folder.rglob("*.pt")):
        return None
    made = work / "joined"
    shutil.copytree(folder, made / folder.name, ignore=shutil.ignore_patterns(f"*{apart.ENDING}"))
    (made / LATEST).write_text(folder.name.removeprefix("iter_"), encoding="utf-8")
    words = [sys.executable, joining_program.__file__, folder, made / folder.name]
    run_program(work, words, "reading the tensors of safetensors", variables)
    return made


def copy_beside(like: Path, folder: Path) -> None:
    """Copies configuration and tokenizer of a model, without what the folder has already."""
    for name in _BESIDE:
        if (like / name).is_file() and not (folder / name).exists():
            shutil.copyfile(like / name, folder / name)


def write_manifest(folder: Path, facts: Mapping[str, Any]) -> None:
    """Writes manifest.json: facts about the conversion, and size and hash of every file."""
    named = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    listed = {
        str(path.relative_to(folder)): {"bytes": path.stat().st_size, "sha256": file_sha256(path)}
        for path in named
    }
    write_atomically(folder / MANIFEST, json.dumps({**facts, "files": listed}, indent=1) + "\n")


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
