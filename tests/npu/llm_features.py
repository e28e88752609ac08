"""Writes docs/mindspeed_features.md: the flags of MindSpeed-LLM and the rows of tests that prove them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from tests.npu import llm_examples, llm_measured
from tests.npu.llm_rows import (
    COMMON,
    MODELS,
    NEAR,
    NEXT_OPEN,
    NEXT_REFUSED,
    NEXT_ROWS,
    OWN_LOGITS,
    ROWS,
)

__all__ = ["NEXT_FLAGS", "OPEN", "OTHER_JOBS", "OWN_LOGITS", "PAGE", "page", "proven"]

PAGE = Path(__file__).resolve().parents[2] / "docs/mindspeed_features.md"

_DEVICE, _UPSTREAM = "needs a device: ", "fails upstream: "
_MODELS = "belongs to a model that no row trains; not run"
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
        "--pre-tockens --next-tockens --sparse-mode",
        "an option of the attention operator, covered by the operator's tests",
    ),
    **_all("--scale-fmt --mamba-d-ssm", _MODELS),
    "--use-triton-gdn": _TRITON,
    **_all(
        "--input-jitter --attn-logit-softcapping --cla-share-factor --share-kvstates --skip-bias-add --fc-type"
        " --mtp-after-norm --shared-expert-gate-output-dimension --moe-device-level-aux-loss-coeff"
        " --moe-comm-aux-loss-coeff --dynamic-factor --use-glm-rope --geglu",
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
_LIMITS = """Those without a release were seen with 2.3.0.

- mc2 and CoC in float32: the linear layer's Function returns a view that was created inside it, and the cross entropy
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
- 26.1.0, engine, latent attention: `MlaTEDotProductAttention` looks for `scale_mask_softmax` with `hasattr(super(), ...)`, which
  never finds it. So the scores are scaled by 1 / sqrt(kv-channels), not by the size of a head and yarn's factor. Dense layers of a
  model with experts (`--first-k-dense-replace`) are normalized twice, by the layer and by the engine's linear layer. With the
  right scale and one norm, the engine has the losses of the local layers to the last digit.
- 26.1.0, Mamba: computes in bfloat16 alone (`expected scalar type BFloat16 but found Float`). With `--use-fused-rmsnorm` and
  several groups on a process, all groups are normalized together, and without it each alone. With pipeline parallelism
  `pretrain_mamba.py` ends with "core_transformer_config_from_args() takes 1 positional argument but 2 were given". With
  `--context-parallel-algo mamba_cp_algo` and several sequences in a microbatch, gradients are wrong: the backward pass of
  `SequenceParallelConvFunction` takes `[0]` of what `aten.silu_backward` returns, the gradient of the first sequence, for all of
  them, so the third loss differs by 4.4e-3. The row has one sequence in a microbatch.
- 26.1.0, `--ckpt-format torch_dist`, its default: a model whose first layers are dense (`--first-k-dense-replace`) cannot be
  saved ("Invalid access pattern"), because its layers are not marked as different; adapters of LoRA
  cannot either. `--ckpt-format torch` works.
- 26.1.0 takes a device whose name it does not know for an Ascend 950, and so the CPU that stands in for one: it calls
  torch_npu's own grouped products, and refuses CoC's fused kernels.
- 26.1.0 refuses by name `--recompute-mla-up-proj` without `--mla-up-proj-tp-overlap`, `--mla-swap-core-attn-out` without DualPipeV,
  and `--moe-alltoall-overlap-comm` without expert parallelism, all of which 2.3.0 trains.
- `--use-ascend-coc` imports MindSpeed's tuning tools, and with them scikit-learn and narwhals, but uses none of them.
"""
OTHER_JOBS = {word for words in _JOBS.values() for word in words.split()}


NEXT = "26."  # the tag v26.1.0 calls itself 26.0.0dev0
# Programs of MindSpeed-LLM 26.1.0 -> "proven", "refused", "fails upstream" or "not tried", and how or why. Tests are in tests/npu.
PROGRAMS: list[tuple[str, str, str]] = [
    (
        "`pretrain_gpt.py`, `pretrain_deepseek4.py`",
        "proven",
        "the rows above",
    ),
    (
        "`pretrain_mamba.py`",
        "proven",
        "the rows above, in bfloat16; pipelines, and context parallelism over several sequences, fail upstream (see the limits)",
    ),
    (
        "`posttrain_gpt.py`, SFT and packed SFT",
        "proven",
        "fused operators with TP 2 have the losses of plain ones on one process, within 1e-5 "
        "(test_mindspeed_llm_tools.py)",
    ),
    (
        "`posttrain_gpt.py`, LoRA",
        "proven",
        "fused operators have the losses of plain ones, and merging changes the matrices of LoRA "
        "alone (test_mindspeed_llm_tools.py); for the families of the toolkit the merged matrices "
        "give the adapter's results ([recipes](toolkit.md))",
    ),
    (
        "`posttrain_gpt.py`, DPO",
        "proven",
        "by the toolkit (tests/toolkit/training/test_dpo.py)",
    ),
    (
        "`train_fsdp2.py`",
        "proven",
        "transformers' Qwen3 and Qwen3 MoE, sharded on two and four processes, have the losses of one process within 1e-5: with "
        "fused operators, recomputed, built on meta, with Ulysses and ring context parallelism, and on texts; a run goes on "
        "from its checkpoint (test_mindspeed_llm_fsdp2.py)",
    ),
    (
        "`train_fsdp2.py`: replicas, tensor parallelism",
        "refused",
        "it asks for as many shards as processes",
    ),
    (
        "`train_fsdp2.py`: expert parallelism",
        "fails upstream",
        "a hook returns a tensor, for which PyTorch, too, raises \"expected tuple, but hook returned 'DTensor'\"",
    ),
    (
        "`convert_ckpt_v2.py`",
        "proven",
        "bit for bit there and back for Qwen2.5, with tensor, pipeline, virtual pipeline and uneven "
        "stages, and for Llama 2, Qwen3 and Qwen3 MoE with experts (test_mindspeed_llm_tools.py, "
        "with the rule `exported-queries-keys-and-values` of [patches](patches.md))",
    ),
    (
        "`convert_ckpt.py`",
        "refused",
        "it asks for transformers 4.57 or older, and the requirements of the same release name 5.2; that of 2.3.0 converts Qwen2.5 "
        "bit for bit there and back, with tensor, pipeline, virtual pipeline and uneven stages (test_mindspeed_llm_tools.py)",
    ),
    (
        "`preprocess_data.py`",
        "proven",
        "what each handler writes is read back as text (test_mindspeed_llm_data.py)",
    ),
    (
        "`preprocess_data.py`, LlamaFactoryInstructionHandler, StackOverflowPythonPretrainHandler",
        "fails upstream",
        "they end with errors in upstream's own code (test_mindspeed_llm_data.py names them)",
    ),
    (
        "`preprocess_data.py`, HunyuanInstructionHandler",
        "not tried",
        "it asks for the tokenizer that comes with Hunyuan's own code",
    ),
    (
        "`inference.py`, greedy, sampling, two beams, two beams with sampling",
        "proven",
        "on one process, with TP 2, PP 2, and both: the words of transformers' generate, and samples "
        "among its most probable words (test_mindspeed_llm_tools.py)",
    ),
    (
        "`evaluation.py`: MMLU, CMMLU, C-Eval, AGIEval, BBH, BoolQ, GSM8K with a chain of thought, HumanEval",
        "proven",
        "the shares of right answers of a model that repeats one answer (test_mindspeed_llm_evaluation.py)",
    ),
    (
        "`evaluation.py`: GSM8K without a chain of thought",
        "fails upstream",
        "upstream compares a list with a text, so no answer is right",
    ),
    (
        "`evaluation.py`: mmlu_ppl",
        "fails upstream",
        "it calls batch_encode_plus, which transformers 5 does not have; upstream logs the error",
    ),
    (
        "`evaluation.py`: needlebench",
        "not tried",
        "it draws its texts from data sets that are downloaded",
    ),
    (
        "`inference_deepseek4.py`, `inference_fsdp2.py`, `rlhf_gpt.py`",
        "not tried",
        "no test has been written yet",
    ),
]


# Flags of training that are new in 26.1.0 and that no row uses -> the reason.
NEXT_FLAGS: dict[str, str] = {
    "ask for operators of a device, in Triton for Ascend or in MindSpeed's own C++; without them the same is computed by ordinary "
    "operators": "--use-fused-mhc --use-triton-mhc",
    "not run": """--apply-wd-to-qk-layernorm --drop-thinking --enable-mg2hf-convert
        --fix-sub-seq-length --fp8-reuse-quantized-weight --hc-eps --hc-sinkhorn-iters --hccl-op-mode
        --hf-cfg-dir --hf-save-dir --layerwise-disaggregated-training
                --index-topk-pattern --moe-alltoall-mc2 --muon-coefficient-type
        --muon-extra-scale-factor --muon-fp32-matmul-prec --muon-momentum --muon-nesterov --muon-no-split-qkv
        --muon-num-ns-steps --muon-scalar-optimizer --muon-scale-mode --muon-tp-mode --no-use-gmm-fp8
        --npu-datadump --only-convert-last-checkpoint --pipeline-model-parallel-layout
        --qat-scheme --quant-grads --quant-states --reasoning-effort --rope-theta --save-layer-by-layer
        --save-lora-to-hf --swiglu-limit --te-comparison-with-bf16 --te-comparison-with-cpu --te-gmm-mode
        --use-global-aux-loss""",
}
# Flags of 2.3.0 that 26.1.0 does not have.
GONE = {"--mtp-after-norm", "--qlora", "--qlora-save-dequantize"}
_FULL_COMMAND = {"--num-layer-list", "--use-mc2", "--sliding-window"}


def _words(text: str) -> set[str]:
    return {word for word in text.split() if word.startswith("--")}


def _measured() -> dict[str, llm_measured.Measured]:
    """The rows that were measured with 26.1.0, by name."""
    return {row.row: row for row in llm_measured.read() if row.release.startswith(NEXT)}


def _uses() -> dict[str, tuple[set[str], set[str]]]:
    """row -> (the flags of one of its two runs, those of both). An example script counts the faster flags as those of one."""
    found = {}
    for name, row in (ROWS | NEXT_ROWS).items():
        both = _words(row.layout)
        found[name] = row.flags - both, both
    for script, flags in llm_examples.recorded().items():
        one = flags & llm_examples.FASTER
        found[llm_examples.row_of(script)] = one, flags - one
    return found


def proven() -> set[str]:
    """The flags that a row uses: its own, those of its model, and the common ones."""
    return _words(COMMON).union(
        _FULL_COMMAND, *map(_words, MODELS.values()), *(one | both for one, both in _uses().values())
    )


def _table(head: str, rows: list[tuple[str, ...]]) -> str:
    rule = "|".join("---" for _ in head.split("|"))
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def _names(names: list[str]) -> str:
    return f"{len(names)} rows" if len(names) > 4 else "; ".join(names)


def _of_rows() -> list[tuple[str, ...]]:
    """(flag, rows that use it in one of their two runs, rows that use it in both, newest release with such a row).

    Common and model flags are left out.
    """
    everywhere = _words(COMMON).union(*map(_words, MODELS.values()))
    measured = _measured()
    one, both, newest = defaultdict(list), defaultdict(list), {}
    for name, (compared, shared) in _uses().items():
        for flags, rows in ((compared, one), (shared, both)):
            for flag in flags - everywhere:
                rows[flag].append(name)
                if name in measured:
                    newest[flag] = "26.1.0"
                elif name in ROWS:
                    newest.setdefault(flag, "2.3.0")
    return [
        (f"`{flag}`", _names(one[flag]), _names(both[flag]), newest.get(flag, "not measured"))
        for flag in sorted({*one, *both})
    ]


def _open() -> list[tuple[str, ...]]:
    reasons: dict[str, list[str]] = {}
    for flag, why in OPEN.items():
        reasons.setdefault(why, []).append(f"`{flag}`")
    rows = [(" ".join(flags), why) for why, flags in reasons.items()]
    return rows + [
        (" ".join(f"`{flag}`" for flag in flags.split()), why) for why, flags in NEXT_FLAGS.items()
    ]


def _rows() -> list[tuple[str, ...]]:
    """(row, largest difference of a loss with 26.1.0, day, 2.3.0). A row that does not hold, or was not measured, says so."""
    measured = _measured()
    found = []
    for name in [*ROWS, *NEXT_ROWS, *map(llm_examples.row_of, llm_examples.SCRIPTS)]:
        older = "holds" if name in ROWS else ""
        if name in measured:
            found.append((name, measured[name].difference, measured[name].day, older))
        else:
            refused = f"26.1.0 refuses it: {NEXT_REFUSED[name]}" if name in NEXT_REFUSED else "not measured"
            found.append((name, NEXT_OPEN.get(name, refused), "", older))
    return found


def page() -> str:
    jobs = "\n".join(
        f"- {job}: {' '.join(f'`{word}`' for word in words.split())}" for job, words in _JOBS.items()
    )
    return f"""# Flags and programs of MindSpeed-LLM

Generated by `python -m tests.npu.llm_features` from tables of test rows (`tests/npu/llm_rows.py`, `tests/npu/llm_examples.py`) and
from what was measured (`tests/npu/llm_measured.tsv`). `bash tests/upstreams.sh FOLDER --llm tests/npu -k mindspeed_llm` runs all.

The release is **MindSpeed-LLM 26.1.0** over MindSpeed 26.1.0_core_r0.12.1 and Megatron-LM core_v0.12.1, as
`auto_convert.sh llm` makes them: unmodified but for the rules that [patches](patches.md) lists. Where this page speaks of
2.3.0, it is MindSpeed-LLM 2.3.0 over MindSpeed 2.3.0_core_r0.12.1, with all files unmodified.

A row trains a small model twice on one, two or four processes, once with some flags and once without. The losses of three steps
must be equal within 1e-5 in float32, and within {NEAR} in bfloat16, which Megatron requires for grouped products. A row also names
the fused operators that must have been called. A flag that changes the model or its initial weights is used in both runs; for
such a flag the row only shows that training works.

## Rows

Rows with "engine" compare MindSpeed's own TransformerEngine, the default layers of 26.1.0 (`--transformer-impl
transformer_engine`), with Megatron's local ones, which the other rows use. Rows with "mamba" train `pretrain_mamba.py`. A row with
the name of a script takes the flags of this script of `examples/mcore`, with toy sizes, on one process in float32: it trains three
steps with all of them, and three steps without the fused operators, recomputation, swapping and other flags that must change no
loss. Flags that only bfloat16 or several processes allow are left out of both (`tests/npu/llm_examples.py` names them). With
`--enable-dsa-indexer` the losses after the first step may differ by 1e-4: upstream computes the indexer in bfloat16, so that
rounding errors of the weights can change which keys a query attends to.

The number is the largest difference of a loss with 26.1.0, of which upstream prints six digits after the point. The last column
says which rows also hold with 2.3.0; they were run when they were added, and their numbers were not kept.

{_table("row | largest difference | measured on | 2.3.0", _rows())}
## Proven flags

The last column is the newest release with which a row that uses the flag holds.

{_table("flag | rows that compare with and without it | rows that use it in both runs | release", _of_rows())}
A separate test runs ModelLink's full command, with `--num-layer-list`, and with mc2 under its old name `--use-mc2` and under its
new name. MindSpeed-LLM reads the old name only after it has chosen its patches, so only the new name has an effect. The test
shows this by counting the calls of operators.

## Flags without a row

{_table("flag | why", _open())}
## Programs

Of 26.1.0. What is "proven" is a test. "Refused" means that the program ends with an error that names the reason, and "fails
upstream" that its own code has a fault, which the test or the last column names.

{_table("program | state | how, or why not", PROGRAMS)}
## Limits of upstream

{_LIMITS}
## Flags of jobs other than pretraining

{jobs}
"""


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
