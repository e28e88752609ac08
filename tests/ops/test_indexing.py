"""Every form of index, and index operators as recorded from real PyTorch (tests/golden/structure_cases.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location(
    "structure_answers", Path(__file__).with_name("structure_answers.py")
)
structure = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(structure)


@pytest.mark.parametrize("case", structure.ANSWERS["indexing"])
def test_recorded_answer(case):
    structure.check(case, structure.ANSWERS["indexing"][case])
