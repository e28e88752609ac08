"""What tests of every package share: where outside references are, and skipping with a reason when they are absent.

MSADAPTER_REFERENCE     folder with init_gpt, losses.json ... (losses of real PyTorch on Megatron-LM)
MSADAPTER_CONFORMANCE   folder with the golden answers of PyTorch's OpInfo samples
MSADAPTER_MEGATRON      a Megatron-LM checkout, core_v0.12.1
MSADAPTER_MEGATRON_NEXT a Megatron-LM checkout, core_v0.16.1
MSADAPTER_MEGATRON_NEWEST a Megatron-LM checkout, core_v0.19.0, which needs Python 3.12
MSADAPTER_PYTHON_3_12   a python 3.12 of an environment of this project, such as .venv-3.12/bin/python
MSADAPTER_EXAMPLES      how many times as many examples as usual hypothesis draws in tests/kernels
MSADAPTER_TORCH_PYTHON  a python that has real PyTorch (2.13 CPU), numpy and sentencepiece
"""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from tests import batches
from tests.sampling import sampled

ROOT = Path(__file__).resolve().parents[1]


def pytest_addoption(parser):
    parser.addoption(
        "--every",
        type=int,
        default=1,
        metavar="N",
        help="run every N-th case of each test, and all that name an operator for the first time",
    )
    parser.addoption(
        "--case",
        default="",
        metavar="TEXT",
        help="of tests with many cases (tests/batches.py), run the cases whose name has this text",
    )


def pytest_configure(config):
    every = config.getoption("--every")
    if every < 1:
        raise pytest.UsageError(f"--every must be at least 1, not {every}")
    batches.choose(every, config.getoption("--case"))


def pytest_collection_modifyitems(config, items):
    every = config.getoption("--every")
    kept = sampled([item.nodeid for item in items], every)
    left_out = [item for item in items if item.nodeid not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid in kept]


def pytest_collection_finish(session):
    """Leave what is there before the first test, which is for the rest of the process, out of every garbage collection.

    The modules, golden answers and tens of thousands of tests are millions of objects. Tests that collect garbage would look at
    all of them each time.
    """
    gc.freeze()


def _path_from(variable: str, what: str) -> Path:
    value = os.environ.get(variable)
    if not value:
        pytest.skip(f"needs {what}: set {variable} to its path")
    path = Path(value)
    if not path.exists():
        pytest.fail(f"{variable}={value} does not exist")
    return path


@pytest.fixture(scope="session")
def reference() -> Path:
    return _path_from("MSADAPTER_REFERENCE", "the reference losses and weights")


@pytest.fixture(scope="session")
def conformance() -> Path:
    return _path_from("MSADAPTER_CONFORMANCE", "the golden answers of PyTorch's OpInfo samples")


@pytest.fixture(scope="session")
def megatron_checkout() -> Path:
    return _path_from("MSADAPTER_MEGATRON", "a Megatron-LM checkout (core_v0.12.1)")


@pytest.fixture(scope="session")
def newer_megatron() -> Path:
    return _path_from("MSADAPTER_MEGATRON_NEXT", "a Megatron-LM checkout (core_v0.16.1)")


@pytest.fixture(scope="session")
def newest_megatron() -> Path:
    return _path_from("MSADAPTER_MEGATRON_NEWEST", "a Megatron-LM checkout (core_v0.19.0)")


@pytest.fixture(scope="session")
def python_3_12() -> Path:
    return _path_from("MSADAPTER_PYTHON_3_12", "a Python 3.12 of an environment of this project")


@pytest.fixture(scope="session")
def torch_python() -> Path:
    return _path_from("MSADAPTER_TORCH_PYTHON", "a python with real PyTorch")


@pytest.fixture(scope="session")
def converted() -> Path:
    """Return the converted Megatron Core tree in build/, which auto_convert.sh makes."""
    tree = Path(os.environ.get("MSADAPTER_BUILD", ROOT / "build")) / "megatron"
    if not (tree / "manifest.json").exists():
        pytest.skip("needs the converted tree: run bash auto_convert.sh")
    return tree


@pytest.fixture
def torch_by_name():
    """Make `import torch` return this project during a test. pickle finds classes by their module's name."""
    from msadapter import alias

    before = alias.installed()
    alias.install()
    yield
    if not before:
        alias.uninstall()
