"""One YAML file trains an unmodified Megatron-LM on 1 and on 4 ranks, by hand, and on the simulated NPU, with the same losses."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from megatron_ms.training import folder as folders
from megatron_ms.training import lines
from msadapter._host import simulator
from tests.megatron import lm_checkout as tools

pytestmark = pytest.mark.slow
pytest.importorskip("mpi4py")
STEPS = 4
FILE = """\
name: {name}
run: {{trees: {tree}}}
dataset: {{mock: true, sequence_length: 64}}
model: {{num_layers: 4, hidden_size: 64, num_attention_heads: 4, vocab_size: 4096, attention_dropout: 0.0, hidden_dropout: 0.0}}
train: {{iterations: {steps}, micro_batch: 2, global_batch: 8, lr: 1e-2, decay: constant}}
save: {{format: torch_dist, interval: {interval}}}
monitor: {{tensorboard: false, report: false}}
"""
LAYOUTS = {
    "one": ["run.processes=1"],
    "data": ["run.processes=4"],
    "tensor, pipeline": ["run.processes=4", "parallel.tensor=2", "parallel.pipeline=2"],
}
NPU = {"SIMULATED_NPU": "1", "SIMULATED_NPU_MEMORY_GB": "4", "SIMULATED_NPU_DEVICES": "4"}


@dataclass(frozen=True)
class Toy:
    """A folder with toy.yaml and the weights with which every training begins."""

    folder: Path

    def call(self, *words: object, **variables: str) -> str:
        """What a program prints, started in the folder."""
        paths = [str(tools.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(paths),
            "OMP_NUM_THREADS": "1",
            **variables,
        }
        run = subprocess.run(
            [*map(str, words)], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=900
        )
        assert run.returncode == 0, (run.stdout + run.stderr)[-3000:]
        return run.stdout

    def train(self, *words: str, **variables: str) -> str:
        return self.call(sys.executable, "-m", "megatron_ms", "train", "toy.yaml", *words, **variables)

    def losses(self, name: str, *words: str, **variables: str) -> list[float]:
        """The losses of a training of that name."""
        self.train(f"name={name}", "resume.load=start", *words, **variables)
        (run,) = folders.runs(self.folder / "runs", name)
        found = [loss for record in run.records() if (loss := lines.loss_of(record)) is not None]
        assert len(found) == STEPS
        return found


@pytest.fixture(scope="module")
def toy(megatron_checkout: Path, tmp_path_factory) -> Toy:
    folder = tmp_path_factory.mktemp("one-file")
    made = Toy(folder)
    tree = tools.scratch_copy(megatron_checkout, folder)
    for name, steps, interval in (("start", 1, 1), ("toy", STEPS, "null")):
        text = FILE.format(name=name, tree=f"[{tree}]", steps=steps, interval=interval)
        (folder / "toy.yaml").write_text(text)
        if name == "start":
            made.train("run.processes=1")
            (run,) = folders.runs(folder / "runs", "start")
            run.checkpoints.rename(folder / "start")
    return made


@pytest.fixture(scope="module")
def alone(toy) -> list[float]:
    return toy.losses("alone", *LAYOUTS["one"])


def test_the_losses_depend_on_the_updates(toy, alone) -> None:
    """Else a layout with wrong gradients would have the same losses."""
    still = toy.losses("still", *LAYOUTS["one"], "train.lr=1e-12")
    assert still[0] == alone[0] and all(
        abs(one - other) > 0.01 for one, other in zip(still[1:], alone[1:], strict=True)
    )


@pytest.mark.parametrize("layout", [pytest.param("data", marks=pytest.mark.extended), "tensor, pipeline"])
def test_four_ranks_have_the_losses_of_one(toy, alone, layout) -> None:
    found = toy.losses(layout.replace(", ", "-"), *LAYOUTS[layout])
    assert found == pytest.approx(alone, rel=2e-6)


@pytest.mark.parametrize("layout", ["one", "tensor, pipeline"])
def test_the_printed_command_has_the_same_losses(toy, alone, layout) -> None:
    """A shell runs it from another folder, with nothing of the toolkit around it."""
    text = toy.train("--print-command", "resume.load=start", *LAYOUTS[layout])
    found = [one.lm_loss for one in tools.iterations(toy.call("bash", "-c", f"cd / && {text}"))]
    assert found == pytest.approx(alone, rel=2e-6)


@pytest.mark.extended
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_simulated_npu_has_the_same_losses(toy, alone, layout) -> None:
    simulator.build()
    variables = {f"MSADAPTER_{name}": value for name, value in NPU.items()}
    name = f"npu-{layout.replace(', ', '-')}"
    found = toy.losses(name, *LAYOUTS[layout], GLOG_v="3", **variables)
    assert found == pytest.approx(alone, rel=1e-5)
