"""Reads the rows of a benchmark's files. A file that cannot be used is a UserError with its name."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import UserError

Rows = list[dict[str, Any]]


def json_lines(path: Path) -> Rows:
    """The rows of a JSON lines file, also of a compressed one. UserError names file and line."""
    try:
        if path.suffix == ".gz":
            text = gzip.decompress(path.read_bytes()).decode("utf-8-sig")
        else:
            text = path.read_text(encoding="utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    rows = []
    # Not splitlines: a text may contain U+2028 and other characters that it takes for ends of lines.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{path}, line {number}: is not JSON: {error}") from None
        if not isinstance(row, dict):
            raise UserError(f"{path}, line {number}: is not an object with keys")
        rows.append(row)
    return not_empty(rows, path)


def table(path: Path, names: Iterable[str] | None = None) -> Rows:
    """The rows of a CSV file. Without ``names`` its first line has them."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, None if names is None else list(names), strict=True)
            rows = []
            for row in reader:
                if None in row or None in row.values():
                    raise UserError(
                        f"{path}, line {reader.line_num}: has another number of columns than {reader.fieldnames}"
                    )
                rows.append(dict(row))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{path} cannot be read: {error}") from None
    return not_empty(rows, path)


def not_empty(rows: Rows, path: Path) -> Rows:
    """The rows of a file. UserError if there is none."""
    if not rows:
        raise UserError(f"{path} has no rows")
    return rows


def value_of(row: dict[str, Any], name: str, path: Path, number: int) -> Any:
    """The value of a key. UserError names the row and the keys that are there."""
    if name not in row:
        raise UserError(
            f"{path}, row {number}: there is no key {name!r}; the keys are {', '.join(map(repr, row))}"
        )
    return row[name]


def with_columns(rows: Rows, path: Path, *names: str) -> Rows:
    """The rows with only these columns. UserError if one is absent."""
    return [{name: value_of(row, name, path, number) for name in names} for number, row in enumerate(rows, 1)]
