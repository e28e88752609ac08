"""The messages that docs/troubleshooting.md explains are messages of this project, word for word, and name their entries."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

from megatron_ms import errors
from msadapter._host import cache as built
from msadapter._host import troubleshooting

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
TEXT = PAGE.read_text(encoding="utf-8")
HEADINGS = re.findall(r"^### `(.+)`$", TEXT, re.MULTILINE)
ENTRIES = re.findall(r'^<a id="(.+)"></a>\n\n### `(.+)`$', TEXT, re.MULTILINE)
TABLES = {"msadapter": troubleshooting.ENTRIES, "megatron_ms": errors.ENTRIES}
# One reason is one text, and the error that has it adds the entry for all reasons.
ADDED_ELSEWHERE = {"another-secret": "_refused"}


def _text(node: ast.AST) -> str:
    """A text in the source, with "…" for what is computed."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) for part in node.values)
    return "…"


@cache
def functions() -> list[tuple[str, str, str, set[str]]]:
    """(package, name, all texts, entries that it names) of every function whose file names an entry."""
    found = []
    for package in TABLES:
        for file in sorted((ROOT / package).rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            if "see(" not in source:  # seen at once; reading all files takes ten seconds
                continue
            tree = ast.parse(source)
            for place in ast.walk(tree):
                if isinstance(place, ast.FunctionDef):
                    found.append((package, place.name, *_texts_and_entries(place)))
            found.append((package, "", *_texts_and_entries(tree)))  # constants of the module too
    return found


def _texts_and_entries(place: ast.AST) -> tuple[str, set[str]]:
    texts, entries = [], set()
    for node in ast.walk(place):
        if isinstance(node, ast.Constant | ast.JoinedStr):
            texts.append(_text(node))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "see":
            entries.add(_text(node.args[0]))
    return "\n".join(texts), entries


def test_every_heading_is_an_entry_of_a_table() -> None:
    assert len(HEADINGS) >= 20 and len(set(HEADINGS)) == len(HEADINGS)
    assert [heading for _, heading in ENTRIES] == HEADINGS
    names = [name for name, _ in ENTRIES]
    tables = [*TABLES["msadapter"], *TABLES["megatron_ms"]]
    assert sorted(names) == sorted(tables) and len(set(names)) == len(names)
    assert troubleshooting.PAGE == errors.PAGE == str(PAGE.relative_to(ROOT))


@pytest.mark.parametrize(("entry", "heading"), ENTRIES, ids=[name for name, _ in ENTRIES])
def test_the_message_names_its_entry(entry, heading) -> None:
    """The function that has the heading's text ends the message with the entry's address."""
    (package,) = (package for package, table in TABLES.items() if entry in table)
    having = [one for one in functions() if one[0] == package and heading in one[2]]
    assert having, f"no message of {package} has the words {heading!r}"
    if entry in ADDED_ELSEWHERE:
        having = [one for one in functions() if one[:2] == (package, ADDED_ELSEWHERE[entry])]
    assert any(name and entry in entries for _, name, _, entries in having), having[0][1]


def test_no_place_names_an_entry_that_is_not_there() -> None:
    named = {(package, entry) for package, _, _, entries in functions() for entry in entries}
    assert named == {(package, entry) for package, table in TABLES.items() for entry in table}
    for see in (troubleshooting.see, errors.see):
        with pytest.raises(KeyError, match="no-such"):
            see("no-such")


def test_a_message_as_it_is_shown(tmp_path) -> None:
    """What a user reads ends with the address; a message that PyTorch has keeps its words, and the traceback shows a note."""
    import msadapter as torch

    tmp_path.chmod(0o777)
    with pytest.raises(built.BuildError, match=r"of your own \(docs/troubleshooting.md#unsafe-cache\)$"):
        built.check_root(tmp_path)
    with pytest.raises(RuntimeError) as caught:
        torch.empty(9).set_(torch.zeros(2).untyped_storage(), 0, (9,), (1,))
    assert str(caught.value).endswith("are out of bounds for storage of size 8")
    if sys.version_info >= (3, 11):  # earlier exceptions have no notes
        assert caught.value.__notes__ == ["(docs/troubleshooting.md#out-of-bounds)"]
