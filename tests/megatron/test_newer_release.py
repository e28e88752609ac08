"""Megatron-LM core_v0.16.1, unmodified: one process, two tensor ranks and two stages train on the reference's curve.

The reference is that of core_v0.12.1, whose model and mock data are the same. This release prints the mean
of the first two losses after a start as the second.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.megatron import lm_checkout as tools

LAYOUTS = {"tensor": "--tensor-model-parallel-size 2", "pipeline": "--pipeline-model-parallel-size 2"}


@pytest.fixture(scope="module")
def tree(newer_megatron: Path, tmp_path_factory) -> Path:
    return tools.scratch_copy(newer_megatron, tmp_path_factory.mktemp("newer"))


def _run(tree: Path, cache: Path, reference: Path, extra: str = "", processes: int = 1):
    load = f"--load {reference / 'init_gpt_dist'} --ckpt-format torch_dist --finetune --no-load-optim --no-load-rng"
    return tools.pretrain(tree, f"{load} {extra}".split(), cache, processes, MSADAPTER_TRITON="1")


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
@pytest.mark.parametrize("layout", ["", *LAYOUTS])
def test_curve_of_the_reference(layout: str, tree: Path, reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    measured = _run(tree, tmp_path, reference, LAYOUTS.get(layout, ""), 2 if layout else 1)
    _hold(measured, _printed(reference))


@pytest.mark.slow
def test_resumes_in_another_layout(tree: Path, reference: Path, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    folder = tmp_path / "checkpoints"
    _run(
        tree,
        tmp_path,
        reference,
        f"--save {folder} --save-interval 10 --exit-interval 10 {LAYOUTS['tensor']}",
        2,
    )
    words = f"--load {folder} --ckpt-format torch_dist {LAYOUTS['pipeline']}".split()
    measured = tools.pretrain(tree, words, tmp_path, 2, MSADAPTER_TRITON="1")
    assert [i.number for i in measured] == list(range(11, 21))
    _hold(measured, _printed(reference, 11))
