"""The flags of upstream's programs: read from their own parsers, stored by the trees' hash, and checked against values."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..config.document import unknown
from ..convert.steps import digest, write_atomically
from ..errors import UserError
from . import read_flags
from .trees import Trees

_PATIENCE = 600.0  # seconds; upstream imports all its packages before it parses


class ValueProblem(Exception):
    """A value does not fit its flag. The message has no place; the caller knows the key."""


@dataclass(frozen=True)
class Flag:
    """A flag: its name as on the command line, and what it takes.

    words: how many words follow: an int, "?", "*", "+", or None for one. choices: the words that are allowed, or None.
    negative: the name that says no, for a flag that has one.
    """

    name: str
    words: int | str | None
    type: str | None
    choices: tuple[Any, ...] | None
    negative: str = ""
    help: str = ""

    def line(self, value: Any) -> list[str]:
        """The words of the command line that give the value. None means that the flag is left out.

        Raises:
            ValueProblem: the flag takes another type or number of values, or has other choices.
        """
        if value is None:
            return []
        if self.words == 0:
            if not isinstance(value, bool):
                raise ValueProblem(f"{self.name} is a switch: write true or false, not {value!r}")
            return [self.name] if value else ([self.negative] if self.negative else [])
        several = isinstance(value, list | tuple)
        if several and self.words in (None, "?"):
            raise ValueProblem(f"{self.name} takes one value, not a list")
        values = list(value) if several else [value]
        if isinstance(self.words, int) and len(values) != self.words:
            raise ValueProblem(f"{self.name} takes {self.words} values, not {len(values)}")
        if self.words == "+" and not values:
            raise ValueProblem(f"{self.name} takes at least one value")
        return [self.name, *(self._word(one) for one in values)]

    def _word(self, value: Any) -> str:
        if self.choices is not None and value not in self.choices and str(value) not in self.choices:
            known = ", ".join(map(str, self.choices))
            raise ValueProblem(f"{self.name} is one of {known}; not {value!r}")
        right: dict[str, type | tuple[type, ...]] = {"int": int, "float": (int, float)}
        if self.type in right and not isinstance(value, str):
            if isinstance(value, bool) or not isinstance(value, right[self.type]):
                raise ValueProblem(f"{self.name} takes {_ARTICLE[self.type]}, not {value!r}")
        elif self.type in right:
            try:
                {"int": int, "float": float}[self.type](value)
            except ValueError:
                raise ValueProblem(f"{self.name} takes {_ARTICLE[self.type]}, not {value!r}") from None
        if isinstance(value, dict):
            raise ValueProblem(f"{self.name} takes no section of keys")
        return repr(value) if isinstance(value, float) else str(value)


_ARTICLE = {"int": "a whole number", "float": "a number"}


class Flags:
    """The flags of a program, by their names with underscores and without dashes at their front."""

    def __init__(self, described: list[dict[str, Any]], program: str) -> None:
        self.program = program
        self.table: dict[str, Flag] = {}
        for one in described:
            names = one["names"]
            negative = next((name for name in names if name.startswith("--no-")), "") if one["both"] else ""
            for name in names:
                words = None if one["nargs"] is None else one["nargs"]
                choices = None if one["choices"] is None else tuple(one["choices"])
                if name != negative:
                    key = name.lstrip("-").replace("-", "_")
                    self.table[key] = Flag(name, words, one["type"], choices, negative, one["help"])

    def __contains__(self, name: str) -> bool:
        return name in self.table

    def __getitem__(self, name: str) -> Flag:
        """The flag of this name.

        Raises:
            ValueProblem: there is no such flag. The message names the nearest.
        """
        if name not in self.table:
            raise ValueProblem(unknown(name, self.table, f"key, and {self.program} has no such flag"))
        return self.table[name]


def read(trees: Trees, program: str) -> Flags:
    """The flags of a program. They are read once for the same content of the trees.

    Raises:
        UserError: the program cannot be started. The message has its last lines.
    """
    script = trees.program(program)
    key = digest(Path(read_flags.__file__), trees.digest())
    place = cache() / f"flags-{Path(program).stem}-{key[:32]}.json"
    described = _stored(place)
    if described is None:
        described = _ask(trees, script)
        write_atomically(place, json.dumps(described) + "\n")
    return Flags(described, f"{trees.upstream}'s {program}")


def cache() -> Path:
    """The folder of this project's caches.

    Raises:
        UserError: neither the folder for caches nor that of the user is known.
    """
    named = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if named.startswith("~"):
        raise UserError(
            "there is no home folder of this user: set HOME, or XDG_CACHE_HOME to a folder for caches"
        )
    return Path(named) / "msadapter" / "megatron_ms"


def _stored(place: Path) -> list[dict[str, Any]] | None:
    """The content of a file of the cache; None if it is absent or damaged, so that it is written again."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        Flags(found, "")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return found if found else None


def _ask(trees: Trees, script: Path) -> list[dict[str, Any]]:
    alone: Mapping[str, str] = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    words = [sys.executable, read_flags.__file__, str(script)]
    run = subprocess.run(
        words,
        env={**os.environ, **trees.environment("cuda", 1), **alone},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=_PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    _, mark, answer = run.stdout.rpartition(read_flags.MARK)
    if run.returncode != 0 or not mark:
        last = "\n".join("    " + line for line in run.stderr.strip().splitlines()[-6:])
        raise UserError(f"{script} cannot be started, so its flags are unknown:\n{last}")
    return json.loads(answer)
