"""The model of step time and memory: known values, and properties that hold for all inputs."""

import json

import pytest

from benchmarks import scaling
from benchmarks.collectives import alpha_beta

LINK = scaling.Link(1e-6, 1e-9)
SEVEN = next(m for m in scaling.models() if m.name == "llama2-7b")


def test_parameters_are_those_of_the_published_models():
    count = {m.name: m.parameters() / 1e9 for m in scaling.models()}
    assert count["llama2-7b"] == pytest.approx(6.74, abs=0.01)
    assert count["llama2-70b"] == pytest.approx(69.0, abs=0.1)
    assert count["mixtral-8x7b"] == pytest.approx(46.7, abs=0.1)


def test_costs_of_messages():
    assert LINK.message(1000) == pytest.approx(2e-6)
    assert LINK.all_reduce(8e6, 1) == LINK.all_to_all(8e6, 1) == 0
    assert LINK.all_reduce(8e6, 4) == pytest.approx(2 * (3e-6 + 6e-3))
    assert LINK.gather(8, 1024) == pytest.approx(20e-6, rel=0.01)  # recursive doubling, not a ring


def test_one_device_exchanges_nothing():
    step = scaling.Plan(SEVEN, scaling.CLUSTER, 1, 1, 1).step()
    assert not any(step[part] for part in ("tensor", "experts", "messages", "bubble", "data"))
    assert step["all"] == pytest.approx(step["compute"] + step["update"])


def test_bubble_is_the_stages_less_one():
    plan = scaling.Plan(SEVEN, scaling.CLUSTER, 4, 1, 4, count=8)
    step = plan.step()
    micro = (step["compute"] + step["messages"]) / 8
    assert step["bubble"] == pytest.approx(3 * micro)


def test_memory_is_shared_by_what_shares_it():
    one = scaling.Plan(SEVEN, scaling.CLUSTER, 1, 1, 1).memory()
    assert one["weights"] == pytest.approx(6 * (SEVEN.parameters() - SEVEN.vocabulary * SEVEN.hidden))
    tensor = scaling.Plan(SEVEN, scaling.CLUSTER, 8, 8, 1).memory()
    data = scaling.Plan(SEVEN, scaling.CLUSTER, 8, 1, 1).memory()
    assert tensor["all"] == pytest.approx(one["all"] / 8)
    assert data["weights"] == one["weights"] and data["optimizer"] == pytest.approx(one["optimizer"] / 8)


def test_the_fastest_mix_fits_and_beats_the_models_own():
    for model in scaling.models():
        own = scaling.own_mix(scaling.CLUSTER, model, 1024)
        fastest = scaling.best(model, scaling.CLUSTER, 1024, scaling.COUNT)
        if fastest is None:  # 70 layers cannot be divided well among 1024 devices
            assert model.name == "bloom-176b"
            continue
        assert fastest.memory()["all"] <= scaling.CLUSTER.memory
        if own.memory()["all"] <= 0.9 * scaling.CLUSTER.memory and 1024 % (own.tensor * own.pipeline) == 0:
            assert fastest.utilisation() >= own.utilisation() * 0.999


def test_page_with_measured_messages(tmp_path):
    times = [
        {"operation": "ping-pong", "ranks": 2, "bytes": size, "ours": 2 * LINK.message(size)}
        for size in (8, 1 << 20)
    ]
    latency, per_byte = alpha_beta(times)
    assert (latency, per_byte) == (pytest.approx(LINK.alpha, rel=0.01), pytest.approx(LINK.beta))
    (tmp_path / "run.json").write_text(json.dumps({"entries": times}))
    assert (
        scaling.main(["--collectives", str(tmp_path / "run.json"), "--table", str(tmp_path / "page.md")]) == 0
    )
    page = (tmp_path / "page.md").read_text()
    assert (
        "Measured on this machine's CPU ranks over MPI: 1.0 us and 1.00 GB/s" in page
        and "| llama2-7b, 6.7 |" in page
    )
