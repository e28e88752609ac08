"""MindSpeed-LLM's own pretrain_gpt.py, unmodified, with our torchrun: the flags of its examples, small, change no loss.

MSADAPTER_MEGATRON      a Megatron-LM checkout, core_v0.12.1
MSADAPTER_MINDSPEED     a MindSpeed checkout, 2.3.0_core_r0.12.1
MSADAPTER_MINDSPEED_LLM a MindSpeed-LLM checkout, 2.3.0; what its requirements.txt names (datasets, pandas ...) must be
                        importable, from PYTHONPATH for example

The rows are in llm_rows.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.megatron import lm_checkout
from tests.npu import llm_features
from tests.npu.llm_rows import COMMON, FUSED, PIPELINE, ROWS, TENSOR, Row  # noqa: F401 the tools' tests take it from here
from tests.npu.llm_trainer import Trainer

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def trainer(tmp_path_factory, megatron_checkout) -> Trainer:
    names = {
        "MSADAPTER_MINDSPEED_LLM": "MindSpeed-LLM checkout (2.3.0)",
        "MSADAPTER_MINDSPEED": "MindSpeed checkout (2.3.0_core_r0.12.1)",
    }
    for name, what in names.items():
        if not os.environ.get(name):
            pytest.skip(f"needs a {what}: set {name} to its path")
    for package in ("datasets", "pandas", "tokenizers"):
        pytest.importorskip(package, reason=f"MindSpeed-LLM needs {package}")
    folder = tmp_path_factory.mktemp("mindspeed_llm")
    tree = lm_checkout.scratch_copy(megatron_checkout, folder)
    return Trainer(folder, tree, [Path(os.environ[name]) for name in names])


def _difference(got: list[float], want: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(got, want, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_fused_operators_change_no_loss(trainer: Trainer, row: Row, record_property) -> None:
    """The losses of a row are those of its model without them, and the operators that it names were called."""
    layout = trainer.start(row.model, row.layout) if row.alone else row.layout
    plain = trainer.without(1 if row.alone else row.processes, row.model, layout)
    fused = trainer.run(row.processes, row.model, f"{layout} {row.fused}")
    difference = _difference(fused.losses, plain.losses)
    record_property("largest_difference", difference)
    assert difference <= row.tolerance, (fused.losses, plain.losses)
    missing = [name for name in row.operators if not fused.operators.get(name)]
    assert not missing, f"{missing} never called: {fused.operators}"


@pytest.mark.slow
@pytest.mark.parametrize("mc2", ["--use-mc2", f"--use-ascend-mc2 {llm_features.OWN_LOGITS}"])
def test_the_full_command_of_modellink(trainer: Trainer, mc2: str, record_property) -> None:
    """Every flag of ModelLink's example, five layers on two stages: it trains as without the fused operators.

    MindSpeed-LLM reads the old name of mc2 when its patches are made already, so that only the new one has an effect.
    """
    layers = "--num-layers 5 --num-layer-list 2,3"
    parallel = f"{layers} {TENSOR} {PIPELINE} --use-distributed-optimizer"
    recompute = "--recompute-granularity full --recompute-method block --recompute-num-layers 72"
    more = f"{recompute} {FUSED} --overlap-grad-reduce --overlap-param-gather --sliding-window 4096 {mc2}"
    plain = trainer.without(4, "llama3", parallel)
    fused = trainer.run(4, "llama3", f"{parallel} {more}")
    difference = _difference(fused.losses, plain.losses)
    record_property("largest_difference", difference)
    assert difference <= 1e-5, (fused.losses, plain.losses)
    assert bool(fused.operators.get("npu_all_gather_base_mm")) is ("ascend" in mc2)


def test_the_page_of_flags_is_that_of_the_rows() -> None:
    """docs/mindspeed_features.md is generated: python -m tests.npu.llm_features."""
    assert llm_features.PAGE.read_text() == llm_features.page()


@pytest.mark.slow
def test_every_flag_of_mindspeed_llm_is_on_the_page(trainer: Trainer) -> None:
    """What its features register is proven by a row, explained, or of another job than training."""
    registered = trainer.registered()
    known = llm_features.proven() | set(llm_features.OPEN) | llm_features.OTHER_JOBS
    assert registered - known == set()
    assert set(llm_features.OPEN) | llm_features.OTHER_JOBS <= registered
