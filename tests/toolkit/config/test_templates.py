"""The templates, and the page of documentation, agree with the sections."""

from __future__ import annotations

import pytest

from megatron_ms import config
from megatron_ms.config import table
from megatron_ms.config.sections import TRAINING, section_class
from megatron_ms.training import settings

TEMPLATES = table.ROOT / "megatron_ms" / "config" / "templates"
LEVELS = ["basic", "high", "advanced"]


@pytest.mark.parametrize("name", LEVELS)
def test_templates_are_valid(name) -> None:
    found = settings.read(config.load(TEMPLATES / f"{name}.yaml"))
    assert found.model.num_layers == 24


@pytest.mark.parametrize("name", LEVELS)
def test_each_level_shows_sections_of_its_own(name) -> None:
    used = {
        section_class(key).level for key in config.load(TEMPLATES / f"{name}.yaml").values if key in TRAINING
    }
    assert used == set(LEVELS[: LEVELS.index(name) + 1])


def test_the_page_has_the_present_keys() -> None:
    text = table.PAGE.read_text(encoding="utf-8")
    assert text == table.page(text), "run: python -m megatron_ms.config.table"
