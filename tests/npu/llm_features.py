"""Writes docs/mindspeed_features.md: the flags of MindSpeed-LLM 2.3.0 and the rows of tests that prove them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tests.npu.llm_rows import COMMON, MODELS, NEAR, NEXT_ROWS, OWN_LOGITS, ROWS

__all__ = ["OPEN", "OTHER_JOBS", "OWN_LOGITS", "PAGE", "page", "proven"]

PAGE = Path(__file__).resolve().parents[2] / "docs/mindspeed_features.md"

_DEVICE, _UPSTREAM = "needs a device: ", "fails upstream: "
_MODELS = (
    "belongs to a model that no row trains; it uses ordinary operators, and nothing is known to be missing"
)
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
        " --linear-value-head-dim --partial-rotary-factor --use-triton-gdn",
        _MODELS,
    ),
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


# The rows of NEXT_ROWS that have been run and hold.
NEXT_PROVEN = {"qwen25, engine", "qwen25, engine, tensor"}
# What was tried with MindSpeed-LLM 26.1.0, beside NEXT_ROWS -> what is known.
_TOOLS = "`posttrain_gpt.py` (SFT, packed SFT, LoRA, DPO), `convert_ckpt.py`, `inference.py`, `evaluation.py`, `preprocess_data.py`"
_NEXT: dict[str, str] = {
    "`convert_ckpt_v2.py`": "proven bit for bit there and back for Qwen2.5, with tensor, pipeline, virtual pipeline and uneven "
    "stages; for Llama 2, Qwen3 and Qwen3 MoE with experts everything but queries, keys and values comes back, because "
    "upstream splits their rows group by group for Qwen2.5 alone",
    "flags of the rows above, with `--transformer-impl local`": "not tried one by one",
    _TOOLS: "not tried; the tests of 2.3.0 take this release, too",
    "`train_fsdp2.py`, `inference_fsdp2.py`, `pretrain_mamba.py`, `pretrain_deepseek4.py`, `rlhf_gpt.py`": "not tried",
}


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
    """The rows of 26.1.0 that compare its own engine with Megatron's layers, and what else was tried."""
    tried = [name for name in NEXT_ROWS if name in NEXT_PROVEN]
    rest = [name for name in NEXT_ROWS if name not in NEXT_PROVEN]
    rows = [
        (
            f"`pretrain_gpt.py`: {'; '.join(tried)}",
            "proven: the losses of Megatron's local layers within 1e-5",
        )
    ]
    if rest:
        rows.append((f"`pretrain_gpt.py`: {'; '.join(rest)}", "not tried; the rows are written"))
    return rows + list(_NEXT.items())


def page() -> str:
    jobs = "\n".join(
        f"- {job}: {' '.join(f'`{word}`' for word in words.split())}" for job, words in _JOBS.items()
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

Over MindSpeed 26.1.0_core_r0.12.1 and Megatron-LM core_v0.12.1, all unmodified. Its default layers are MindSpeed's own
TransformerEngine (`--transformer-impl transformer_engine`, which needs `--use-flash-attn`).

{_table("program and rows | state", _next())}"""


if __name__ == "__main__":
    PAGE.write_text(page())
