"""Packages that pip cannot install as an extra, because they ask for PyTorch."""

from __future__ import annotations

import importlib.util

import pytest

from megatron_ms.training.hf import REQUIREMENTS

_NAMES = [line.partition("==")[0] for line in REQUIREMENTS.read_text().splitlines() if "==" in line]
needs_packages = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in _NAMES),
    reason=f"needs {', '.join(_NAMES)}: pip install --no-deps -r megatron_ms/training/requirements-hf.txt",
)
