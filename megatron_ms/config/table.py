"""The table of the keys for docs/toolkit.md, made from the sections themselves.

python -m megatron_ms.config.table        writes it into the page
"""

from __future__ import annotations

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ..convert.steps import ROOT, write_atomically
from .section import Section, flags_of, said_of
from .sections import SECTIONS, section_class

PAGE = ROOT / "docs" / "toolkit.md"
BEGIN, END = "<!-- keys: begin (python -m megatron_ms.config.table) -->\n", "<!-- keys: end -->\n"


def text() -> str:
    """The tables, one for each section."""
    return "\n".join(_section(name, section_class(name)) for name in SECTIONS)


def _section(name: str, kind: type[Section]) -> str:
    level = getattr(kind, "level", "")
    head = f"### `{name}`{f' ({level})' if level else ''}\n\n{(kind.__doc__ or '').splitlines()[0]}\n"
    if not kind.model_fields:
        return head
    flags = {key: flag for flag, key in flags_of(kind).items()}
    rows = [
        _row(key, field, flags.get(key, ""), said_of(kind, key, "megatron_only"))
        for key, field in kind.model_fields.items()
    ]
    return head + "\n| key | default | what it is | flag |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _row(key: str, field: FieldInfo, flag: str, megatron_only: bool) -> str:
    default = "" if field.default is None else str(field.default).replace("|", "\\|")
    default = "**required**" if field.default is PydanticUndefined else f"`{default}`" if default else ""
    shown = f"`--{flag.replace('_', '-')}`" if flag else ""
    told = (field.description or "").replace("|", "\\|") + (
        " (not with the backend hf)" if megatron_only else ""
    )
    return f"| `{key}` | {default} | {told} | {shown} |"


def page(old: str) -> str:
    """The page with the present tables between its marks."""
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n" + text() + "\n" + END + after


def main() -> None:
    """Writes the page."""
    write_atomically(PAGE, page(PAGE.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
