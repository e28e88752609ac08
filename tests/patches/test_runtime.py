"""Rules at run time are applied during the import, before another module can copy the attribute."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from pathlib import Path

import pytest

from patches import PatchError, runtime, runtime_rules, upstreams
from patches.rules import fingerprint, source_of
from patches.runtime import RuntimePatch, applied_patches, install_patches, remove_patches

SOURCE = """def speed(x):
    return x * 2


class Engine:
    def start(self):
        return "plain"

    @staticmethod
    def kind():
        return "plain"
"""
FINGERPRINTS = tuple(
    fingerprint(source_of(name, SOURCE, "")) for name in ("speed", "Engine.start", "Engine.kind")
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch) -> str:
    folder = tmp_path / "toylib"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "engine.py").write_text(SOURCE)
    (folder / "user.py").write_text("from .engine import speed as faster\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    finders, others = list(sys.meta_path), set(runtime._known)
    yield "toylib"
    remove_patches([name for name in reversed(list(runtime._known)) if name not in others])
    for name in set(sys.modules) - before:
        if name.startswith("toylib"):
            del sys.modules[name]
    assert sys.meta_path == finders


def rule(**changes) -> RuntimePatch:
    fields = {
        "id": "speed",
        "module": "toylib.engine",
        "attribute": "speed",
        "reason": "for the test",
        "reason_class": "device",
        "replacement": lambda original: lambda x: original(x) + 1,
        "fingerprints": FINGERPRINTS,
    }
    return RuntimePatch(**(fields | changes))


def test_everyone_gets_the_replacement(package: str) -> None:
    install_patches(
        [rule(), rule(id="start", attribute="Engine.start", replacement=lambda old: lambda self: "ours")]
    )
    user = importlib.import_module("toylib.user")
    engine = importlib.import_module("toylib.engine")
    assert user.faster(3) == 7
    assert engine.Engine().start() == "ours"
    assert applied_patches()[-2:] == ["speed", "start"]
    assert engine.__spec__.loader is engine.__loader__
    assert engine.__loader__.get_source("toylib.engine") == SOURCE
    remove_patches(["start", "speed"])
    assert engine.speed(3) == 6
    assert engine.Engine().start() == "plain"
    assert not {"speed", "start"} & set(applied_patches())


def test_a_static_method_is_put_back_as_one(package: str) -> None:
    install_patches([rule(attribute="Engine.kind", replacement=lambda old: staticmethod(lambda: "ours"))])
    engine = importlib.import_module("toylib.engine")
    assert engine.Engine().kind() == "ours"
    remove_patches(["speed"])
    assert engine.Engine().kind() == "plain"


def test_too_late_is_an_error_and_installs_nothing(package: str) -> None:
    importlib.import_module("toylib.engine")
    with pytest.raises(PatchError, match="imported already"):
        install_patches([rule(id="other", module="toylib.unknown"), rule()])
    install_patches([rule(id="other", module="toylib.unknown")])  # it did not wait since then


@pytest.mark.parametrize("place", ["before", "after"])
def test_installed_by_the_module_itself(package: str, place: str, monkeypatch) -> None:
    """A module can still install rules before its definitions.

    MindSpeed's op_builder imports torch_npu first.
    """
    folder = Path(importlib.import_module(package).__file__).parent
    hook = "import patches.runtime, toylib.rules\npatches.runtime.install_patches(toylib.rules.RULES)\n"
    (folder / "engine.py").write_text(hook + SOURCE if place == "before" else SOURCE + hook)
    (folder / "rules.py").touch()
    importlib.import_module("toylib.rules").RULES = [rule()]
    if place == "after":
        with pytest.raises(PatchError, match="imported already"):
            importlib.import_module("toylib.user")
        return
    user = importlib.import_module("toylib.user")
    assert user.faster(3) == 7
    assert type(sys.modules["toylib.engine"].__spec__) is importlib.machinery.ModuleSpec


def test_an_error_in_a_module_that_waits_is_its_own(package: str) -> None:
    folder = Path(importlib.import_module(package).__file__).parent
    (folder / "engine.py").write_text(
        "import patches.runtime, toylib.rules\npatches.runtime.install_patches(toylib.rules.RULES)\nraise ValueError('mine')\n"
    )
    (folder / "rules.py").touch()
    importlib.import_module("toylib.rules").RULES = [rule()]
    with pytest.raises(ValueError, match="mine"):
        importlib.import_module("toylib.engine")
    assert "speed" not in applied_patches()


def test_installing_again_changes_nothing(package: str) -> None:
    one = rule()
    install_patches([one])
    engine = importlib.import_module("toylib.engine")
    install_patches([one])
    assert engine.speed(1) == 3
    with pytest.raises(PatchError, match="two runtime patches"):
        install_patches([rule(reason="another")])


@pytest.mark.parametrize("attribute", ["gone", "Engine.gone", "Gone.start"])
def test_a_target_that_is_gone_fails_the_import(package: str, attribute: str) -> None:
    install_patches([rule(attribute=attribute)])
    with pytest.raises(PatchError, match="upstream has changed"):
        importlib.import_module("toylib.engine")
    assert "toylib.engine" not in sys.modules


def test_an_attribute_that_is_made_on_demand_is_not_replaced(package: str, tmp_path: Path) -> None:
    """A module with __getattr__ has the attribute for a program, but there is nothing to put back later."""
    (tmp_path / "toylib/engine.py").write_text(SOURCE.replace("def speed", "def _speed") + (
        "\n\ndef __getattr__(name):\n    if name == 'speed':\n        return _speed\n    raise AttributeError(name)\n"
    ))  # fmt: skip
    install_patches([rule()])
    with pytest.raises(PatchError, match="toylib.engine has no speed: upstream has changed"):
        importlib.import_module("toylib.engine")
    assert "speed" not in applied_patches()


def test_drift_shows_both_sources(package: str) -> None:
    other = "def speed(x):\n    return x * 3\n"
    install_patches([rule(fingerprints=(fingerprint(other),), expected=other)])
    with pytest.raises(PatchError, match=r"(?s)-    return x \* 3.*\+    return x \* 2"):
        importlib.import_module("toylib.engine")
    remove_patches(["speed"])
    install_patches([rule(fingerprints=(fingerprint(other), *FINGERPRINTS))])
    assert importlib.import_module("toylib.engine").speed(1) == 3


def test_drift_without_a_copy_of_the_source_shows_what_is_there(package: str) -> None:
    install_patches([rule(attribute="Engine.start", fingerprints=FINGERPRINTS[:1])])
    with pytest.raises(
        PatchError, match=r"(?s)Engine.start is not the source that the rule was written for.*return .plain"
    ):
        importlib.import_module("toylib.engine")


def test_what_has_no_source_is_not_replaced(package: str) -> None:
    folder = Path(importlib.import_module(package).__file__).parent
    (folder / "engine.py").write_text("from math import sqrt as speed\n")
    install_patches([rule()])
    with pytest.raises(PatchError, match="has no source"):
        importlib.import_module("toylib.engine")


def test_every_shipped_rule_has_the_fingerprint_of_what_it_replaces() -> None:
    with pytest.raises(PatchError, match="needs fingerprints"):
        rule(fingerprints=())
    shipped = [one for name in upstreams() for one in runtime_rules(name)]
    assert shipped
    for one in shipped:
        assert all(len(sha) == 64 and int(sha, 16) for sha in one.fingerprints), one.id


def test_a_reason_is_needed() -> None:
    with pytest.raises(PatchError, match="needs a reason"):
        rule(reason=" ")
    with pytest.raises(PatchError, match="needs its link"):
        rule(reason_class="upstream bug")


def test_removed_while_it_waits(package: str) -> None:
    install_patches([rule()])
    remove_patches(["speed", "never there"])
    assert importlib.import_module("toylib.engine").speed(1) == 2


def test_what_else_is_noted_in_the_spec_applies_nothing(package: str) -> None:
    """Only the end of the import applies the rules; other facts that the import system notes in the spec do not."""
    spec = runtime._Running(package, None)
    sys.modules[package] = type(sys)(package)
    try:
        spec.cached = None
        spec.submodule_search_locations = []
        assert type(spec) is runtime._Running
        spec._initializing = False
        assert type(spec) is importlib.machinery.ModuleSpec
    finally:
        del sys.modules[package]
