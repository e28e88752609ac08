"""Monitoring and recovery of `megatron_ms train` over an unmodified Megatron-LM. The whole table is made by reliability.py."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from megatron_ms.monitor import events
from megatron_ms.training import folder as folders
from tests.megatron import lm_checkout as tools
from tests.megatron import reliability
from tests.megatron.faulty_runs import ITERATIONS, Toy

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def suite(megatron_checkout: Path, tmp_path_factory) -> reliability.Suite:
    folder = tmp_path_factory.mktemp("watch")
    return reliability.Suite(folder / "runs", tools.scratch_copy(megatron_checkout, folder))


def test_numbers_are_upstreams_and_those_of_the_ranks(suite) -> None:
    """What is measured is what upstream prints, what the ranks have together, and what TensorBoard reads."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = suite.base()
    printed = {one.number: one for one in tools.iterations((run.folder / "log.txt").read_text())}
    assert sorted(printed) == sorted(run.records) == list(range(1, ITERATIONS + 1))
    for number, record in run.records.items():
        assert record["loss"] == pytest.approx(printed[number].lm_loss, rel=1e-6)
        assert record["grad norm"] == pytest.approx(printed[number].grad_norm, abs=tools.PRINTED)
        own = [rank["loss"] for rank in record["ranks"]]
        assert len(own) == 2 and own[0] != own[1] and sum(own) / 2 == pytest.approx(record["loss"], rel=1e-6)
        assert 0 < record["goodput"] < 1 and record["tokens per second"] > 0
    board = EventAccumulator(str(run.folder / "tensorboard" / "monitor"))
    board.Reload()
    shown = [(one.step, one.value) for one in board.Scalars("loss")]
    assert shown == [
        (number, pytest.approx(record["loss"])) for number, record in sorted(run.records.items())
    ]
    assert (run.folder / "report.html").is_file() and run.told("done")


def test_a_step_is_profiled(suite) -> None:
    """Upstream's own flags write the trace of one step, and the toolkit prints a table of it."""
    run = suite.toy.run("train.iterations=3", "profile.steps=[2,3]", name="profiled")
    assert run.code == 0, run.output[-3000:]
    (trace,) = (run.folder / "tensorboard").glob("*.pt.trace.json")
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"aten::matmul", "ProfilerStep#2"} <= names and "ProfilerStep#3" not in names
    table = run.output[run.output.index(str(trace)) :]
    assert "own ms" in table and "aten::matmul" in table


@pytest.mark.parametrize(
    "words",
    [
        pytest.param((), marks=pytest.mark.extended),
        pytest.param(("parallel.distributed_optimizer=true",), marks=pytest.mark.extended),
        pytest.param(("parallel.tensor=2",), marks=pytest.mark.extended),
        ("parallel.distributed_optimizer=true", "train.precision=bf16"),
    ],
)
def test_norms_of_all_parameters_are_the_gradient_norm(suite, words) -> None:
    """With all parameters chosen, the squares of the local norms add up to the square of the global norm."""
    every = (
        "monitor.parameters=['.']",
        "monitor.weights=true",
        "monitor.optimizer=true",
        "monitor.peak_tflops=0.001",
        "upstream.log_params_norm=true",
        "train.iterations=2",
    )
    run = suite.toy.run(*words, *every, name="norms")
    assert run.code == 0, run.output[-3000:]
    printed = {one["iteration"]: one for one in folders.RunFolder(run.folder).records()}
    for number, record in run.records.items():
        norms = [rank["norm"] for rank in record["ranks"]]
        weights = [rank["weight"] for rank in record["ranks"]]
        total = sum(_whole(name, [own[name] for own in weights]) for name in weights[0])
        if "parallel.tensor=2" not in words:  # ranks have all weights
            total = sum(norm**2 for norm in weights[0].values())
        assert total**0.5 == pytest.approx(printed[number]["params norm"], abs=5e-3)  # bf16 rounds
        assert all(rank["weight"] and rank["state"]["exp_avg"] > 0 for rank in record["ranks"])
        if "parallel.tensor=2" in words:
            squares = sum(_whole(name, [own[name] for own in norms]) for name in norms[0])
        elif words:
            squares = sum(norm**2 for own in norms for norm in own.values())  # each rank has a part
        else:
            assert norms[0] == norms[1]
            squares = sum(norm**2 for norm in norms[0].values())
        assert squares**0.5 == pytest.approx(record["grad norm"], rel=1e-4)
        assert record["mfu"] == pytest.approx(record["tflops"] / 0.001) and record["tflops"] > 0
    if "parallel.tensor=2" not in words:
        # The first average of gradients is a tenth of the clipped ones; ranks have the whole, or parts of it.
        own = [rank["state"]["exp_avg"] for rank in run.records[1]["ranks"]]
        squares = sum(norm**2 for norm in own) / (1 if words else len(own))
        assert squares**0.5 == pytest.approx(0.1 * min(run.records[1]["grad norm"], 1.0), rel=1e-3)


def _whole(name: str, norms: list[float]) -> float:
    """The square of a parameter's norm with tensor parallelism, where ranks have parts, or both the whole."""
    parts = ("word_embeddings", "linear_qkv", "linear_fc1", "output_layer")
    divided = any(part in name for part in parts) or name.endswith(
        ("linear_proj.weight", "linear_fc2.weight")
    )
    return sum(norm**2 for norm in norms) if divided and "layer_norm" not in name else norms[0] ** 2


@pytest.mark.parametrize(
    "name",
    [
        "nan",
        # half a minute to two minutes each
        *(
            pytest.param(name, marks=pytest.mark.extended)
            for name in ("SIGTERM", "memory", "large", "safetensors", "machine", "fewer")
        ),
    ],
)
def test_a_part_of_the_table(suite, name) -> None:
    reliability.FAULTS[name].check(suite)


@pytest.fixture(scope="module")
def newer_suite(newer_megatron: Path, tmp_path_factory) -> reliability.Suite:
    folder = tmp_path_factory.mktemp("newer")
    return reliability.Suite(folder / "runs", tools.scratch_copy(newer_megatron, folder))


@pytest.mark.extended
@pytest.mark.parametrize(
    "name",
    ["nan", "memory", "large", "SIGTERM", "torch_dist"],
)
def test_a_part_of_the_table_with_a_newer_release(newer_suite, name) -> None:
    reliability.FAULTS[name].check(newer_suite)


@pytest.mark.parametrize("kind", ["torch", "torch_dist", "safetensors"])
def test_no_killed_save_is_loaded(tmp_path, kind) -> None:
    found = reliability.cut_saves(kind, 30, tmp_path / "cuts")
    assert found["corrupt"] == 0 and found["ended"] > 15
    files = {name for name in found["where"] if name != "a call"}
    assert "manifest.json" in files and len(files) >= 3 and all(found["where"].values()), found


def test_an_unknown_source_of_upstream_is_refused(suite, tmp_path) -> None:
    changed = tmp_path / "changed"
    shutil.copytree(suite.toy.tree, changed)
    file = changed / "megatron" / "training" / "training.py"
    file.write_text(file.read_text().replace('"""Single training step."""', '"""One training step."""'))
    run = Toy(tmp_path / "runs", changed).run("recovery.restarts=0", name="changed")
    assert run.code == 1 and "monitor.watch: false trains without monitoring" in run.output + str(
        events.read(run.folder)
    )
