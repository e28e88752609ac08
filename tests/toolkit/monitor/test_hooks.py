"""How upstream's functions are wrapped."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from megatron_ms.monitor import hooks
from megatron_ms.monitor.watch import Settings, Unobserved, Watch
from megatron_ms.recovery.beats import Heart


def test_a_function_is_observed_once_also_if_another_upstream_replaces_it() -> None:
    """MindSpeed-LLM makes its own function out of Megatron's, which is wrapped already."""
    seen = []

    def method(original, iteration):
        seen.append(iteration)
        return original(iteration)

    def megatron(iteration):
        return ["megatron", iteration]

    def calls_megatron(function):
        return lambda iteration: ["MindSpeed-LLM", *function(iteration)]

    wrapped = hooks._wrapped(method, megatron)
    assert wrapped(1) == ["megatron", 1] and seen == [1]
    for given in (wrapped, megatron):
        made = hooks._wrapped_result(method, calls_megatron)(given)
        assert made(2) == ["MindSpeed-LLM", "megatron", 2]
    assert seen == [1, 2, 2]


def test_every_method_is_there_and_every_place_is_named_once() -> None:
    assert all(callable(getattr(Watch, method)) for _, _, method, *_ in hooks.PLACES)
    names = [(module, name) for module, name, *_ in hooks.PLACES]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("done", [None, 8, 12])
def test_steps_of_a_function_that_is_not_observed_are_an_error(tmp_path: Path, monkeypatch, done) -> None:
    """At the first checkpoint after such steps, which is written before. A checkpoint without steps is none."""
    upstream = ModuleType("megatron.training")
    upstream.get_args = lambda: SimpleNamespace(iteration=8, curr_iteration=done)  # type: ignore[attr-defined]
    for name, module in (("megatron", ModuleType("megatron")), ("megatron.training", upstream)):
        monkeypatch.setitem(sys.modules, name, module)
    watch = Watch(Settings(tmp_path, tmp_path / "signs"), 0)
    watch.heart = Heart(tmp_path / "signs", 0)
    saved = []
    monkeypatch.setattr(watch.saving, "save", lambda original, *arguments: saved.append(arguments))
    if done == 12:
        with pytest.raises(Unobserved, match="has replaced train_step by a function that is not observed"):
            watch.save(lambda: None, 12)
        reason = json.loads((tmp_path / "signs" / "rank-0.reason.json").read_text())
        assert reason["final"] and "monitor.watch: false" in reason["text"]
    else:
        watch.save(lambda: None, 8)
    assert saved
