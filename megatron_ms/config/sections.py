"""The table of the sections that a configuration may have.

A command that needs keys of its own declares a `Section` in its package and gets one line here.
"""

from __future__ import annotations

import importlib

from .section import Section

SECTIONS: dict[str, str] = {
    "data": "megatron_ms.data.section:Data",
}


def section_class(name: str) -> type[Section]:
    """The class of a section."""
    module, _, attribute = SECTIONS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
