"""A Megatron-LM checkout made ready to run, and its log read back."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import patches
from megatron_ms.convert.steps import Progress
from megatron_ms.convert.upstream import cached_helpers
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PYTHON = Path(sys.executable)
PRINTED = 0.001  # Megatron prints gradient norms with three decimals

# The arguments that the reference was recorded with.
_ARGUMENTS = """
--transformer-impl local --no-gradient-accumulation-fusion --no-masked-softmax-fusion --no-bias-gelu-fusion
--no-bias-swiglu-fusion --no-bias-dropout-fusion --no-rope-fusion --no-persist-layer-norm --attention-softmax-in-fp32
--num-layers 4 --hidden-size 128 --num-attention-heads 8 --seq-length 128 --max-position-embeddings 128
--micro-batch-size 2 --global-batch-size 8 --lr 1e-3 --min-lr 1e-4 --lr-decay-style cosine --weight-decay 0.01
--clip-grad 1.0 --adam-beta1 0.9 --adam-beta2 0.95 --init-method-std 0.02
--attention-dropout 0 --hidden-dropout 0 --tokenizer-type NullTokenizer --vocab-size 4095
--make-vocab-size-divisible-by 128 --mock-data --split 99,1,0 --eval-iters 0 --eval-interval 10000 --log-interval 1
--log-throughput --num-workers 0 --seed 1234 --use-cpu-initialization
"""
COMMON = _ARGUMENTS.split()
TWENTY = ["--train-iters", "20", "--lr-warmup-iters", "2", "--lr-decay-iters", "20"]

_LINE = re.compile(
    r"iteration\s+(\d+)/.*lm loss: ([\d.E+-]+) \|.*? loss scale: ([\d.]+) \| grad norm: ([\d.]+)"
)


@dataclass(frozen=True)
class Iteration:
    number: int
    lm_loss: float
    loss_scale: float
    grad_norm: float


def plain_copy(checkout: Path, folder: Path, tests: bool = False) -> Path:
    """A copy of the checkout (`tests`: with its tests). Megatron compiles its data set helper itself when it runs."""
    tree = folder / "megatron-lm"
    left_out = [".git", "__pycache__", "*.so", "docs", *([] if tests else ["tests"])]
    shutil.copytree(checkout, tree, ignore=shutil.ignore_patterns(*left_out))
    return tree


def scratch_copy(checkout: Path, folder: Path, tests: bool = False) -> Path:
    """A copy of the checkout (`tests`: with its tests) with the compiled data set helper. The checkout is not changed."""
    tree = plain_copy(checkout, folder, tests)
    build = Path(os.environ.get("MSADAPTER_BUILD", ROOT / "build")) / "tests"
    cached_helpers(tree, build, build / "logs", Progress("Megatron's data set helper", live=False))
    return tree


def ruled_copy(checkout: Path, folder: Path, copy: Callable[[Path, Path], Path] = scratch_copy) -> Path:
    """A copy like that of `copy` with the rules of `patches` applied. The checkout is not changed."""
    upstream, rules = patches.discover("megatron_core")
    patches.apply(upstream, rules, checkout, folder / "rules")
    return copy(folder / "rules", folder)


def environment(tree: Path, processes: int = 1, python: Path = PYTHON, **variables: str) -> dict[str, str]:
    """The environment variables with which the tree's scripts run here."""
    alone = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "RANK": "0",
        "WORLD_SIZE": "1",
        "LOCAL_RANK": "0",
    }
    adapter = {"MSADAPTER_DEVICE": "cuda", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    adapter |= {"OMP_NUM_THREADS": "1"} if processes > 1 else alone
    shim = ROOT / "msadapter" / "alias" / "shim"
    paths = {"PYTHONPATH": os.pathsep.join(map(str, (shim, ROOT, tree))), "PATH": python_first(python)}
    return os.environ | adapter | variables | paths


def python_first(python: Path = PYTHON) -> str:
    """PATH with one Python first, and before it what env.sh of auto_convert.sh has there.

    Megatron's Makefile asks `python3` for the headers of pybind11, and `python3-config` for the name of the library.
    """
    places = (ROOT / "msadapter/alias/shim/bin", python.parent, os.environ.get("PATH", os.defpath))
    return os.pathsep.join(map(str, places))


def without(words: list[str], *options: str) -> list[str]:
    """The words of a command line without these options and their values."""
    kept, dropped = [], False
    for word in words:
        if word.startswith("--"):
            dropped = word in options
        if not dropped:
            kept.append(word)
    return kept


def command(
    cache: Path,
    arguments: list[str],
    processes: int = 1,
    schedule: list[str] = TWENTY,
    python: Path = PYTHON,
    script: str = "pretrain_gpt.py",
    common: list[str] = COMMON,
) -> list[str]:
    """A script of the tree with the arguments of the reference (`common`), and further ones."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", processes]
    start = launcher if processes > 1 else ["-m", "msadapter"]
    words = [
        python,
        *start,
        script,
        *common,
        *schedule,
        "--data-cache-path",
        cache,
        *arguments,
    ]
    return [str(word) for word in words]


def iterations(output: str) -> list[Iteration]:
    """The values that the output contains for each iteration. A skipped iteration has no loss and is left out."""
    return [Iteration(int(m[1]), float(m[2]), float(m[3]), float(m[4])) for m in _LINE.finditer(output)]


def pretrain(
    tree: Path,
    arguments: list[str],
    cache: Path,
    processes: int = 1,
    schedule: list[str] = TWENTY,
    python: Path = PYTHON,
    script: str = "pretrain_gpt.py",
    common: list[str] = COMMON,
    **variables: str,
) -> list[Iteration]:
    """Runs a script of the tree, pretrain_gpt.py by default, and returns the printed values of each iteration."""
    done = subprocess.run(
        command(cache, arguments, processes, schedule, python, script, common),
        cwd=tree,
        env=environment(tree, processes, python, **variables),
        capture_output=True,
        text=True,
        timeout=600,
    )
    output = done.stdout + done.stderr
    assert done.returncode == 0, output[-4000:]
    return iterations(output)


_SPLIT = """
import os, re, sys, torch
source, target, ranks = sys.argv[1], sys.argv[2], int(sys.argv[3])
state = torch.load(source, map_location="cpu", weights_only=False)
experts = 1 + max(int(n) for name in state["model"] for n in re.findall(r"local_experts\\.(\\d+)", name))
for rank in range(ranks):
    model = {}
    for name, value in state["model"].items():
        found = re.search(r"(?<=local_experts\\.)\\d+", name)
        if found is None or int(found[0]) * ranks // experts == rank:
            own = found and str(int(found[0]) % (experts // ranks))
            model[name if found is None else name[:found.start()] + own + name[found.end():]] = value
    os.makedirs(f"{target}/mp_rank_00_{rank:03d}", exist_ok=True)
    torch.save({**state, "model": model}, f"{target}/mp_rank_00_{rank:03d}/model_optim_rng.pt")
"""


def split_experts(tree: Path, source: Path, folder: Path, ranks: int, python: Path = PYTHON) -> Path:
    """A checkpoint of one process in Megatron's torch format, with its experts divided among `ranks` processes."""
    step = next(source.glob("iter_*"))
    (folder / step.name).mkdir(parents=True)
    shutil.copy(source / "latest_checkpointed_iteration.txt", folder)
    script = folder / "split.py"
    script.write_text(_SPLIT)
    words = [
        python,
        "-m",
        "msadapter",
        script,
        step / "mp_rank_00/model_optim_rng.pt",
        folder / step.name,
        ranks,
    ]
    subprocess.run(
        [str(w) for w in words],
        env=environment(tree, python=python, MSADAPTER_TRITON="1"),
        cwd=tree,
        check=True,
    )
    return folder
