#!/usr/bin/env bash
# Trains a small Qwen2.5 on two processes with MindSpeed-LLM's own pretrain_gpt.py and the flags of its example scripts.
#
#   source build/env.sh                        (after: bash auto_convert.sh llm)
#   bash megatron_ms/examples/pretrain_qwen25.sh PREFIX SAVE [more flags, which override those below]
#
# PREFIX names the data set (PREFIX.bin, PREFIX.idx) and its SentencePiece model (PREFIX.model). SAVE is the folder for
# checkpoints and TensorBoard events. When the script is started again, it resumes from the last checkpoint. To train for more
# iterations, add: --train-iters 200 --override-opt_param-scheduler (the second flag because the schedule changes).
# PROCESSES=1 trains in one process.
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: $0 PREFIX SAVE [flags of pretrain_gpt.py]" >&2; exit 2; }
: "${MINDSPEED_LLM:?is not set: source the env.sh that auto_convert.sh llm has written}"
prefix="$1" save="$2"
shift 2
processes="${PROCESSES:-2}"

parallel=(--tensor-model-parallel-size "$processes" --use-distributed-optimizer)
[ "$processes" = 1 ] || parallel+=(--sequence-parallel)
model=(
    --use-mcore-models --num-layers 4 --hidden-size 128 --ffn-hidden-size 352 --num-attention-heads 8
    --group-query-attention --num-query-groups 4 --add-qkv-bias --disable-bias-linear --swiglu
    --normalization RMSNorm --norm-epsilon 1e-6 --position-embedding-type rope --rotary-base 1000000
    --untie-embeddings-and-output-weights --seq-length 128 --max-position-embeddings 128
    --attention-dropout 0.0 --hidden-dropout 0.0 --init-method-std 0.02
)
fused=(--use-flash-attn --use-fused-swiglu --use-fused-rmsnorm --use-fused-rotary-pos-emb)
training=(
    --micro-batch-size 4 --global-batch-size 8 --train-iters 100 --lr 2e-3 --min-lr 2e-4 --lr-decay-style cosine
    --lr-warmup-iters 10 --weight-decay 0.01 --clip-grad 1.0 --adam-beta1 0.9 --adam-beta2 0.95 --seed 1234
    --no-gradient-accumulation-fusion --no-masked-softmax-fusion --attention-softmax-in-fp32
)
data=(
    --data-path "$prefix" --tokenizer-type Llama2Tokenizer --tokenizer-model "$prefix.model"
    --make-vocab-size-divisible-by 1 --split 95,5,0 --num-workers 0 --no-shared-storage
)
output=(
    --save "$save" --load "$save" --save-interval 50 --log-interval 5 --eval-interval 1000 --eval-iters 5
    --tensorboard-dir "$save/tensorboard" --log-throughput --distributed-backend nccl
)
mkdir -p "$save"
exec torchrun --standalone --nproc_per_node "$processes" "$MINDSPEED_LLM/pretrain_gpt.py" \
    "${model[@]}" "${fused[@]}" "${parallel[@]}" "${training[@]}" "${data[@]}" "${output[@]}" "$@"
