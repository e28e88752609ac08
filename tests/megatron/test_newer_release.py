"""Megatron-LM core_v0.16.1 and core_v0.19.0, unmodified, train on the reference's curve: one process, and two ranks.

The reference is that of core_v0.12.1, whose model and mock data are the same. These releases print the mean
of the first two losses after a start as the second. core_v0.19.0 needs Python 3.12.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.megatron import lm_checkout as tools

LAYOUTS = {
    "tensor": "--tensor-model-parallel-size 2",
    "pipeline": "--pipeline-model-parallel-size 2",
    "data": "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather",
}


@dataclass(frozen=True)
class Release:
    """A copy of a checkout, the Python that it accepts, and the arguments that its model and data need beside the others."""

    tree: Path
    python: Path
    words: str = ""

    def pretrain(self, words: str, cache: Path, processes: int) -> list[tools.Iteration]:
        more = {"python": self.python, "MSADAPTER_TRITON": "1"}
        return tools.pretrain(self.tree, f"{words} {self.words}".split(), cache, processes, **more)


@pytest.fixture(scope="module", params=["0.16.1", pytest.param("0.19.0", marks=pytest.mark.extended)])
def release(request, tmp_path_factory) -> Release:
    """The newest release compiles its data set helper itself, as it does for a user."""
    folder = tmp_path_factory.mktemp("newer")
    if request.param == "0.16.1":
        return Release(tools.scratch_copy(request.getfixturevalue("newer_megatron"), folder), tools.PYTHON)
    checkout, python = (request.getfixturevalue(name) for name in ("newest_megatron", "python_3_12"))
    # Its tokenizer counts the end of documents among the given words, and those of earlier releases add it.
    return Release(tools.plain_copy(checkout, folder), python, "--vocab-size 4096")


def _run(release: Release, cache: Path, reference: Path, extra: str = "", processes: int = 1):
    load = f"--load {reference / 'init_gpt_dist'} --ckpt-format torch_dist --finetune --no-load-optim --no-load-rng"
    return release.pretrain(f"{load} {extra}", cache, processes)


def _printed(reference: Path, start: int = 1) -> list[tuple[float, float]]:
    """Loss and gradient norm of the iterations from `start`, in the format of this release."""
    curve = [
        (e["lm_loss"], e["grad_norm"])
        for e in json.loads((reference / "losses.json").read_text())["gpt_fp32_1proc"]
    ]
    (first, _), (second, norm) = curve[start - 1 : start + 1]
    return [curve[start - 1], ((first + second) / 2, norm), *curve[start + 1 :]]


def _hold(measured: list[tools.Iteration], expected: list[tuple[float, float]]) -> None:
    assert [i.lm_loss for i in measured] == pytest.approx([loss for loss, _ in expected], rel=1e-5)
    assert [i.grad_norm for i in measured] == pytest.approx(
        [norm for _, norm in expected], rel=1e-5, abs=0.00101
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "layout",
    [
        "",
        # the test below has these too, or test_parallel.py has them
        pytest.param("tensor", marks=pytest.mark.extended),
        pytest.param("pipeline", marks=pytest.mark.extended),
        pytest.param("data", marks=pytest.mark.extended),
    ],
)
def test_curve_of_the_reference(layout: str, release: Release, reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    measured = _run(release, tmp_path, reference, LAYOUTS.get(layout, ""), 2 if layout else 1)
    _hold(measured, _printed(reference))


@pytest.mark.slow
def test_resumes_in_another_layout(release: Release, reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    folder = tmp_path / "checkpoints"
    _run(
        release,
        tmp_path,
        reference,
        f"--save {folder} --save-interval 10 --exit-interval 10 {LAYOUTS['tensor']}",
        2,
    )
    measured = release.pretrain(
        f"--load {folder} --ckpt-format torch_dist {LAYOUTS['pipeline']}", tmp_path, 2
    )
    assert [i.number for i in measured] == list(range(11, 21))
    _hold(measured, _printed(reference, 11))
