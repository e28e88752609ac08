"""Writes docs/mindspeed_features.md: the flags of MindSpeed-LLM and the rows of tests that prove them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tests.npu import llm_examples, llm_measured
from tests.npu.llm_rows import COMMON, MODELS, NEAR, NEXT_OPEN, NEXT_ROWS, OWN_LOGITS, ROWS

__all__ = ["OPEN", "OTHER_JOBS", "OWN_LOGITS", "PAGE", "page", "proven"]

PAGE = Path(__file__).resolve().parents[2] / "docs/mindspeed_features.md"

_DEVICE, _UPSTREAM = "needs a device: ", "fails upstream: "
_MODELS = "belongs to a model that no row of 2.3.0 trains; not run"
_TRITON = "needs Triton for Ascend; without it MindSpeed-LLM computes the same with ordinary operators"
_OLD = "an old name of a flag of the first table"


def _all(words: str, why: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), why)


# Training flags that MindSpeed-LLM registers and that no row uses -> the reason.
OPEN: dict[str, str] = {
    "--smart-swap": _DEVICE
    + "it replaces torch_npu's allocator with its own, which is compiled against CANN",
    "--optimize-send-recv-comm": _UPSTREAM
    + "its initialize_model_parallel lacks an argument that Core 0.12.1 passes (TypeError)",
    "--o2-optimizer": _UPSTREAM
    + "its stand-in for apex does not contain apex.optimizers.FusedSGD, so it needs Apex itself",
    "--router-gating-in-fp32": _UPSTREAM
    + "in float32 it frees the storage of its own input; not run in bfloat16 yet",
    "--dualpipev-dw-detach": "a variant of --schedules-method dualpipev, not run yet",
    "--moe-unperm2-mem-optim-swap": "a variant of --moe-fb-overlap, not run yet",
    "--moe-zero-memory-num-layers": "a variant of --moe-zero-memory, not run yet",
    "--recompute-norm-num-layers": "a variant of --recompute-norm, not run yet",
    "--recompute-activation-function-num-layers": "a variant of --recompute-activation-function, not run yet",
    "--swap-modules": "an option of --swap-attention, not run yet",
    "--hccl-ep-group-buffer-adaptive-factor": _DEVICE + "it sets the size of HCCL's buffers",
    "--alibi-fusion-attn-type": "the kind of bias that the attention operator itself makes; the operator's tests cover it",
    "--hccl-slice-size": "a size used by --disable-gloo-group, not run yet",
    "--coc-mode": "an option of --use-ascend-coc that is derived from its other flags",
    "--mla-fa-divide-qk": "needs --reset-attention-mask, which does not work with MTP and several samples; not run yet",
    "--padded-base-length": "the padded length of MLA, not run yet",
    **_all(
        "--pre-tockens --next-tockens --sparse-mode --interleave-sliding-window",
        "an option of the attention operator, covered by the operator's tests",
    ),
    **_all("--enable-dsa-indexer --index-n-heads --index-head-dim --index-topk --scale-fmt", _MODELS),
    **_all("--mamba-d-ssm --mamba-chunk-size --mamba-d-conv --mamba-expand", _MODELS),
    **_all(
        "--full-attention-interval --linear-key-head-dim --linear-num-key-heads --linear-num-value-heads"
        " --linear-value-head-dim --partial-rotary-factor",
        _MODELS,
    ),
    "--use-triton-gdn": _TRITON,
    **_all(
        "--input-jitter --attn-logit-softcapping --cla-share-factor --share-kvstates --skip-bias-add"
        " --no-enable-linear-qkv --fc-type --add-dense-bias --add-output-layer-bias --mtp-after-norm"
        " --shared-expert-gate-output-dimension --moe-device-level-aux-loss-coeff --moe-comm-aux-loss-coeff"
        " --longrope-freqs-type --long-factor --short-factor --long-mscale --short-mscale --dynamic-factor"
        " --use-glm-rope"
        " --geglu --gelu-tanh --rmsnorm-weight-in-fp32",
        _MODELS,
    ),
    **_all(
        "--use-deter-comp --cp-attention-mask-type --moe-intermediate-size --n-group --topk-group"
        " --routed-scaling-factor --qk-rope-head-dim --qk-nope-head-dim --multi-head-latent-attention"
        " --rope-scaling-beta-fast --rope-scaling-beta-slow",
        _OLD,
    ),
}
_RECOVERY = "recovery, with injected faults in tests/npu/test_high_availability.py ([what happens](toolkit_recovery.md))"
_JOBS: dict[str, str] = {
    "data": """--no-shuffle --neat-pack --padded-samples --enable-thinking --pad-to-multiple-of --handler-name --streaming
        --hf-datasets-params --datasets --json-keys --split-sentences --keep-newlines --interleave-probs --mix-strategy
        --dataset-dir --overwrite-cache --max-samples --cache-dir --map-keys --pack --script-data-dir --append-eod
        --pad-vocab-size-to --reward-tokens --output-prefix --dataset-impl --workers --n-subs --merge-group-keys
        --tokenizer-name-or-path --tokenizer-not-use-fast --prompt-type --prompt-type-path --tokenizer-padding-side""",
    "fine-tuning, LoRA, DPO": """--dpo-loss-type --is-pairwise-dataset --ref-model --refer-model-iter --dpo-beta
        --dpo-label-smoothing --pref-ftx --use-wandb --is-instruction-dataset --variable-seq-lengths --no-cut-token
        --full-shuffle-instruction-dataset --cut-max-seqlen --dataset-additional-keys --no-pad-to-seq-lengths
        --lora-target-modules --lora-load --lora-r --lora-alpha --lora-modules-to-save --lora-register-forward-hook
        --lora-fusion --lora-ckpt-filter --qlora --qlora-save-dequantize --lu-lora-final-layer-index --lu-lora-lr
        --lu-lora-lr-ratio --stage""",
    "inference, evaluation": """--task --top-p --top-k --temperature --max-length --max-new-tokens --hf-chat-template
        --add-eos-token --use-kv-cache --history-turns --task-data-path --evaluation-batch-size --greedy
        --instruction-template --no-chat-template --eval-language --max-eval-samples --broadcast --alternative-prompt
        --origin-postprocess --chain-of-thought""",
    "checkpoints": "--model-type-hf --mg-save-dir --enable-hf2mg-convert --load-checkpoint-loosely",
    "profiles": """--profile-export-type --profile-level --profile-data-simplification --profile-with-stack
        --profile-with-memory --profile-record-shapes --profile-with-cpu --profile-save-path""",
    _RECOVERY: """--enable-high-availability --enable-hbmfault-repair --enable-worker-reboot
        --distributed-optimizer-no-replica --enable-elastic-training""",
    "choice of the flavour (PyTorch or MindSpore)": "--ai-framework --optimization-level",
}
_LIMITS = """- mc2 and CoC in float32: the linear layer's Function returns a view that was created inside it, and the cross entropy
  writes to this view in place. PyTorch refuses this with the same error ("Output 0 of ... is a view ... modified inplace").
  In bfloat16 the logits are converted first, so the error does not occur. In float32 the rows avoid it by multiplying the
  logits by one (`--output-multiplier-scale 1.0`).
- MLA with yarn and without `--use-fused-rotary-pos-emb`: the interleaved halves are reordered twice, by
  `multi_latent_attention.py` and by `apply_rotary_pos_emb_bshd`, so the losses differ by 4e-4. The rows use the fused form
  in both runs.
- MLA without flash attention and with tensor parallelism: `MlaDotProductAttention` computes its width from all heads instead of
  the heads of its rank.
- CoC's fused kernels detect a transposed weight by its shape, so a square weight is multiplied without being transposed.
- `--tp-2d` without flash attention: the attention uses the number of heads of one dimension only. With `--coc-fused-kernel` the
  ranks of a machine with 16 devices are hard-coded.
- `--reset-attention-mask` with ring attention and the causal mask divides integers in place, which PyTorch refuses ("result type
  Float can't be cast to the desired output type Long"). With Ulysses it drops tokens unless every document divides evenly.
  `--attention-mask-type general` works with ring attention. With Ulysses the run stopped; the cause is not known yet.
- `--moe-fb-overlap` with MTP requires `--schedules-method dualpipev` ("the patch of forward exist !"), and DualPipeV with MTP
  requires `--moe-fb-overlap`. `--moe-tp-extend-ep` cannot be combined with `--use-cpu-initialization`.
- `--use-ascend-coc` imports MindSpeed's tuning tools, and with them scikit-learn and narwhals, but uses none of them.
"""
OTHER_JOBS = {word for words in _JOBS.values() for word in words.split()}


NEXT = "26."  # the tag v26.1.0 calls itself 26.0.0dev0
# What was tried with MindSpeed-LLM 26.1.0, beside the rows -> what is known.
_NEXT: dict[str, str] = {
    "`convert_ckpt_v2.py`": "proven bit for bit there and back for Qwen2.5, with tensor, pipeline, virtual pipeline and uneven "
    "stages, and for Llama 2, Qwen3 and Qwen3 MoE with experts (tests/npu/test_mindspeed_llm_tools.py, with the rule "
    "`exported-queries-keys-and-values` of [patches](patches.md))",
    "`preprocess_data.py`, `posttrain_gpt.py` (SFT), `inference.py` (greedy)": "run by the user stories of the toolkit "
    "(tests/toolkit/stories/test_megatron.py), from an Alpaca file to a chat",
    "`posttrain_gpt.py` (LoRA)": "proven for the families of the toolkit: the merged matrices give the adapter's results "
    "([recipes](toolkit.md))",
    "`posttrain_gpt.py` (packed SFT, DPO), `evaluation.py`": "not run",
    "`convert_ckpt.py` beyond TP 2, `inference.py` with samples or beams": "not run",
    "`train_fsdp2.py`, `inference_fsdp2.py`, `pretrain_mamba.py`, `rlhf_gpt.py`": "not run",
}


# Flags that are new in 26.1.0 -> their state.
NEXT_FLAGS: dict[str, str] = {
    "used by a row above": """--compress-ratios --compress-rope-theta --enable-mhc --enable-mla-scale-kv-lora
        --enable-mla-scale-q-lora --hc-mult --indexer-loss-coeff --kv-compress --loss-chunk-size --loss-compute-mode
        --max-batch-size --mtp-spec --n-hash-layers --num-zero-experts --o-groups --o-lora-rank --original-seq-len
        --rope-factor --sliding-window-size --use-fused-lightning-indexer --use-fused-lightning-indexer-loss
        --use-sparse-flash-attn --enable-mla-absorb --init-norm-weight-in-fp32 --apply-rope-no-in-complex
        --index-skip-topk-offset --index-topk-freq""",
    "ask for operators of a device, in Triton for Ascend or in MindSpeed's own C++; without them the same is computed by ordinary "
    "operators": "--use-fused-mhc --use-triton-mhc",
    "not run": """--apply-wd-to-qk-layernorm --drop-thinking --enable-mg2hf-convert
        --fix-sub-seq-length --fp8-reuse-quantized-weight --hc-eps --hc-sinkhorn-iters --hccl-op-mode
        --hf-cfg-dir --hf-save-dir --layerwise-disaggregated-training
        --index-share-for-mtp-iteration
        --index-topk-pattern --moe-alltoall-mc2 --muon-coefficient-type
        --muon-extra-scale-factor --muon-fp32-matmul-prec --muon-momentum --muon-nesterov --muon-no-split-qkv
        --muon-num-ns-steps --muon-scalar-optimizer --muon-scale-mode --muon-tp-mode --no-use-gmm-fp8
        --no-use-sparse-c8-indexer --npu-datadump --only-convert-last-checkpoint --pipeline-model-parallel-layout
        --qat-scheme --quant-grads --quant-states --reasoning-effort --rope-theta --save-layer-by-layer
        --save-lora-to-hf --swiglu-limit --te-comparison-with-bf16 --te-comparison-with-cpu --te-gmm-mode
        --use-global-aux-loss""",
}
# Flags of 2.3.0 that 26.1.0 does not have.
GONE = {"--mtp-after-norm", "--qlora", "--qlora-save-dequantize"}
_FULL_COMMAND = {"--num-layer-list", "--use-mc2", "--sliding-window"}


def _words(text: str) -> set[str]:
    return {word for word in text.split() if word.startswith("--")}


def proven() -> set[str]:
    """The flags that a row uses: its own, those of its model, and the common ones."""
    return _words(COMMON).union(
        _FULL_COMMAND, *map(_words, MODELS.values()), *(row.flags for row in ROWS.values())
    )


def _table(head: str, rows: list[tuple[str, ...]]) -> str:
    rule = "|".join("---" for _ in head.split("|"))
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _names(names: list[str]) -> str:
    return f"{len(names)} rows" if len(names) > 4 else "; ".join(names)


def _of_rows() -> list[tuple[str, ...]]:
    """(flag, rows that use it in one of their two runs, rows that use it in both). Common and model flags are left out."""
    everywhere = _words(COMMON).union(*map(_words, MODELS.values()))
    one, both = defaultdict(list), defaultdict(list)
    for name, row in ROWS.items():
        shared = _words(row.layout)
        for flag in row.flags - everywhere:
            (both if flag in shared else one)[flag].append(name)
    return [(f"`{flag}`", _names(one[flag]), _names(both[flag])) for flag in sorted({*one, *both})]


def _open() -> list[tuple[str, ...]]:
    reasons: dict[str, list[str]] = {}
    for flag, why in OPEN.items():
        reasons.setdefault(why, []).append(f"`{flag}`")
    return [(" ".join(flags), why) for why, flags in reasons.items()]


def _next() -> list[tuple[str, ...]]:
    """(row, largest difference of a loss, day) of every row of 26.1.0; a row that was not measured says so."""
    measured = {row.row: row for row in llm_measured.read() if row.release.startswith(NEXT)}
    rows = []
    for name in [*NEXT_ROWS, *map(llm_examples.row_of, llm_examples.SCRIPTS), *ROWS]:
        if name in measured:
            rows.append((name, measured[name].difference, measured[name].day))
        elif name not in ROWS:
            rows.append((name, NEXT_OPEN.get(name, "not measured"), ""))
    return rows


def page() -> str:
    jobs = "\n".join(
        f"- {job}: {' '.join(f'`{word}`' for word in words.split())}" for job, words in _JOBS.items()
    )
    new = "\n".join(
        f"- {state}: {' '.join(f'`{word}`' for word in words.split())}" for state, words in NEXT_FLAGS.items()
    )
    return f"""# Flags of MindSpeed-LLM

Generated by `python -m tests.npu.llm_features` from a table of test rows (`tests/npu/llm_rows.py`).
`tests/npu/test_mindspeed_llm.py` runs the rows with the `pretrain_gpt.py` of MindSpeed-LLM 2.3.0,
MindSpeed 2.3.0_core_r0.12.1 and Megatron-LM core_v0.12.1, with all their files unmodified.

A row trains a small Qwen2.5, Qwen3, Llama3, Mixtral or DeepSeek-V3 twice on one, two or four processes, once with some flags and
once without. The losses of three steps must be equal within 1e-5 in float32, and within {NEAR} in bfloat16, which Megatron requires
for grouped products. A row also names the fused operators that must have been called. A flag that changes the model or its initial
weights is used in both runs; for such a flag the row only shows that training works.

## Proven flags

{_table("flag | rows that compare with and without it | rows that use it in both runs", _of_rows())}
A separate test runs ModelLink's full command, with `--num-layer-list`, and with mc2 under its old name `--use-mc2` and under its
new name. MindSpeed-LLM reads the old name only after it has chosen its patches, so only the new name has an effect. The test
shows this by counting the calls of operators.

## Flags without a row

{_table("flag | why", _open())}
## Limits of upstream

{_LIMITS}
## Flags of jobs other than pretraining

{jobs}

## MindSpeed-LLM 26.1.0

Over MindSpeed 26.1.0_core_r0.12.1 and Megatron-LM core_v0.12.1, unmodified but for the rules that [patches](patches.md) lists for
this release. Its default layers are MindSpeed's own TransformerEngine (`--transformer-impl transformer_engine`, which needs
`--use-flash-attn`).

Rows with "engine" compare these layers with Megatron's own ones. A row with the name of a script takes the flags of this script of
`examples/mcore`, with toy sizes, on one process in float32: it trains three steps with all of them, and three steps without the
fused operators, recomputation, swapping and other flags that must change no loss. Flags that only bfloat16 or several processes
allow are left out of both (`tests/npu/llm_examples.py` names them). Rows with other names are those of 2.3.0, run on this release.
The number is the largest difference of a loss, of which upstream prints six digits after the point; a row holds if it is at most
1e-5 (in bfloat16 {NEAR}).

{_table("row | largest difference | measured on", _next())}
Flags that are new in this release:

{new}

Other programs:

{_table("program | state", list(_NEXT.items()))}"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
