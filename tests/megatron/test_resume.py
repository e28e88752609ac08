"""A job whose processes are all killed goes on from its checkpoint as if nothing had happened, and in another layout too.

Upstream's own files, with the adapter's transformer_engine: its Adam counts steps where Megatron looks for them.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.distributed.ranks import left
from tests.megatron import lm_checkout as tools

TENSOR, PIPELINE = "--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 2"
DISTRIBUTED = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
LAYOUTS = {"tensor": (2, TENSOR), "pipeline": (2, PIPELINE), "data": (2, DISTRIBUTED)}
OTHER_LAYOUTS = {"one process": (1, ""), **LAYOUTS, "tensor and pipeline": (4, f"{TENSOR} {PIPELINE}")}
RELATIVE = 1e-5
SAVED = 10

_COMPARE = """
import sys, torch
def tensors(value, path):
    if isinstance(value, torch.Tensor):
        yield path, value
    elif isinstance(value, dict):
        for key in value:
            yield from tensors(value[key], f"{path}.{key}")
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from tensors(inner, f"{path}.{i}")
def read(path):
    state = torch.load(path, map_location="cpu", weights_only=False)
    return dict(tensors({k: v for k, v in state.items() if k != "rng_state"}, ""))
one, other = read(sys.argv[1]), read(sys.argv[2])
assert one and one.keys() == other.keys(), one.keys() ^ other.keys()
different = [name for name in one if not torch.equal(one[name], other[name])]
assert not different, different
print(len(one))
"""


@dataclass
class Job:
    """A parallel layout with a checkpoint folder."""

    tree: Path
    cache: Path
    kind: str
    processes: int
    arguments: str
    engine: bool = True

    def start(self, folder: Path, mark: str, fresh: bool) -> subprocess.Popen:
        load = "" if fresh else f"--load {folder}"
        save = f"--save {folder} --save-interval {SAVED} --ckpt-format {self.kind}"
        words = f"{load} {save} {self.arguments}".split()
        words += ["--transformer-impl", "transformer_engine"] if self.engine else []
        variables = {"MSADAPTER_TRANSFORMER_ENGINE": str(int(self.engine)), "MSADAPTER_TEST_JOB": mark}
        return subprocess.Popen(
            tools.command(self.cache, words, self.processes),
            cwd=self.tree,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=tools.environment(self.tree, self.processes, **variables),
        )

    def run(self, folder: Path, mark: str, fresh: bool) -> list[tools.Iteration]:
        """Runs the job to its end and returns the printed values of each iteration."""
        job = self.start(folder, mark, fresh)
        output = job.communicate(timeout=600)[0]
        assert job.returncode == 0, output[-4000:]
        return tools.iterations(output)

    def killed(self, folder: Path, mark: str) -> None:
        """Kills all processes some iterations after the checkpoint."""
        job = self.start(folder, mark, True)
        lines = []
        for line in job.stdout:
            lines.append(line)
            if any(i.number >= SAVED + 2 for i in tools.iterations(line)):
                break
        processes = left(mark)
        assert len(processes) >= self.processes, "".join(lines)[-4000:]
        job.send_signal(signal.SIGKILL)
        job.communicate()
        end = time.monotonic() + 10
        while left(mark) and time.monotonic() < end:
            time.sleep(0.05)
        assert not left(mark), "processes are left"
        assert (folder / "latest_checkpointed_iteration.txt").read_text() == str(SAVED)


@pytest.fixture(scope="module")
def tree(megatron_checkout: Path, tmp_path_factory) -> Path:
    return tools.scratch_copy(megatron_checkout, tmp_path_factory.mktemp("resume"))


def _files(folder: Path) -> list[Path]:
    return sorted(p.relative_to(folder) for p in folder.glob("iter_0000020/**/*.pt") if p.name != "common.pt")


@pytest.fixture(scope="module")
def ruled_tree(megatron_checkout: Path, tmp_path_factory) -> Path:
    """A copy of the checkout with the rules of `patches`."""
    return tools.ruled_copy(megatron_checkout, tmp_path_factory.mktemp("ruled"))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["torch", "torch_dist"])
@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_goes_on_bit_for_bit(layout, kind, tree, ruled_tree, tmp_path):
    if (layout, kind) == ("data", "torch"):
        tree = ruled_tree  # float32 alone needs the rule parameters-are-loaded-in-place
    _check(Job(tree, tmp_path / "cache", kind, *LAYOUTS[layout]), tmp_path, f"resume-{layout}-{kind}")


@pytest.mark.slow
def test_stages_of_local_layers_find_their_own_parameter_groups(ruled_tree, tmp_path):
    """Without the rule parameter-groups-in-one-order, the last stage would load the parameter groups of the first."""
    _check(
        Job(ruled_tree, tmp_path / "cache", "torch_dist", *LAYOUTS["pipeline"], engine=False),
        tmp_path,
        "resume-local",
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["torch", "torch_dist"])
def test_the_distributed_optimizer_of_pytorch_goes_on(kind, ruled_tree, tmp_path):
    """Without TransformerEngine it loads with the rules steps-of-a-new-optimizer and steps-of-a-loaded-optimizer alone."""
    _check(
        Job(ruled_tree, tmp_path / "cache", kind, *LAYOUTS["data"], engine=False),
        tmp_path,
        f"resume-own-{kind}",
    )


def _check(job, tmp_path, mark):
    tree, kind = job.tree, job.kind
    whole = job.run(tmp_path / "whole", "resume-whole", True)
    job.killed(tmp_path / "killed", mark)
    rest = job.run(tmp_path / "killed", "resume-rest", False)
    assert [i.number for i in rest] == list(range(SAVED + 1, 21)) and rest == whole[SAVED:]
    files = _files(tmp_path / "whole")
    assert files == _files(tmp_path / "killed") and (files or kind == "torch_dist")
    for name in files if kind == "torch" else ():
        script = tmp_path / "compare.py"
        script.write_text(_COMPARE)
        words = [
            sys.executable,
            "-m",
            "msadapter",
            script,
            tmp_path / "whole" / name,
            tmp_path / "killed" / name,
        ]
        done = subprocess.run(
            [str(w) for w in words], env=tools.environment(tree), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and int(done.stdout) > 0, done.stderr[-2000:]


@pytest.fixture(scope="module")
def interrupted(tree, tmp_path_factory):
    """A checkpoint of the tensor parallel layout, and the curve of its run."""
    folder = tmp_path_factory.mktemp("interrupted")
    job = Job(tree, folder / "cache", "torch_dist", 2, f"{TENSOR} {DISTRIBUTED}")
    whole = job.run(folder / "whole", "resume-interrupted", True)
    job.killed(folder / "killed", "resume-interrupted")
    return folder, whole


@pytest.mark.slow
@pytest.mark.parametrize("layout", [name for name in OTHER_LAYOUTS if name != "tensor"])
def test_goes_on_in_another_layout(layout, interrupted, tree, tmp_path):
    folder, whole = interrupted
    processes, arguments = OTHER_LAYOUTS[layout]
    # random states belong to a layout; both optimizers are the distributed one, whose checkpoints Megatron reads as such
    arguments = f"{arguments} {DISTRIBUTED if DISTRIBUTED not in arguments else ''} --no-load-rng"
    job = Job(tree, folder / "cache", "torch_dist", processes, arguments)
    shutil.copytree(folder / "killed", tmp_path / "killed")
    rest = job.run(tmp_path / "killed", "resume-other", False)
    assert [i.number for i in rest] == list(range(SAVED + 1, 21))
    assert [i.lm_loss for i in rest] == pytest.approx([i.lm_loss for i in whole[SAVED:]], rel=RELATIVE)
    assert [i.grad_norm for i in rest] == pytest.approx(
        [i.grad_norm for i in whole[SAVED:]], rel=RELATIVE, abs=0.0011
    )
