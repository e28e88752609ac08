"""`python -m msadapter enable` and `disable`: what `import torch` gives in the programs of a virtual environment.

`enable` writes one file, msadapter_as_torch.pth, into the environment's site-packages. It adds the folder alias/shim to the end of
Python's search path, where a package `torch` stands for msadapter, and its metadata for pip. Nothing runs at Python's start. This
module needs the standard library only.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
import sysconfig
from pathlib import Path

SHIM = Path(__file__).resolve().parents[1] / "alias" / "shim"
NAME = "msadapter_as_torch.pth"
_MARK = "# Written by python -m msadapter enable; python -m msadapter disable removes it."


class Refused(Exception):
    """The environment must stay as it is. The message says why, and what to do."""


def path() -> Path:
    """The file that `enable` writes."""
    return Path(sysconfig.get_path("purelib")) / NAME


def enable() -> str:
    """Make `import torch` give msadapter in every program of this environment. Return what was done.

    Raises:
        Refused: this is not a virtual environment, another torch is installed, or the file is not ours.
        OSError: the file cannot be written.
    """
    if sys.prefix == sys.base_prefix:
        raise Refused(
            f"{sys.executable} is not a virtual environment, and all its programs would be changed: make one with "
            "python -m venv FOLDER and install msadapter there"
        )
    for distribution in importlib.metadata.distributions(name="torch"):
        place = Path(str(distribution.locate_file("")))
        if place.resolve() != SHIM:
            raise Refused(
                f"torch {distribution.version} is installed in {place}: remove it with pip uninstall torch"
            )
    content = _content()
    if content == _text():
        return f"{path()} is already in place"
    if content is not None and not content.startswith(_MARK):
        raise Refused(f"{path()} exists, and msadapter did not write it: move it away")
    part = path().with_suffix(".part")
    part.write_text(_text(), encoding="utf-8")
    os.replace(part, path())
    return f"{path()} is written: import torch gives msadapter in {sys.prefix}"


def disable() -> str:
    """Undo `enable`. Return what was done.

    Raises:
        Refused: the file is not ours.
        OSError: the file cannot be removed.
    """
    content = _content()
    if content is None:
        return f"{path()} does not exist: nothing to do"
    if not content.startswith(_MARK):
        raise Refused(f"{path()} exists, and msadapter did not write it: it is left as it is")
    path().unlink()
    return f"{path()} is removed"


def main(word: str, arguments: list[str]) -> int:
    """Run one of the two commands. Return 0, or 2 if it is refused."""
    if arguments:
        print(f"python -m msadapter {word} takes no arguments", file=sys.stderr)
        return 2
    try:
        print({"enable": enable, "disable": disable}[word]())
    except Refused as error:
        print(f"python -m msadapter {word}: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"python -m msadapter {word}: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    return 0


def _text() -> str:
    return f"{_MARK}\n{SHIM}\n"


def _content() -> str | None:
    try:
        return path().read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
