"""A tokenizer for all tests of this folder, and a run of the command in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic", reason="needs the extra toolkit")
pytest.importorskip("transformers", reason="needs the extra hf")

from megatron_ms.data.pipeline import Made, make_all  # noqa: E402
from megatron_ms.data.section import Data  # noqa: E402
from tests.toolkit.data import toys  # noqa: E402


@pytest.fixture(autouse=True)
def _torch(torch_by_name) -> None:
    """transformers was imported with this project as its torch, so that its modules look for torch when they are imported."""


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory) -> Path:
    """The folder of a Hugging Face tokenizer."""
    return toys.make_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.fixture
def make(tmp_path) -> Callable[..., list[Made]]:
    """Makes a data set of the tokenizer of bytes from keys of the section `data`."""

    def work(**keys: Any) -> list[Made]:
        return make_all(Data(**{"tokenizer": "bytes", "output": str(tmp_path / "out" / "set"), **keys}))

    return work
