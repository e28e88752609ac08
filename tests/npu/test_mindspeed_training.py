"""MindSpeed's adaptor and Megatron-LM's pretrain_gpt.py, unmodified, in one process: fused operators change no loss.

MSADAPTER_MEGATRON      a Megatron-LM checkout, core_v0.12.1
MSADAPTER_MINDSPEED     a MindSpeed checkout, 2.3.0_core_r0.12.1
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.megatron.lm_checkout import python_first

ROOT = Path(__file__).resolve().parents[2]
_MODEL = """
--transformer-impl local --no-gradient-accumulation-fusion --no-masked-softmax-fusion --no-persist-layer-norm
--no-bias-dropout-fusion --no-bias-swiglu-fusion --no-rope-fusion --attention-softmax-in-fp32 --num-layers 2
--hidden-size 64 --num-attention-heads 8 --seq-length 64 --max-position-embeddings 64 --micro-batch-size 2
--global-batch-size 4 --lr 1e-3 --min-lr 1e-4 --lr-decay-style cosine --lr-warmup-iters 1 --lr-decay-iters 20
--clip-grad 1.0 --init-method-std 0.02 --attention-dropout 0 --hidden-dropout 0 --tokenizer-type NullTokenizer
--vocab-size 4095 --mock-data --split 99,1,0 --eval-iters 0 --eval-interval 10000 --log-interval 1
--num-workers 0 --seed 1234 --use-cpu-initialization --train-iters 3 --swiglu --normalization RMSNorm
--position-embedding-type rope --group-query-attention --num-query-groups 2 --disable-bias-linear
--untie-embeddings-and-output-weights
"""
MODEL = _MODEL.split()
FUSED = ["--use-flash-attn", "--use-fused-rmsnorm", "--use-fused-swiglu", "--use-fused-rotary-pos-emb"]


@pytest.fixture(scope="module")
def mindspeed() -> Path:
    value = os.environ.get("MSADAPTER_MINDSPEED")
    if not value:
        pytest.skip("needs a MindSpeed checkout (2.3.0_core_r0.12.1): set MSADAPTER_MINDSPEED to its path")
    return Path(value)


def losses(
    folder: Path, megatron: Path, first: str, paths: list[Path], words: list[str], device: str
) -> list[float]:
    """The losses of pretrain_gpt.py, which runs after the code `first`."""
    script = folder / "pretrain_gpt.py"
    script.write_text(
        f"import msadapter\nmsadapter.install()\nimport torch\n{first}\n"
        + (megatron / "pretrain_gpt.py").read_text()
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": ":".join(map(str, [ROOT, megatron, *paths])),
        "PATH": python_first(),
        "MSADAPTER_DEVICE": device,
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
    }
    run = subprocess.run(
        [sys.executable, str(script), *words],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
        timeout=600,
    )
    found = [float(x) for x in re.findall(r"lm loss: (\S+)", run.stdout)]
    assert len(found) == 3, run.stdout[-2000:] + run.stderr[-4000:]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [[], ["--recompute-activation-function", "--recompute-norm"], ["--use-fusion-attn-v2"]]
)
def test_the_loss_is_that_of_megatron_alone(tmp_path, megatron_checkout, mindspeed, more) -> None:
    plain = losses(tmp_path, megatron_checkout, "", [], MODEL, "cuda")
    adaptor = "import mindspeed.megatron_adaptor"
    fused = losses(tmp_path, megatron_checkout, adaptor, [mindspeed], [*MODEL, *FUSED, *more], "npu")
    assert fused == pytest.approx(plain, abs=1e-5)
