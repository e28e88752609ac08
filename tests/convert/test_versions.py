"""The page of versions has the present pins."""

from __future__ import annotations

from megatron_ms.convert import versions


def test_the_page_is_current() -> None:
    text = versions.PAGE.read_text(encoding="utf-8")
    assert text == versions.page(text), "run: python -m megatron_ms.convert.versions"


def test_every_release_has_a_row() -> None:
    text = versions.text()
    for part in (
        "| MindSpore | 2.10.0 |",
        "| 2.3.0 |  | 2.3.0 |",
        "`auto_convert.sh mm`",
        "core_v0.19.0",
        "2.3.0_core_r0.12.1",
    ):
        assert part in text
