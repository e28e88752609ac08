"""MindSpeed-LLM's own pretrain_gpt.py, unmodified, with our torchrun: the flags of its examples, small, change no loss.

MSADAPTER_MEGATRON      a Megatron-LM checkout, core_v0.12.1
MSADAPTER_MINDSPEED     a MindSpeed checkout, 2.3.0_core_r0.12.1
MSADAPTER_MINDSPEED_LLM a MindSpeed-LLM checkout, 2.3.0; what its requirements.txt names (datasets, pandas ...) must be
                        importable, from PYTHONPATH for example
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/megatron"))

import lm_checkout  # noqa: E402 its place is known now

_CORPUS = """
import json, sys, numpy, torch
from pathlib import Path
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from tokenizers import Tokenizer, models, pre_tokenizers
folder = Path(sys.argv[1])
builder = IndexedDatasetBuilder(str(folder / "text_document.bin"), dtype=numpy.int32)
random = numpy.random.default_rng(1)
for _ in range(200):
    start, length = int(random.integers(0, 200)), int(random.integers(20, 200))
    document = [(start + 3 * j) % 250 + 2 for j in range(length)] + [1]
    builder.add_document(torch.tensor(document, dtype=torch.int32), [len(document)])
builder.finalize(str(folder / "text_document.idx"))
# The filler is a word of its own: Megatron zeroes its places in a mask that one process keeps from sample to sample.
words = {"<unk>": 0, "<eos>": 1, "<pad>": 255} | {f"w{i}": i + 2 for i in range(253)}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
(folder / "tokenizer").mkdir()
tokenizer.save(str(folder / "tokenizer/tokenizer.json"))
special = {"eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>"}
(folder / "tokenizer/tokenizer_config.json").write_text(
    json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 4096, **special}))
"""

COMMON = """
--use-mcore-models --seq-length 64 --max-position-embeddings 64 --micro-batch-size 2 --global-batch-size 8 --lr 1e-3
--min-lr 1e-4 --lr-decay-style cosine --lr-warmup-fraction 0.1 --weight-decay 1e-1 --clip-grad 1.0 --adam-beta1 0.9
--adam-beta2 0.95 --init-method-std 0.02 --attention-dropout 0.0 --hidden-dropout 0.0 --tokenizer-type PretrainedFromHF
--make-vocab-size-divisible-by 1 --padded-vocab-size 256 --no-gradient-accumulation-fusion --no-masked-softmax-fusion
--attention-softmax-in-fp32 --split 100,0,0 --log-interval 1 --save-interval 2000 --eval-interval 2000 --eval-iters 0
--no-load-optim --no-load-rng --no-save-optim --no-save-rng --seed 1234 --train-iters 3 --num-workers 0
--distributed-backend nccl --log-throughput --no-shared-storage --use-cpu-initialization --disable-bias-linear --swiglu
--normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights
"""
_HEADS = "--hidden-size 64 --num-attention-heads 8 --group-query-attention --num-query-groups 4"
# The geometry of examples/mcore (Mixtral: of tests/poc/mixtral_8x7b), small.
MODELS = {
    "qwen25": f"--num-layers 2 {_HEADS} --ffn-hidden-size 176 --add-qkv-bias --norm-epsilon 1e-6 --rotary-base 1000000",
    "qwen3": f"""--num-layers 2 {_HEADS} --ffn-hidden-size 192 --kv-channels 16 --norm-epsilon 1e-6 --rotary-base 1000000
        --spec mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec --qk-layernorm""",
    "llama3": f"""--num-layers 2 {_HEADS} --ffn-hidden-size 224 --norm-epsilon 1e-5 --rotary-base 500000
        --use-rotary-position-embeddings""",
    "mixtral": f"""--num-layers 2 {_HEADS} --ffn-hidden-size 224 --rotary-base 1000000 --num-experts 8
        --moe-router-topk 2 --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 0.02 --moe-layer-freq -1
        --first-k-dense-replace -1""",
    # The fused rotary embedding is in both: MindSpeed-LLM's own unfused path for MLA puts the halves in another order.
    "deepseek3": """--num-layers 2 --hidden-size 64 --num-attention-heads 8 --ffn-hidden-size 176 --norm-epsilon 1e-6
        --spec mindspeed_llm.tasks.models.spec.deepseek_spec layer_spec --multi-latent-attention --qk-pos-emb-head-dim 8
        --qk-head-dim 16 --q-lora-rank 24 --kv-lora-rank 16 --v-head-dim 16 --qk-layernorm --moe-router-dtype fp32
        --moe-token-dispatcher-type alltoall --first-k-dense-replace 1 --moe-layer-freq 1 --n-shared-experts 1
        --num-experts 8 --moe-router-topk 4 --moe-ffn-hidden-size 32 --moe-router-load-balancing-type none
        --moe-router-num-groups 4 --moe-router-group-topk 2 --moe-router-topk-scaling-factor 2.5
        --moe-aux-loss-coeff 0.0001 --seq-aux --norm-topk-prob --moe-router-score-function sigmoid
        --moe-router-enable-expert-bias --mtp-num-layers 1 --mtp-loss-scaling-factor 0.3 --beta-fast 32 --beta-slow 1
        --rope-scaling-factor 40 --rope-scaling-mscale 1.0 --rope-scaling-mscale-all-dim 1.0 --rotary-base 10000
        --rope-scaling-original-max-position-embeddings 64 --rope-scaling-type yarn --use-fused-rotary-pos-emb""",
}
FUSED = "--use-flash-attn --use-fused-swiglu --use-fused-rmsnorm --use-fused-rotary-pos-emb"
OVERLAP = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
FULL = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
TENSOR, PIPELINE = "--tensor-model-parallel-size 2 --sequence-parallel", "--pipeline-model-parallel-size 2"
EXPERT = "--expert-model-parallel-size 2"
RING, ULYSSES = "--context-parallel-algo megatron_cp_algo", "--context-parallel-algo ulysses_cp_algo"
CONTEXT = "--context-parallel-size"
SEQ = "--moe-permutation-async-comm --moe-token-dispatcher-type alltoall_seq"
PERMUTE = "--moe-permutation-async-comm --moe-permute-fusion"


@dataclass(frozen=True)
class Row:
    """`fused` beside `layout` alone, on as many processes; `alone`: beside one process, from its checkpoint."""

    model: str
    processes: int
    layout: str
    fused: str = FUSED
    alone: bool = False


ROWS = {
    "qwen25": Row("qwen25", 1, ""),
    "qwen25, recomputed": Row("qwen25", 1, "", f"{FUSED} {OVERLAP} {FULL}"),
    "qwen25, data": Row("qwen25", 2, "", f"{FUSED} {OVERLAP}"),
    "qwen25, tensor": Row("qwen25", 2, TENSOR),
    # A factor of one: in float32 the cross entropy writes to logits that are a view made by mc2, which PyTorch refuses.
    "qwen25, mc2": Row("qwen25", 2, TENSOR, f"{FUSED} --use-ascend-mc2 --output-multiplier-scale 1.0"),
    "qwen25, pipeline": Row("qwen25", 2, PIPELINE),
    "qwen25, tensor and pipeline": Row("qwen25", 4, f"{TENSOR} {PIPELINE}", f"{FUSED} {FULL}"),
    "qwen25, ring": Row("qwen25", 2, "", f"{FUSED} {CONTEXT} 2 {RING}", alone=True),
    "qwen25, ulysses": Row("qwen25", 2, "", f"{FUSED} {CONTEXT} 2 {ULYSSES}", alone=True),
    "qwen25, ulysses of four": Row("qwen25", 4, "", f"{FUSED} {CONTEXT} 4 {ULYSSES} {OVERLAP}", alone=True),
    "qwen25, ring of four": Row("qwen25", 4, "", f"{FUSED} {CONTEXT} 4 {RING} --use-fused-ring-attention-update", alone=True),
    "qwen3": Row("qwen3", 1, ""),
    "qwen3, tensor and data": Row("qwen3", 4, TENSOR, f"{FUSED} {OVERLAP} {FULL}"),
    "llama3": Row("llama3", 1, ""),
    "llama3, tensor": Row("llama3", 2, TENSOR),
    "llama3, tensor, pipeline": Row("llama3", 4, f"{TENSOR} {PIPELINE}"),
    "mixtral": Row("mixtral", 1, "", f"{FUSED} {SEQ}"),
    "mixtral, experts": Row("mixtral", 2, EXPERT, f"{FUSED} {SEQ} {OVERLAP}"),
    "mixtral, experts and pipeline": Row("mixtral", 4, f"{EXPERT} {PIPELINE}", f"{FUSED} {SEQ}"),
    "deepseek3": Row("deepseek3", 1, "", f"{FUSED} {PERMUTE} --mla-fa-without-pad --mtp-mem-efficient-logits {FULL}"),
    "deepseek3, experts": Row("deepseek3", 2, EXPERT, f"{FUSED} {PERMUTE} --use-distributed-optimizer --mla-fa-without-pad"),
    # Flash attention in both: MindSpeed-LLM's own unfused one for MLA does not divide its heads among processes.
    "deepseek3, tensor and experts": Row(
        "deepseek3",
        4,
        f"{TENSOR} --expert-tensor-parallel-size 1 {EXPERT} --use-flash-attn",
        f"{FUSED} {PERMUTE} --use-distributed-optimizer",
    ),
}


class Trainer:
    """Runs pretrain_gpt.py; what ran without fused operators is kept for the next row of the same layout."""

    def __init__(self, folder: Path, megatron: Path, paths: list[Path]):
        self.folder, self.script = folder, paths[0] / "pretrain_gpt.py"
        shim = ROOT / "msadapter/alias/shim"
        outside = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, [shim, ROOT, *paths, megatron, *outside])),
            "MSADAPTER_DEVICE": "npu",
            "CUDA_DEVICE_MAX_CONNECTIONS": "1",
            "OMP_NUM_THREADS": "1",
        }
        self.plain: dict[tuple, list[float]] = {}
        subprocess.run(
            [sys.executable, "-c", f"import torch\n{_CORPUS}", folder], env=self.environment, check=True, cwd=folder
        )

    def losses(self, processes: int, model: str, flags: str) -> list[float]:
        """Of three steps: the language model's loss, and with MTP that of the next layer."""
        data = ["--data-path", self.folder / "text_document", "--tokenizer-name-or-path", self.folder / "tokenizer"]
        launcher = [ROOT / "msadapter/distributed/_torchrun.py", "--standalone", "--nproc-per-node", processes]
        words = [sys.executable, *launcher, self.script, *f"{COMMON} {MODELS[model]} {flags}".split(), *data]
        run = subprocess.run(
            [str(word) for word in words],
            env=self.environment,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
        found = [float(x) for x in re.findall(r"(?:lm|mtp_\d) loss: (\S+)", run.stdout)]
        assert len(found) == (6 if "mtp" in MODELS[model] else 3), run.stdout[-3000:]
        return found

    def without(self, processes: int, model: str, layout: str) -> list[float]:
        """Losses of a model without fused operators."""
        key = processes, model, layout
        if key not in self.plain:
            self.plain[key] = self.losses(*key)
        return self.plain[key]

    def start(self, model: str) -> str:
        """The flags that begin with a checkpoint of one process, which is made first."""
        place = self.folder / f"start-{model}"
        if not place.exists():
            self.losses(1, model, f"--save {place}")
        return f"--load {place} --finetune"


@pytest.fixture(scope="module")
def trainer(tmp_path_factory, megatron_checkout) -> Trainer:
    names = {"MSADAPTER_MINDSPEED_LLM": "MindSpeed-LLM checkout (2.3.0)",
             "MSADAPTER_MINDSPEED": "MindSpeed checkout (2.3.0_core_r0.12.1)"}
    for name, what in names.items():
        if not os.environ.get(name):
            pytest.skip(f"needs a {what}: set {name} to its path")
    for package in ("datasets", "pandas", "tokenizers"):
        pytest.importorskip(package, reason=f"MindSpeed-LLM needs {package}")
    folder = tmp_path_factory.mktemp("mindspeed_llm")
    tree = lm_checkout.scratch_copy(megatron_checkout, folder)
    return Trainer(folder, tree, [Path(os.environ[name]) for name in names])


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_fused_operators_change_no_loss(trainer, row) -> None:
    if row.alone:
        start = trainer.start(row.model)
        plain = trainer.without(1, row.model, start)
        fused = trainer.losses(row.processes, row.model, f"{start} {row.fused}")
    else:
        plain = trainer.without(row.processes, row.model, row.layout)
        fused = trainer.losses(row.processes, row.model, f"{row.layout} {row.fused}")
    assert fused == pytest.approx(plain, abs=1e-5)


@pytest.mark.slow
def test_grouped_products_in_bfloat16(trainer) -> None:
    """Megatron allows --moe-grouped-gemm with bfloat16 alone, and draws other first weights for it: near is enough."""
    plain = trainer.losses(2, "mixtral", f"--bf16 {EXPERT}")
    fused = trainer.losses(2, "mixtral", f"--bf16 {EXPERT} {FUSED} {SEQ} {OVERLAP} --moe-grouped-gemm")
    assert fused == pytest.approx(plain, rel=5e-3)


@pytest.mark.slow
def test_the_full_command_of_modellink(trainer) -> None:
    """Every flag of ModelLink's example, five layers on two stages: it trains as without the fused operators."""
    layers = "--num-layers 5 --num-layer-list 2,3"
    parallel = f"{layers} {TENSOR} {PIPELINE} --use-distributed-optimizer"
    recompute = "--recompute-granularity full --recompute-method block --recompute-num-layers 72"
    more = f"{recompute} {FUSED} --overlap-grad-reduce --overlap-param-gather --use-mc2 --sliding-window 4096"
    plain = trainer.losses(4, "llama3", parallel)
    assert trainer.losses(4, "llama3", f"{parallel} {more}") == pytest.approx(plain, abs=1e-5)
