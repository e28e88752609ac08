"""docs/mindspeed_features.md: flags of MindSpeed-LLM 2.3.0 beside the rows that prove them; run this file to write it."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from llm_rows import COMMON, MODELS, NEAR, OWN_LOGITS, ROWS

__all__ = ["OPEN", "OTHER_JOBS", "OWN_LOGITS", "PAGE", "page", "proven"]

PAGE = Path(__file__).resolve().parents[2] / "docs/mindspeed_features.md"

_DEVICE, _UPSTREAM = "needs a device: ", "fails upstream: "
_MODELS = "belongs to a model that no row trains; plain operators, nothing known to be missing"
_OLD = "the old name of a flag above"


def _all(words: str, why: str) -> dict[str, str]:
    return dict.fromkeys(words.split(), why)


# Registered, of training, and in no row: why.
OPEN: dict[str, str] = {
    "--smart-swap": _DEVICE + "replaces torch_npu's allocator by one of its own, compiled against CANN",
    "--optimize-send-recv-comm": _UPSTREAM
    + "its initialize_model_parallel takes an argument less than Core 0.12.1 passes (TypeError)",
    "--o2-optimizer": _UPSTREAM
    + "leaves out its own stand-in for apex.optimizers.FusedSGD, so Apex must be there",
    "--router-gating-in-fp32": _UPSTREAM + "in float32 it frees its own input; not run in bfloat16 yet",
    "--dualpipev-dw-detach": "a variant of --schedules-method dualpipev, not run yet",
    "--moe-unperm2-mem-optim-swap": "a variant of --moe-fb-overlap, not run yet",
    "--moe-zero-memory-num-layers": "a variant of --moe-zero-memory, not run yet",
    "--recompute-norm-num-layers": "a variant of --recompute-norm, not run yet",
    "--recompute-activation-function-num-layers": "a variant of --recompute-activation-function, not run yet",
    "--swap-modules": "a choice of --swap-attention, not run yet",
    "--hccl-ep-group-buffer-adaptive-factor": _DEVICE + "sizes of HCCL's buffers",
    "--alibi-fusion-attn-type": "the kind of bias that the operator makes itself, tested there",
    "--hccl-slice-size": "a size for --disable-gloo-group, not run yet",
    "--coc-mode": "a choice of --use-ascend-coc that follows from its other flags",
    "--mla-fa-divide-qk": "needs --reset-attention-mask, with which MTP of several samples does not fit; not run yet",
    "--padded-base-length": "a size for the padding of MLA, not run yet",
    **_all(
        "--pre-tockens --next-tockens --sparse-mode --interleave-sliding-window", "tested at the operator"
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
    "recovery, by the package mindio_ttp": """--enable-high-availability --enable-hbmfault-repair --enable-worker-reboot
        --distributed-optimizer-no-replica --enable-elastic-training""",
    "the other flavour": "--ai-framework --optimization-level",
}
_LIMITS = """- mc2 and CoC in float32: the linear layer's Function returns a view made inside it, and the cross entropy writes to
  it in place, which PyTorch refuses in the same words ("Output 0 of ... is a view ... modified inplace"). In bfloat16
  the logits are converted first. The rows multiply the logits by one (`--output-multiplier-scale 1.0`).
- MLA with yarn and without `--use-fused-rotary-pos-emb`: the interleaved halves are put in order twice, by
  `multi_latent_attention.py` and by `apply_rotary_pos_emb_bshd`; the losses differ by 4e-4. The rows have the fused one
  on both sides.
- MLA without flash attention on several tensor-parallel processes: `MlaDotProductAttention` sets its width to that of all heads.
- CoC's fused kernels tell a transposed weight from its shape: a square one is multiplied untransposed.
- `--tp-2d` without flash attention: its attention has the heads of one dimension. With `--coc-fused-kernel` it has the ranks of a
  machine of 16 devices written into it.
- `--reset-attention-mask` over a ring with the causal mask divides integers in place, which PyTorch refuses ("result type Float
  can't be cast to the desired output type Long"); with Ulysses it drops tokens unless every document divides evenly.
  `--attention-mask-type general` works over a ring; with Ulysses it stopped, and whose fault that is, is not known yet.
- `--moe-fb-overlap` with MTP wants `--schedules-method dualpipev` ("the patch of forward exist !"), DualPipeV with MTP wants
  `--moe-fb-overlap`; `--moe-tp-extend-ep` does not go with `--use-cpu-initialization`.
- `--use-ascend-coc` imports MindSpeed's tuning tools, with them scikit-learn and what that needs (narwhals), and uses
  none of it.
"""
OTHER_JOBS = {word for words in _JOBS.values() for word in words.split()}


_FULL_COMMAND = {"--num-layer-list", "--use-mc2", "--sliding-window"}


def _words(text: str) -> set[str]:
    return {word for word in text.split() if word.startswith("--")}


def proven() -> set[str]:
    """The flags that some row trains with, or its model, or all."""
    return _words(COMMON).union(
        _FULL_COMMAND, *map(_words, MODELS.values()), *(row.flags for row in ROWS.values())
    )


def _table(head: str, rows: list[tuple[str, ...]]) -> str:
    rule = "|".join("---" for _ in head.split("|"))
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _names(names: list[str]) -> str:
    return f"{len(names)} rows" if len(names) > 4 else "; ".join(names)


def _of_rows() -> list[tuple[str, ...]]:
    """A flag beside the rows that have it on one side, and on both; what all or a model has is not in this table."""
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


def page() -> str:
    jobs = "\n".join(
        f"- {job}: {' '.join(f'`{word}`' for word in words.split())}" for job, words in _JOBS.items()
    )
    return f"""# Flags of MindSpeed-LLM

Made by `python tests/npu/llm_features.py` from [the table of rows](../tests/npu/llm_rows.py), which
[test_mindspeed_llm.py](../tests/npu/test_mindspeed_llm.py) trains with MindSpeed-LLM 2.3.0's own `pretrain_gpt.py`, MindSpeed
2.3.0_core_r0.12.1 and Megatron-LM core_v0.12.1, files unmodified. A row trains a small Qwen2.5, Qwen3, Llama3, Mixtral or
DeepSeek-V3 twice, with some flags and without, on one, two or four processes: in float32 every loss of three steps is the same
within 1e-5, in bfloat16 (which Megatron wants for grouped products) within {NEAR}. A row also names the fused operators that must
have been called. What makes another model, or draws other first weights, is on both sides: that it trains is all its row says.

## Proven

{_table("flag | compared with its absence | on both sides", _of_rows())}
ModelLink's full command is a test of its own, with `--num-layer-list` and with mc2 by its old name `--use-mc2` and by its new one.
MindSpeed-LLM reads the old name when its patches are made already, so that only the new one has an effect (operators are counted).

## In no row

{_table("flag | why", _open())}
## Limits upstream

{_LIMITS}
## Of other jobs than pretraining

{jobs}
"""


if __name__ == "__main__":
    PAGE.write_text(page())
