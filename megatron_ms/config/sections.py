"""The table of the sections that a configuration may have.

A command that needs keys of its own declares a `Section` in its package and gets one line here.
"""

from __future__ import annotations

import importlib

from .section import Section

# The sections that describe a training. Their order is that of the documentation.
TRAINING = {
    name: f"megatron_ms.config.training:{name.capitalize()}"
    for name in (
        "run",
        "dataset",
        "model",
        "parallel",
        "train",
        "tune",
        "grpo",
        "save",
        "resume",
        "monitor",
        "health",
        "profile",
        "recompute",
        "overlap",
        "recovery",
        "upstream",
    )
}
SECTIONS: dict[str, str] = {
    "data": "megatron_ms.data.section:Data",
    **TRAINING,
    "plan": "megatron_ms.plan.estimate:Devices",
    "about": "megatron_ms.config.training:About",
    "convert": "megatron_ms.conversion.section:Convert",
    "generate": "megatron_ms.inference.section:Generate",
    "evaluate": "megatron_ms.evaluation.section:Evaluate",
}


def section_class(name: str) -> type[Section]:
    """The class of a section."""
    module, _, attribute = SECTIONS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
