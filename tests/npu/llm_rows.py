"""What test_mindspeed_llm.py trains: MindSpeed-LLM's models, small, and the flags of its examples, a row each.

docs/mindspeed_features.md is made from this table.
"""

from __future__ import annotations

from dataclasses import dataclass

COMMON = """
--use-mcore-models --seq-length 64 --max-position-embeddings 64 --micro-batch-size 2 --global-batch-size 8 --lr 1e-3
--min-lr 1e-4 --lr-decay-style cosine --lr-warmup-fraction 0.1 --weight-decay 1e-1 --clip-grad 1.0 --adam-beta1 0.9
--adam-beta2 0.95 --init-method-std 0.02 --attention-dropout 0.0 --hidden-dropout 0.0 --tokenizer-type PretrainedFromHF
--make-vocab-size-divisible-by 1 --padded-vocab-size 256 --no-gradient-accumulation-fusion --no-masked-softmax-fusion
--attention-softmax-in-fp32 --split 100,0,0 --log-interval 1 --save-interval 2000 --eval-interval 2000 --eval-iters 0
--no-load-optim --no-load-rng --no-save-optim --no-save-rng --seed 1234 --train-iters 3 --num-workers 0
--distributed-backend nccl --log-throughput --no-shared-storage --disable-bias-linear --swiglu
--normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights
"""
_HEADS = "--hidden-size 64 --num-attention-heads 8 --group-query-attention --num-query-groups 4"
_DEEPSEEK = """--hidden-size 64 --num-attention-heads 8 --ffn-hidden-size 176 --norm-epsilon 1e-6
    --spec mindspeed_llm.tasks.models.spec.deepseek_spec layer_spec --multi-latent-attention --qk-pos-emb-head-dim 8
    --qk-head-dim 16 --q-lora-rank 24 --kv-lora-rank 16 --v-head-dim 16 --qk-layernorm --moe-router-dtype fp32
    --moe-token-dispatcher-type alltoall --first-k-dense-replace 1 --moe-layer-freq 1 --n-shared-experts 1
    --num-experts 8 --moe-router-topk 4 --moe-ffn-hidden-size 32 --moe-router-load-balancing-type none
    --moe-router-num-groups 4 --moe-router-group-topk 2 --moe-router-topk-scaling-factor 2.5
    --moe-aux-loss-coeff 0.0001 --seq-aux --norm-topk-prob --moe-router-score-function sigmoid
    --moe-router-enable-expert-bias --beta-fast 32 --beta-slow 1
    --rope-scaling-factor 40 --rope-scaling-mscale 1.0 --rope-scaling-mscale-all-dim 1.0 --rotary-base 10000
    --rope-scaling-original-max-position-embeddings 64 --rope-scaling-type yarn --use-fused-rotary-pos-emb"""
_MAMBA = f"""{_HEADS} --ffn-hidden-size 176 --spec mindspeed_llm.tasks.models.spec.mamba_spec layer_spec
    --mamba-num-groups 1 --mamba-chunk-size 16 --mamba-state-dim 16 --mamba-d-conv 4 --mamba-expand 2 --mamba-head-dim 16
    --norm-epsilon 1e-6 --position-embedding-type none"""
# The geometry of examples/mcore (Mixtral: of tests/poc/mixtral_8x7b), small.
MODELS = {
    "qwen25": f"--num-layers 2 {_HEADS} --ffn-hidden-size 176 --add-qkv-bias --norm-epsilon 1e-6 --rotary-base 1000000",
    "qwen3": f"""--num-layers 2 {_HEADS} --ffn-hidden-size 192 --kv-channels 16 --norm-epsilon 1e-6 --rotary-base 1000000
        --spec mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec --qk-layernorm""",
    "qwen3 moe": f"""--num-layers 2 {_HEADS} --ffn-hidden-size 192 --kv-channels 16 --norm-epsilon 1e-6
        --rotary-base 1000000 --spec mindspeed_llm.tasks.models.spec.qwen3_spec layer_spec --qk-layernorm
        --norm-topk-prob --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 48
        --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 0.001""",
    "llama3": f"""--num-layers 2 {_HEADS} --ffn-hidden-size 224 --norm-epsilon 1e-5 --rotary-base 500000
        --use-rotary-position-embeddings""",
    "mixtral": f"""--num-layers 2 {_HEADS} --ffn-hidden-size 224 --rotary-base 1000000 --num-experts 8
        --moe-router-topk 2 --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 0.02 --moe-layer-freq -1
        --first-k-dense-replace -1""",
    # The fused rotary embedding is in both: MindSpeed-LLM's own unfused path for MLA puts the halves in another order.
    "deepseek3": f"--num-layers 2 {_DEEPSEEK} --mtp-num-layers 1 --mtp-loss-scaling-factor 0.3",
    "deepseek3 without mtp": f"--num-layers 2 {_DEEPSEEK}",
    # Of tests/pipeline/legacy/mamba2. The pattern of the hybrid has attention and MLP between two layers of state space.
    "mamba": f"--num-layers 2 {_MAMBA}",
    "mamba hybrid": f"--num-layers 4 {_MAMBA} --hybrid-override-pattern M*-M",
}
# The program of a model, if it is not pretrain_gpt.py.
PROGRAMS = {"mamba": "pretrain_mamba.py", "mamba hybrid": "pretrain_mamba.py"}
FUSED = "--use-flash-attn --use-fused-swiglu --use-fused-rmsnorm --use-fused-rotary-pos-emb"
OVERLAP = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
FULL = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
TENSOR, PIPELINE = "--tensor-model-parallel-size 2 --sequence-parallel", "--pipeline-model-parallel-size 2"
VIRTUAL = f"{PIPELINE} --num-layers 4 --num-layers-per-virtual-pipeline-stage 1"
EXPERT = "--expert-model-parallel-size 2"
RING, ULYSSES = "--context-parallel-algo megatron_cp_algo", "--context-parallel-algo ulysses_cp_algo"
CONTEXT = "--context-parallel-size"
RESET = "--reset-attention-mask --micro-batch-size 1 --use-flash-attn"
SEQ = "--moe-permutation-async-comm --moe-token-dispatcher-type alltoall_seq"
PERMUTE = "--moe-permutation-async-comm --moe-permute-fusion"
# Megatron allows grouped products with bfloat16 alone: they are on both sides, and the results are near.
GROUPED = "--bf16 --use-distributed-optimizer --moe-grouped-gemm"
NEAR = 2e-4
# In float32 the cross entropy writes to logits that are a view made by a Function, which PyTorch refuses.
OWN_LOGITS = "--output-multiplier-scale 1.0"

ATTENTION, SWIGLU, NORM = "npu_fusion_attention", "npu_swiglu", "npu_rms_norm"


@dataclass(frozen=True)
class Row:
    """Compares `layout` with the flags `fused` and `layout` without them, on as many processes.

    Attributes: alone: compare with one process, from the same checkpoint. operators: fused operators that process 0 must call;
    for an extension of MindSpeed, `extension.name`. tolerance: the absolute tolerance of each loss.
    """

    model: str
    processes: int
    layout: str
    fused: str
    alone: bool = False
    operators: tuple[str, ...] = (ATTENTION, NORM)
    tolerance: float = 1e-5

    @property
    def flags(self) -> set[str]:
        words = f"{self.layout} {self.fused}".split()
        return {word for word in words if word.startswith("--")}


DENSE = {
    "qwen25, recomputed": Row("qwen25", 1, "", f"{FUSED} {OVERLAP} {FULL}"),
    "qwen25, parts recomputed": Row(
        "qwen25",
        1,
        "",
        f"{FUSED} --recompute-activation-function --recompute-norm --npu-deterministic --use-fusion-attn-v2"
        " --optimizer-selection fused_ema_adamw --ema-decay 0.99 --hccl-group-buffer-adaptive",
    ),
    # Long enough for tensors of a size that is worth a swap to upstream: 512 KiB.
    "qwen25, attention swapped": Row(
        "qwen25",
        1,
        "--seq-length 1024 --max-position-embeddings 1024",
        f"{FUSED} --swap-attention --recompute-method block --recompute-num-layers 1",
    ),
    "qwen25, custom FSDP": Row(
        "qwen25",
        2,
        "--use-distributed-optimizer",
        f"{FUSED} --use-custom-fsdp --data-parallel-sharding-strategy optim_grads_params",
    ),
    "qwen25, data": Row("qwen25", 2, "", f"{FUSED} {OVERLAP} --disable-gloo-group"),
    "qwen25, mc2": Row(
        "qwen25",
        2,
        TENSOR,
        f"{FUSED} --use-ascend-mc2 {OWN_LOGITS}",
        operators=(ATTENTION, "npu_all_gather_base_mm", "npu_mm_reduce_scatter_base"),
    ),
    "qwen25, coc": Row("qwen25", 2, TENSOR, f"{FUSED} --use-ascend-coc --coc-parallel-num 2 {OWN_LOGITS}"),
    # Heads by which no weight is square: upstream tells a transposed weight from its shape alone.
    "qwen25, coc fused": Row(
        "qwen25",
        2,
        f"{TENSOR} --num-query-groups 8",
        f"{FUSED} --use-ascend-coc --coc-fused-kernel {OWN_LOGITS}",
        operators=(
            ATTENTION,
            "lcal.all_gather_matmul",
            "lcal.all_gather_matmul_v2",
            "lcal.matmul_reduce_scatter",
        ),
    ),
    "qwen25, tensor and pipeline": Row("qwen25", 4, f"{TENSOR} {PIPELINE}", f"{FUSED} {FULL}"),
    "qwen25, ring": Row(
        "qwen25",
        2,
        "",
        f"{FUSED} {CONTEXT} 2 {RING} --use-cp-send-recv-overlap --use-fused-ring-attention-update --megatron-cp-in-bnsd"
        " --context-parallel-kv-cache-policy half --context-parallel-cache-interval 1",
        alone=True,
        operators=(ATTENTION, "npu_ring_attention_update.npu_ring_attention_update"),
    ),
    "qwen25, documents apart on a ring": Row(
        "qwen25", 2, RESET, f"{FUSED} {CONTEXT} 2 {RING} --attention-mask-type general", alone=True
    ),
    "qwen25, double ring of four": Row(
        "qwen25",
        4,
        "",
        f"{FUSED} {CONTEXT} 4 {RING} --cp-window-size 2 --context-parallel-kv-cache-policy full",
        alone=True,
    ),
    "qwen25, ulysses of four": Row(
        "qwen25", 4, "", f"{FUSED} {CONTEXT} 4 {ULYSSES} --use-ulysses-allgather-kv {OVERLAP}", alone=True
    ),
    "qwen25, hybrid of four": Row(
        "qwen25",
        4,
        "",
        f"{FUSED} {CONTEXT} 4 --context-parallel-algo hybrid_cp_algo --ulysses-degree-in-cp 2",
        alone=True,
    ),
    "qwen25, parameters shared with bfloat16": Row(
        "qwen25", 2, f"--bf16 {FUSED} --use-distributed-optimizer", "--reuse-fp32-param", tolerance=NEAR
    ),
    "qwen25, optimizer swapped": Row(
        "qwen25",
        2,
        f"--bf16 {FUSED} --use-distributed-optimizer",
        "--swap-optimizer --swap-optimizer-times 4",
    ),
    "qwen25, virtual optimizer": Row(
        "qwen25", 2, f"--bf16 {FUSED} --use-distributed-optimizer", "--virtual-optimizer all"
    ),
    "qwen25, gradients in bfloat16": Row(
        "qwen25", 1, f"--bf16 {FUSED} --use-distributed-optimizer --o2-gradient", FULL, operators=(ATTENTION,)
    ),
    "qwen25, alibi": Row(
        "qwen25",
        1,
        "--position-embedding-type alibi --square-alibi-mask --fill-neg-inf",
        "--use-flash-attn --use-fused-swiglu --use-fused-rmsnorm",
    ),
    "qwen25, fully sharded": Row(
        "qwen25",
        2,
        f"--bf16 {FUSED} --use-torch-fsdp2 --fsdp2-config-path {{folder}}/fsdp2.yaml"
        " --ckpt-format torch_dist",
        "--npu-deterministic",
    ),
    "qwen3": Row("qwen3", 1, "", FUSED),
    "qwen3, ulysses": Row(
        "qwen3", 2, "", f"{FUSED} {CONTEXT} 2 {ULYSSES} --kv-head-repeat-before-uly-alltoall", alone=True
    ),
    "qwen3, tensor and data": Row("qwen3", 4, TENSOR, f"{FUSED} {OVERLAP} {FULL}"),
    "llama3": Row("llama3", 1, "", FUSED),
    "llama3, scaled rotary embedding": Row(
        "llama3",
        1,
        "--rope-scaling-type llama3 --rope-scaling-factor 8 --low-freq-factor 1 --high-freq-factor 4"
        " --original-max-position-embeddings 32",
        f"{FUSED} --jit-compile",
    ),
    "llama3, parts of Gemma": Row(
        "llama3",
        1,
        # Only the fused attention heeds the scalar of queries.
        "--post-norm --add-rmsnorm-offset --input-embeds-norm --output-logit-softcapping 30 --use-flash-attn"
        " --query-pre-attn-scalar 16 --embedding-multiplier-scale 1.5",
        FUSED,
    ),
    "llama3, parts of MiniCPM": Row(
        "llama3",
        1,
        "--scale-emb 2 --dim-model-base 32 --scale-depth 1.4 --input-layernorm-in-fp32 --no-post-layer-norm",
        f"{FUSED} --output-layer-slice-num 2",
    ),
    "llama3, sliding window": Row(
        "llama3", 1, "--sliding-window 24 --use-flash-attn", f"{FUSED} --shape-order BNSD"
    ),
    "llama3, virtual pipeline": Row("llama3", 2, VIRTUAL, f"{FUSED} {OVERLAP} --recompute-in-bubble"),
    "llama3, virtual pipeline, recomputed early": Row(
        "llama3",
        2,
        VIRTUAL,
        f"{FUSED} --recompute-in-advance --recompute-granularity full --recompute-method block"
        " --recompute-num-layers 1 --enable-recompute-layers-per-pp-rank",
    ),
    "llama3, layers left out": Row("llama3", 2, f"{PIPELINE} --num-layers 4 --noop-layers 0,3", FUSED),
    "llama3, uneven stages": Row(
        "llama3", 2, f"{PIPELINE} --num-layers 4 --pipeline-num-transformer-layers [[1],[3]]", FUSED
    ),
    "llama3, tensor, pipeline": Row("llama3", 4, f"{TENSOR} {PIPELINE}", FUSED),
    # Flash attention in both: the unfused one of two dimensions does not fit its own heads. One sample: upstream's
    # product with reduce-scatter puts the rows of several in another order.
    "llama3, two-dimensional tensor": Row(
        "llama3",
        4,
        "--tensor-model-parallel-size 4 --tp-2d --tp-x 2 --tp-y 2 --use-flash-attn --micro-batch-size 1",
        "--use-fused-swiglu --use-fused-rotary-pos-emb --enable-overlap-ag-with-matmul"
        " --enable-overlap-matmul-with-rs --enable-backward-overlap-ag-with-matmul",
        operators=(ATTENTION, SWIGLU),
    ),
}
_GROUPS = "grouped_matmul.npu_gmm"
_ONE_PART = "--expert-tensor-parallel-size 1"
EXPERTS = {
    "mixtral": Row(
        "mixtral",
        1,
        "--norm-topk-prob --topk-softmax-in-fp32 --moe-revert-type-after-topk --shared-expert-gate --n-shared-experts 1",
        f"{FUSED} {SEQ}",
    ),
    "mixtral, experts": Row(
        "mixtral", 2, f"{EXPERT} --fix-router", f"{FUSED} {SEQ} {OVERLAP} --hccl-group-buffer dp:200;tp:100"
    ),
    "mixtral, experts and pipeline": Row("mixtral", 4, f"{EXPERT} {PIPELINE}", f"{FUSED} {SEQ}"),
    "mixtral, exchange overlapped": Row(
        "mixtral",
        2,
        f"{GROUPED} {EXPERT} {FUSED} {SEQ}",
        "--moe-alltoall-overlap-comm --moe-zero-memory level1 --gemm-gradient-accumulation-fusion",
        operators=(_GROUPS, "npu_groupmatmul_add_fp32.npu_groupmatmul_add_fp32"),
        tolerance=NEAR,
    ),
    "mixtral, gathering overlapped": Row(
        "mixtral",
        2,
        f"{GROUPED} {EXPERT} {FUSED} --moe-permutation-async-comm --moe-token-dispatcher-type allgather",
        "--moe-allgather-overlap-comm",
        operators=(_GROUPS,),
        tolerance=NEAR,
    ),
    "mixtral, tensor processes hold experts": Row(
        "mixtral",
        2,
        f"{GROUPED} {TENSOR} {FUSED} {SEQ} --moe-tp-extend-ep",
        "--moe-alltoall-overlap-comm --moe-zero-memory level0",
        operators=(_GROUPS,),
        tolerance=NEAR,
    ),
    "deepseek3": Row(
        "deepseek3",
        1,
        "--mla-mm-split",
        f"{FUSED} {PERMUTE} --mla-fa-without-pad --mla-zero-memory --mtp-mem-efficient-logits {FULL}",
    ),
    "deepseek3, experts": Row(
        "deepseek3",
        2,
        EXPERT,
        f"{FUSED} --moe-permutation-async-comm --use-fused-moe-token-permute-and-unpermute --use-distributed-optimizer"
        " --mla-fa-without-pad --recompute-mla-up-proj",
    ),
    # Flash attention in both: MindSpeed-LLM's own unfused one for MLA does not divide its heads among processes.
    "deepseek3, tensor and experts": Row(
        "deepseek3",
        4,
        f"{TENSOR} {_ONE_PART} {EXPERT} --use-flash-attn --mla-mm-split",
        f"{FUSED} {PERMUTE} --use-distributed-optimizer --mla-up-proj-tp-overlap",
    ),
    "deepseek3, ulysses": Row(
        "deepseek3 without mtp", 2, "--use-flash-attn", f"{FUSED} {CONTEXT} 2 {ULYSSES} {PERMUTE}", alone=True
    ),
    "deepseek3, forward and backward overlapped": Row(
        "deepseek3 without mtp",
        2,
        f"{GROUPED} {EXPERT} {_ONE_PART} {FUSED}",
        "--moe-fb-overlap --mla-swap-core-attn-out --recompute-mla-up-proj --moe-zero-memory level0"
        " --gemm-gradient-accumulation-fusion",
        operators=(_GROUPS,),
        tolerance=NEAR,
    ),
    # What tests/st/shell_scripts/deepseek_v3_mcore_tp2_pp2_ep2_dualpipev_fb.sh trains.
    "deepseek3, DualPipeV": Row(
        "deepseek3",
        4,
        f"{GROUPED} {TENSOR} {PIPELINE} {EXPERT} {_ONE_PART} {FUSED} {RESET} --num-layers 4 --noop-layers 3"
        " --schedules-method dualpipev --moe-fb-overlap --moe-permutation-async-comm --mla-mm-split",
        "--mla-up-proj-tp-overlap --mtp-mem-efficient-logits --recompute-activation-function --recompute-mla-up-proj"
        " --moe-zero-memory level0 --swap-optimizer --mla-swap-core-attn-out --gemm-gradient-accumulation-fusion"
        " --manual-gc --manual-gc-interval 50",
        operators=(_GROUPS,),
        tolerance=NEAR,
    ),
}
ROWS = DENSE | EXPERTS
# Of MindSpeed-LLM 26.1.0: its default, MindSpeed's own TransformerEngine, against Megatron's local layers; and Mamba.
_ENGINE = "--transformer-impl transformer_engine"
_NORM = "--use-fused-rmsnorm"
# Upstream's state space layer converts parts of its operands to bfloat16, so it computes in no other type.
_HALF = "--bf16 --use-distributed-optimizer"
NEXT_ROWS = {
    "qwen25, engine": Row("qwen25", 1, "", f"{FUSED} {_ENGINE}"),
    "qwen25, engine, tensor": Row("qwen25", 2, TENSOR, f"{FUSED} {_ENGINE}"),
    "qwen3, engine": Row("qwen3", 1, "", f"{FUSED} {_ENGINE}"),
    "llama3, engine, pipeline": Row("llama3", 2, PIPELINE, f"{FUSED} {_ENGINE}"),
    "mixtral, engine, experts": Row("mixtral", 2, EXPERT, f"{FUSED} {_ENGINE}"),
    "deepseek3, engine": Row("deepseek3", 1, "", f"{FUSED} {_ENGINE}"),
    # What is left of the rows that 26.1.0 refuses (NEXT_REFUSED).
    "mixtral, experts on tensor processes": Row(
        "mixtral",
        4,
        f"{GROUPED} {TENSOR} {EXPERT} {FUSED} {SEQ} --moe-tp-extend-ep",
        "--moe-alltoall-overlap-comm --moe-zero-memory level0",
        operators=(_GROUPS,),
        tolerance=NEAR,
    ),
    "deepseek3, experts, nothing recomputed": Row(
        "deepseek3",
        2,
        EXPERT,
        f"{FUSED} --moe-permutation-async-comm --use-fused-moe-token-permute-and-unpermute --use-distributed-optimizer"
        " --mla-fa-without-pad",
    ),
    "deepseek3, forward and backward overlapped, nothing recomputed": Row(
        "deepseek3 without mtp",
        2,
        f"{GROUPED} {EXPERT} {_ONE_PART} {FUSED}",
        "--moe-fb-overlap --moe-zero-memory level0 --gemm-gradient-accumulation-fusion",
        operators=(_GROUPS,),
        tolerance=NEAR,
    ),
    # One group on each process: upstream's fused norm normalizes all groups of a process together.
    "mamba": Row("mamba", 1, _HALF, _NORM, operators=(NORM,), tolerance=NEAR),
    "mamba, in one chunk": Row("mamba", 1, _HALF, "--mamba-chunk-size 64", operators=(), tolerance=NEAR),
    "mamba, hybrid": Row(
        "mamba hybrid", 1, _HALF, f"{_NORM} --use-fused-swiglu --use-flash-attn", tolerance=NEAR
    ),
    "mamba, recomputed": Row("mamba", 1, _HALF, f"{_NORM} {FULL}", operators=(NORM,), tolerance=NEAR),
    "mamba, tensor": Row(
        "mamba", 2, f"{_HALF} {TENSOR} --mamba-num-groups 2", _NORM, operators=(NORM,), tolerance=NEAR
    ),
    "mamba, data": Row(
        "mamba", 2, _HALF, f"{_NORM} {OVERLAP}", alone=True, operators=(NORM,), tolerance=NEAR
    ),
    # Upstream's convolution over two ranks passes the gradient of the first sequence back to all of a microbatch.
    "mamba, context": Row(
        "mamba",
        2,
        f"{_HALF} --micro-batch-size 1",
        f"{_NORM} {CONTEXT} 2 --context-parallel-algo mamba_cp_algo",
        alone=True,
        operators=(NORM,),
        tolerance=NEAR,
    ),
}
# Operators of a row that 26.1.0 may call by another name: on a device that is none of Ascend 910's, it takes torch_npu's own.
NEXT_OPERATORS = {
    _GROUPS: "npu_grouped_matmul",
    "npu_groupmatmul_add_fp32.npu_groupmatmul_add_fp32": "npu_grouped_matmul_add_",
}
# Rows of ROWS that 26.1.0 refuses -> what it says. Their test fails as soon as it says something else.
_ALONE = "--recompute-mla-up-proj can only be used with --mla-up-proj-tp-overlap"
NEXT_REFUSED = {
    "qwen25, coc fused": "coc fused kernel is not supported on Ascend 950",
    "mixtral, tensor processes hold experts": "`--moe-alltoall-overlap-comm` only support with `--expert-model-parallel-size` > 1",
    "deepseek3, experts": _ALONE,
    "deepseek3, forward and backward overlapped": _ALONE,
}
# Rows of NEXT_ROWS that do not hold -> what is known of them. Their test fails as soon as they hold.
NEXT_OPEN = {
    "deepseek3, engine": "does not hold: losses differ by 4.5e-5, because upstream's engine computes something else for this model "
    "(see the limits below)",
}
