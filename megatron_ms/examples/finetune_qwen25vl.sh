#!/usr/bin/env bash
# LoRA of a small Qwen2.5-VL with MindSpeed-MM's own pretrain_vlm.py, its converter, and the flags of its example scripts.
#
#   source build/env.sh                        (after: bash auto_convert.sh mm)
#   bash megatron_ms/examples/finetune_qwen25vl.sh FOLDER [more flags, which override those below]
#
# FOLDER receives a model with random weights, eight pictures with questions, the converted weights (start), checkpoints of LoRA and
# TensorBoard events (lora), and log.txt. Model and data are made once. When the script is started again, it resumes from the last
# checkpoint. PROCESSES=2 trains with two processes; PARALLEL=tensor divides the layers among them instead of the data.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [flags of pretrain_vlm.py]" >&2; exit 2; }
: "${MINDSPEED_MM:?is not set: source the env.sh that auto_convert.sh mm has written}"
processes="${PROCESSES:-1}" tensor=1
case "${PARALLEL:-data}" in
data) ;;
tensor) tensor="$processes" ;;
*) echo "PARALLEL is $PARALLEL, and must be data or tensor" >&2; exit 2 ;;
esac
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
shift
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" HF_HUB_OFFLINE="${HF_HUB_OFFLINE:-1}"
start="$folder/start-tensor-$tensor"

cd "$MINDSPEED_MM"
if [ ! -e "$folder/.prepared" ]; then
    python "$here/vision_questions.py" "$folder"
    touch "$folder/.prepared"
fi
if [ ! -e "$start/latest_checkpointed_iteration.txt" ]; then
    python -m checkpoint.convert_cli Qwen2_5_VLConverter hf_to_mm --cfg.mm_dir "$start" --cfg.hf_config.hf_dir "$folder/model" \
        --cfg.parallel_config.llm_pp_layers '[[2]]' --cfg.parallel_config.vit_pp_layers '[[2]]' \
        --cfg.parallel_config.tp_size "$tensor"
fi
parallel=(--tensor-model-parallel-size "$tensor" --pipeline-model-parallel-size 1 --context-parallel-size 1)
model=(
    --use-mcore-models --tokenizer-type NullTokenizer --vocab-size 151936 --make-vocab-size-divisible-by 1 --seq-length 192
    --normalization RMSNorm --use-fused-rmsnorm --swiglu --use-fused-swiglu --no-masked-softmax-fusion --use-flash-attn
)
lora=(--lora-r 8 --lora-alpha 16 --lora-dropout 0 --lora-target-modules linear_proj linear_fc2 linear_qkv linear_fc1)
training=(
    --micro-batch-size 1 --global-batch-size 8 --train-iters 40 --lr 5e-3 --lr-decay-style cosine --lr-warmup-fraction 0.1
    --weight-decay 0 --clip-grad 0.0 --adam-beta1 0.9 --adam-beta2 0.999 --seed 42
    --no-gradient-accumulation-fusion --num-workers 0 --distributed-timeout-minutes 20
)
files=(--mm-data "$folder/data.json" --mm-model "$folder/model.json" --mm-tool "$MINDSPEED_MM/mindspeed_mm/tools/tools.json")
if [ -e "$folder/lora/latest_checkpointed_iteration.txt" ]; then
    load=(--load "$folder/lora" --load-base-model "$start")
else
    load=(--load "$start" --no-load-optim --no-load-rng)
fi
output=(
    --save "$folder/lora" --save-interval 20 --log-interval 1 --eval-interval 1000 --eval-iters 1 --ckpt-format torch
    --tensorboard-dir "$folder/tensorboard" --distributed-backend nccl
)
torchrun --standalone --nproc_per_node "$processes" "$MINDSPEED_MM/pretrain_vlm.py" "${model[@]}" "${lora[@]}" "${parallel[@]}" \
    "${training[@]}" "${files[@]}" "${load[@]}" "${output[@]}" "$@" 2>&1 | tee -a "$folder/log.txt"
