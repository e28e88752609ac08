"""The toy data of all benchmarks, and the tiny model of tests/toolkit/inference."""

from __future__ import annotations

import pytest

pytest.importorskip("lm_eval", reason="needs the extra toolkit")

from tests.toolkit.evaluation import files  # noqa: E402
from tests.toolkit.inference.conftest import _torch, model_folder  # noqa: E402, F401


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A folder with a folder for each benchmark."""
    folder = tmp_path_factory.mktemp("benchmarks")
    for name, write in files.ALL.items():
        write(folder / name)
    return folder
