"""The page of the reference has the present docstrings, and every public name of ours."""

from __future__ import annotations

import kernels_ascend
from megatron_ms.commands import COMMANDS
from tests.host import make_reference


def test_the_page_is_current() -> None:
    text = make_reference.PAGE.read_text(encoding="utf-8")
    assert text == make_reference.page(), "run: python -m tests.host.make_reference"


def test_nothing_is_missing() -> None:
    text = make_reference.page()
    for name in (
        "msadapter.install",
        "msadapter.ops.op",
        *(f"torch_npu.{one}" for one in kernels_ascend.__all__),
    ):
        assert f"\n### `{name}`\n" in text
    for command in COMMANDS:
        assert f"\n### `{command}`\n" in text


def test_sections_become_lists() -> None:
    """Entries of a section are items of a list, with the lines that go on with them; signs of HTML and of emphasis are text."""
    text = (
        "Sum of a * b.\n\nArgs:\n    a: (n, k), as ``x<y``\n        and more\n    plain\n\nRaises ValueError."
    )
    assert make_reference.as_markdown(text).splitlines() == [
        "Sum of a \\* b.",
        "",
        "**Args**",
        "",
        "- `a`: (n, k), as `x<y`",
        "  and more",
        "- plain",
        "",
        "Raises ValueError.",
    ]
