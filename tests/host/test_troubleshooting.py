"""The messages that docs/troubleshooting.md explains are messages of this project, word for word."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
HEADINGS = re.findall(r"^### `(.+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def _text(node: ast.expr) -> str:
    """A text in the source, with "…" for what is computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return "…"


@cache
def messages() -> str:
    """All texts in the code that reports such errors."""
    found = []
    for folder in (
        "msadapter/_host",
        "msadapter/alias",
        "msadapter/distributed",
        "msadapter/tensor",
        "megatron_ms",
    ):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant | ast.JoinedStr):
                    found.append(_text(node))
    return "\n".join(found)


def test_there_are_headings() -> None:
    assert len(HEADINGS) >= 20 and len(set(HEADINGS)) == len(HEADINGS)


@pytest.mark.parametrize("heading", HEADINGS)
def test_a_heading_is_a_message(heading) -> None:
    assert heading in messages()
