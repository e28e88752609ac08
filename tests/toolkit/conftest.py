"""A configuration of a small training in a fresh folder, and a cache of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from megatron_ms import config
from megatron_ms.training import settings
from msadapter import alias
from tests.toolkit import fake_upstream


def _import_transformers() -> None:
    """transformers decides once, when it is imported, whether there is a torch."""
    before = alias.installed()
    alias.install()
    try:
        import transformers

        transformers.utils.is_torch_available()
    except ModuleNotFoundError:  # the tests that need it are skipped
        pass
    finally:
        if not before:
            alias.uninstall()


_import_transformers()

TOY = """\
name: toy
run: {trees: tree}
dataset: {mock: true, sequence_length: 64}
model: {num_layers: 4, hidden_size: 64, num_attention_heads: 4, vocab_size: 4096}
train: {iterations: 3, global_batch: 8}
"""


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Path:
    """A folder with the tree of a fake upstream, which no test changes, and the cache of its flags."""
    folder = tmp_path_factory.mktemp("shared")
    fake_upstream.make(folder / "tree")
    return folder


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A folder with toy.yaml, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.yaml").write_text(TOY)
    return tmp_path


@pytest.fixture
def fake(here, shared, monkeypatch) -> Path:
    """The same; toy.yaml names the shared tree."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(shared / "cache"))
    (here / "toy.yaml").write_text(TOY.replace("trees: tree", f"trees: {shared / 'tree'}"))
    return here


@pytest.fixture
def own(here, monkeypatch) -> Path:
    """The same with a tree of its own, which the test may change, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    fake_upstream.make(here / "tree")
    return here


@pytest.fixture
def read(here):
    """Reads toy.yaml with KEY=VALUE and returns the checked settings."""

    def read(*overrides: str) -> settings.Settings:
        return settings.read(config.load("toy.yaml", overrides))

    return read
