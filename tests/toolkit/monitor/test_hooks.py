"""How upstream's functions are wrapped."""

from __future__ import annotations

from megatron_ms.monitor import hooks


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
    from megatron_ms.monitor.watch import Watch

    assert all(callable(getattr(Watch, method)) for _, _, method, *_ in hooks.PLACES)
    names = [(module, name) for module, name, *_ in hooks.PLACES]
    assert len(names) == len(set(names))
