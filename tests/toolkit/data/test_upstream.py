"""The files for instruction tuning and preference pairs are those of MindSpeed-LLM's preprocess_data.py, byte for byte."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from megatron_ms.data.encode import ENCODERS
from megatron_ms.data.pipeline import make
from megatron_ms.data.reading import groups
from megatron_ms.data.section import Data
from tests.toolkit.data.upstream_cases import GOLDEN, Case, cases, hashes, prepare, run_upstream

_RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    prepare(folder)
    return folder


def _ours(case: Case, rows: Path, folder: Path) -> dict[str, str]:
    data = Data(
        sources=str(rows / f"{case.rows}.jsonl"),
        tokenizer=str(rows / "tokenizer"),
        output=str(folder / "out"),
        **case.keys,
    )
    encoder = ENCODERS[data.task](data)
    for group in groups(data):
        make(group, encoder)
    return hashes(folder)


def test_the_golden_has_every_case() -> None:
    assert set(_RECORDED) == {case.name for case in cases()}
    assert len({case.keys["template"] for case in cases() if case.name.startswith("alpaca-")}) == 31


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_same_files_as_upstream(case: Case, rows: Path, tmp_path: Path) -> None:
    assert _ours(case, rows, tmp_path) == _RECORDED[case.name]


@pytest.mark.slow
def test_upstream_still_makes_what_is_recorded(tmp_path: Path, megatron_checkout: Path) -> None:
    names = ("MSADAPTER_MINDSPEED_LLM", "MSADAPTER_MINDSPEED")
    for name in names:
        if not os.environ.get(name):
            pytest.skip(f"needs a checkout: set {name} to its path")
    assert (
        run_upstream(tmp_path, [*(Path(os.environ[name]) for name in names), megatron_checkout]) == _RECORDED
    )
