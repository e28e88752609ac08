"""Models of today with Megatron-LM core_v0.16.1 and core_v0.19.0, unmodified: a checkpoint goes on in another layout."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.megatron.test_newer_release import LAYOUTS, Release, release  # noqa: F401 a fixture

GROUPED = """--group-query-attention --num-query-groups 2 --swiglu --normalization RMSNorm --position-embedding-type rope
    --untie-embeddings-and-output-weights --disable-bias-linear"""


@pytest.mark.slow
def test_a_model_of_today_goes_on_in_a_pipeline(release: Release, tmp_path: Path) -> None:  # noqa: F811 the fixture
    """Four steps on one process, and two of them on two stages from its checkpoint, have the same losses.

    The model has groups of queries, SwiGLU, RMSNorm and rotary embeddings, which the reference's has not.
    """
    pytest.importorskip("mpi4py")
    folder = tmp_path / "checkpoints"
    save = f"--save {folder} --save-interval 2 --exit-interval 4 --ckpt-format torch_dist"
    alone = release.pretrain(f"{GROUPED} {save}", tmp_path, 1)
    (folder / "latest_checkpointed_iteration.txt").write_text("2")
    again = f"--load {folder} --ckpt-format torch_dist --exit-interval 4"
    shared = release.pretrain(f"{GROUPED} {again} {LAYOUTS['pipeline']}", tmp_path, 2)
    assert [i.number for i in alone] == [1, 2, 3, 4] and [i.number for i in shared] == [3, 4]
    # These releases print the mean of the first two losses after a start as the second.
    third, fourth = (i.lm_loss for i in alone[2:])
    assert [i.lm_loss for i in shared] == pytest.approx([third, (third + fourth) / 2], rel=1e-5)
    assert alone[-1].lm_loss < alone[0].lm_loss
