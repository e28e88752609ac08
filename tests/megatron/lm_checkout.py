"""A Megatron-LM checkout made ready to run, and its log read back."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATASETS = Path("megatron/core/datasets")

# The arguments that the reference was recorded with.
_ARGUMENTS = """
--transformer-impl local --no-gradient-accumulation-fusion --no-masked-softmax-fusion --no-bias-gelu-fusion
--no-bias-swiglu-fusion --no-bias-dropout-fusion --no-rope-fusion --no-persist-layer-norm --attention-softmax-in-fp32
--num-layers 4 --hidden-size 128 --num-attention-heads 8 --seq-length 128 --max-position-embeddings 128
--micro-batch-size 2 --global-batch-size 8 --lr 1e-3 --min-lr 1e-4 --lr-decay-style cosine --lr-warmup-iters 2
--lr-decay-iters 20 --weight-decay 0.01 --clip-grad 1.0 --adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.02
--attention-dropout 0 --hidden-dropout 0 --tokenizer-type NullTokenizer --vocab-size 4095
--make-vocab-size-divisible-by 128 --mock-data --split 99,1,0 --eval-iters 0 --eval-interval 10000 --log-interval 1
--log-throughput --num-workers 0 --seed 1234 --use-cpu-initialization --train-iters 20
"""
COMMON = _ARGUMENTS.split()

_LINE = re.compile(r"iteration\s+(\d+)/.*lm loss: ([\d.E+-]+).*grad norm: ([\d.]+)")


@dataclass(frozen=True)
class Iteration:
    number: int
    lm_loss: float
    grad_norm: float


def scratch_copy(checkout: Path, folder: Path) -> Path:
    """A copy of the checkout with its data set helper compiled; the checkout itself is not touched."""
    tree = folder / "megatron-lm"
    shutil.copytree(
        checkout, tree, ignore=shutil.ignore_patterns(".git", "__pycache__", "*.so", "docs", "tests")
    )
    source = tree / DATASETS / "helpers.cpp"
    pybind = subprocess.run(
        [sys.executable, "-c", "import pybind11; print(pybind11.get_include())"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    library = source.with_name("helpers_cpp" + sysconfig.get_config_var("EXT_SUFFIX"))
    includes = [f"-I{sysconfig.get_paths()['include']}", f"-I{pybind}"]
    command = [
        os.environ.get("CXX", "g++"),
        "-O2",
        "-shared",
        "-std=c++17",
        "-fPIC",
        *includes,
        source,
        "-o",
        library,
    ]
    subprocess.run(command, check=True)
    return tree


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def pretrain(tree: Path, arguments: list[str], cache: Path, processes: int = 1) -> list[Iteration]:
    """Runs the tree's pretrain_gpt.py and returns what it printed of each iteration."""
    alone = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(_free_port()),
        "RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_RANK": "0",
    }
    adapter = {"MSADAPTER_DEVICE": "cuda", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    adapter |= {"OMP_NUM_THREADS": "1"} if processes > 1 else alone
    shim = ROOT / "msadapter" / "alias" / "shim"
    environment = os.environ | adapter | {"PYTHONPATH": os.pathsep.join(map(str, (shim, ROOT, tree)))}
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", processes]
    command = [
        sys.executable,
        *(launcher if processes > 1 else ["-m", "msadapter"]),
        "pretrain_gpt.py",
        *COMMON,
        "--data-cache-path",
        cache,
        *arguments,
    ]
    done = subprocess.run(
        [str(word) for word in command],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    found = _LINE.finditer(output)
    return [Iteration(int(m.group(1)), float(m.group(2)), float(m.group(3))) for m in found]
