"""MindSpeed-LLM's example scripts as small trainings: a script's own flags, with toy sizes, on one or two processes.

A script of `examples/mcore` is executed with a `torchrun` and a `python` that write down their arguments. The names of the flags
that a toy keeps are in example_flags.tsv, for the page of flags:

    python -m tests.npu.llm_examples MINDSPEED_LLM    # writes them again from a checkout
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

Flags = dict[str, list[str]]

_LAUNCHER = """#!/usr/bin/env python3
import json, os, sys
with open(os.environ["MSADAPTER_ARGUMENTS"], "w") as file:
    json.dump(sys.argv[1:], file)
"""

#: Flags of a script that a small training on a CPU has no use for: paths, sizes of its cluster, the schedule of its pipeline,
#: and 16-bit types with what Megatron allows with them alone.
_LEFT_OUT = """--load --save --data-path --tokenizer-name-or-path --tokenizer-model --tokenizer-type --vocab-size --hf-cfg-dir
--tensorboard-dir --num-layer-list --noop-layers --num-layers-per-virtual-pipeline-stage --schedules-method --moe-fb-overlap
--pipeline-model-parallel-size --tensor-model-parallel-size --expert-model-parallel-size --expert-tensor-parallel-size
--context-parallel-size --context-parallel-algo --sequence-parallel --moe-tp-extend-ep --bf16 --fp16 --moe-grouped-gemm
--reuse-fp32-param --initial-loss-scale --gemm-gradient-accumulation-fusion --enable-hf2mg-convert --enable-mg2hf-convert
--model-type-hf --handler-name --exit-on-missing-checkpoint --finetune --lr-warmup-iters --lr-warmup-fraction
--lr-decay-iters --router-gating-in-fp32 --use-ascend-mc2 --use-ascend-coc --coc-fused-kernel --moe-alltoall-overlap-comm
--moe-token-dispatcher-type --moe-permutation-async-comm --moe-permute-fusion --use-fused-moe-token-permute-and-unpermute"""
#: Flags of operators that exist for a device alone, in Triton for Ascend or in MindSpeed's own C++. Without them MindSpeed-LLM
#: computes the same with ordinary operators.
_ON_A_DEVICE = """--use-triton-gdn --use-triton-mhc --use-fused-mhc"""
#: Flags of the operators of sparse attention. With compressed keys (DeepSeek-V4) they ask for C++ operators of MindSpeed.
_SPARSE = frozenset(
    ["--use-fused-lightning-indexer", "--use-fused-lightning-indexer-loss", "--use-sparse-flash-attn"]
)
LEFT_OUT = frozenset(_LEFT_OUT.split() + _ON_A_DEVICE.split())

#: Flags that must not change any loss: fused operators, recomputation, swapping, and what concerns memory or time alone.
_FASTER = """--use-flash-attn --use-fused-rmsnorm --use-fused-swiglu --use-fused-rotary-pos-emb --mla-fa-without-pad --mla-mm-split
--mtp-mem-efficient-logits --swap-optimizer --recompute-granularity --recompute-method --recompute-num-layers
--recompute-activation-function --manual-gc --manual-gc-interval --overlap-grad-reduce --overlap-param-gather
--use-distributed-optimizer --shape-order --loss-compute-mode --loss-chunk-size --disable-gloo-group"""
FASTER = frozenset(_FASTER.split())

#: Toy values of the flags that give sizes.
SIZES = {
    "--num-layers": "2", "--hidden-size": "64", "--ffn-hidden-size": "176", "--num-attention-heads": "8",
    "--num-query-groups": "4", "--kv-channels": "16", "--padded-vocab-size": "256", "--seq-length": "64",
    "--max-position-embeddings": "64", "--num-experts": "8", "--moe-ffn-hidden-size": "32",
    "--moe-shared-expert-intermediate-size": "32", "--num-zero-experts": "4", "--q-lora-rank": "24",
    "--kv-lora-rank": "16", "--o-lora-rank": "16", "--v-head-dim": "16", "--qk-head-dim": "16", "--qk-pos-emb-head-dim": "8",
    "--rope-scaling-original-max-position-embeddings": "64", "--interleave-sliding-window": "16",
    "--sliding-window-size": "16", "--index-topk": "16", "--index-n-heads": "8", "--index-head-dim": "16",
    "--linear-key-head-dim": "16", "--linear-num-key-heads": "2", "--linear-num-value-heads": "4",
    "--linear-value-head-dim": "16", "--mamba-chunk-size": "16", "--full-attention-interval": "2", "--hc-mult": "2",
    "--o-groups": "2", "--original-seq-len": "64", "--n-hash-layers": "1", "--query-pre-attn-scalar": "16",
    "--max-batch-size": "2", "--index-topk-freq": "2", "--index-skip-topk-offset": "1",
}  # fmt: skip
#: The largest values of flags that count parts.
AT_MOST = {
    "--first-k-dense-replace": 1,
    "--moe-router-topk": 4,
    "--moe-router-num-groups": 4,
    "--moe-router-group-topk": 2,
}

#: How a toy trains: three steps in float32 from the same weights, as the rows of llm_rows.py do.
_TRAINING = """--micro-batch-size 2 --global-batch-size 4 --lr 1e-3 --min-lr 1e-4 --lr-decay-style cosine
--tokenizer-type PretrainedFromHF --make-vocab-size-divisible-by 1 --padded-vocab-size 256 --train-iters 3 --log-interval 1
--save-interval 2000 --eval-interval 2000 --eval-iters 0 --no-load-optim --no-load-rng --no-save-optim --no-save-rng
--seed 1234 --num-workers 0 --distributed-backend nccl --no-shared-storage --attention-dropout 0.0 --hidden-dropout 0.0
--split 100,0,0 --init-method-std 0.02"""


def pairs(words: Iterable[str]) -> Flags:
    """Flags with their values; of a flag that is given twice, the last."""
    found: Flags = {}
    values: list[str] = []
    for word in words:
        if word.startswith("--"):
            found[word] = values = []
        else:
            values.append(word)
    return found


def words(flags: Flags) -> list[str]:
    return [word for name, values in flags.items() for word in (name, *values)]


def of_script(script: Path, folder: Path) -> tuple[str, Flags]:
    """(the program that an example script starts, its flags). The script runs in `folder`, where it may write."""
    programs, arguments = folder / "bin", folder / "arguments.json"
    programs.mkdir(parents=True, exist_ok=True)
    (folder / "logs").mkdir(exist_ok=True)
    for launcher in ("torchrun", "python"):
        (programs / launcher).write_text(_LAUNCHER)
        (programs / launcher).chmod(0o755)
    arguments.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "MSADAPTER_ARGUMENTS": str(arguments),
    }
    subprocess.run(["bash", str(script)], cwd=folder, env=environment, capture_output=True, timeout=60)
    started = json.loads(arguments.read_text())
    place = next(i for i, word in enumerate(started) if word.endswith(".py"))
    return started[place], pairs(started[place + 1 :])


def small(flags: Flags) -> Flags:
    """The flags of a script with toy sizes, for one process."""
    layers = int(SIZES["--num-layers"])
    left_out = LEFT_OUT | _SPARSE if "--kv-compress" in flags else LEFT_OUT
    toy = {name: list(values) for name, values in flags.items() if name not in left_out}
    for name in toy:
        if name in SIZES:
            toy[name] = [SIZES[name]]
        elif name in AT_MOST:
            toy[name] = [str(min(int(toy[name][0]), AT_MOST[name]))]
        elif name == "--compress-ratios":
            toy[name] = ["4" if ratio != "0" else "0" for ratio in toy[name][1 : layers + 2]]
        elif name in ("--long-factor", "--short-factor"):
            # A factor for each pair of a head's dims.
            pairs_of_head = int(SIZES["--hidden-size"]) // int(SIZES["--num-attention-heads"]) // 2
            toy[name] = [",".join(toy[name][0].split(",")[:pairs_of_head])]
    if {"--multi-latent-attention", "--kv-channels"} <= toy.keys():
        toy["--kv-channels"] = [SIZES["--qk-pos-emb-head-dim"]]  # the size of rotary embeddings
    toy |= pairs(_TRAINING.split())
    if "--use-sparse-flash-attn" in toy:
        toy["--micro-batch-size"] = ["1"]  # MindSpeed-LLM gives the operator the length of one sequence
    return toy


def slower(flags: Flags) -> Flags:
    """The same training without the flags that must not change any loss.

    With multi-head latent attention the fused rotary embedding stays: MindSpeed-LLM's own unfused one reorders the halves twice
    (docs/mindspeed_features.md). Documents are told apart by flash attention alone, and upstream's sparse attention asks for it.
    Absorbed latent attention asks for divided products.
    """
    stays = set()
    if "--multi-latent-attention" in flags:
        stays.add("--use-fused-rotary-pos-emb")
    if {"--reset-attention-mask", "--enable-dsa-indexer"} & flags.keys():
        stays |= {"--use-flash-attn", "--mla-fa-without-pad"}
    if "--enable-mla-absorb" in flags:
        stays.add("--mla-mm-split")
    return {name: values for name, values in flags.items() if name not in FASTER - stays}


def limits(flags: Flags) -> tuple[float, float]:
    """By how much the losses of the first step, and those of the next ones, may differ between faster and slower flags.

    The lightning indexer of DeepSeek Sparse Attention is computed in bfloat16, whatever the type of the model. Rounding errors of
    the weights (1e-8) then change some of its values by a whole unit in the last place of bfloat16, and with them now and then
    which keys a query attends to. The first step has the same weights on both sides.
    """
    return 1e-5, 1e-4 if "--enable-dsa-indexer" in flags else 1e-5


def row_of(script: str) -> str:
    """The name of a script's row on the page of flags: its folder, which is the model's name."""
    return f"`{script}`"


#: One script for each kind of model of `examples/mcore`.
_SCRIPTS = """deepseek2_lite/pretrain_deepseek2_lite_16b_ptd_16p.sh deepseek3/pretrain_deepseek3_671b_4k_ptd.sh
deepseek32/pretrain_deepseek32_671b_4k_A3_ptd.sh deepseek4_flash/pretrain_deepseek4_flash_4k_A3_ptd.sh
glm5/pretrain_glm5_744b_4k_A3_ptd.sh glm52/pretrain_glm52_744b_4k_A3_ptd.sh
gated_deltanet/pretrain_gated_deltanet_340M_4K_A2_ptd.sh gemma2/pretrain_gemma2_9b_ptd.sh
glm45-air/pretrain_glm45_air_106b_4k_A3_ptd.sh
kimi2/pretrain_kimi2_18b_4k_8p_ptd.sh ling_v2/pretrain_ling_mini_16b_4k_ptd.sh llama2/pretrain_llama2_13b_pack_ptd.sh
longcat/pretrain_longcat_flash_560b_4k_A3_ptd.sh magistral/pretrain_magistral_small_24b_A3_ptd.sh
phi35/pretrain_phi35_mini_A3_ptd.sh phi35/pretrain_phi35_moe_ptd.sh plm/pretrain_plm_1point8b_ptd.sh
qwen25/pretrain_qwen25_72b_32k_ptd.sh qwen3/pretrain_qwen3_0point6b_4K_ptd.sh
qwen3_coder_next/pretrain_qwen3_coder_next_80b_4K_A3_ptd.sh qwen3_moe/pretrain_qwen3_30b_a3b_4K_ptd.sh
qwen3_next/pretrain_qwen3_next_80b_16K_A3_ptd.sh seed_oss/pretrain_seed_oss_36b_ptd_2k_A3.sh"""
SCRIPTS = tuple(_SCRIPTS.split())
#: script -> the flags of its toy.
FLAGS_FILE = Path(__file__).with_name("example_flags.tsv")


def recorded() -> dict[str, set[str]]:
    """The flags of each script's toy, as they were written last."""
    with FLAGS_FILE.open(encoding="utf-8", newline="") as file:
        return {script: set(flags.split()) for script, flags in csv.reader(file, delimiter="\t")}


def record(checkout: Path) -> None:
    rows = []
    for script in SCRIPTS:
        with tempfile.TemporaryDirectory() as folder:
            _, flags = of_script(checkout / "examples/mcore" / script, Path(folder))
        rows.append((script, " ".join(sorted(small(flags)))))
    with FLAGS_FILE.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    record(Path(sys.argv[1]))
