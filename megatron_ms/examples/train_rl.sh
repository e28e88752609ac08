#!/usr/bin/env bash
# MindSpeed-RL's own train_grpo.py, train_ppo.py, train_dapo.py or train_dpo.py on two processes: sums of two numbers of two digits.
#
#   source build/env.sh                        (after: bash auto_convert.sh rl)
#   [RL_ALGORITHM=grpo|ppo|dapo|dpo] bash megatron_ms/examples/train_rl.sh FOLDER [more of hydra's overrides, such as
#       megatron_training.train_iters=20]
#
# FOLDER receives the data, the first model, checkpoints and logs, and result.json: the share of right answers to sums that no
# training has seen, before and after. Each step is done once; the training is done anew.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [hydra's overrides]" >&2; exit 2; }
: "${MINDSPEED_RL:?is not set: source the env.sh that auto_convert.sh rl has written}"
algorithm="${RL_ALGORITHM:-grpo}"
case "$algorithm" in
grpo | ppo | dapo | dpo) ;;
*) echo "RL_ALGORITHM is $algorithm, and must be grpo, ppo, dapo or dpo" >&2; exit 2 ;;
esac
mkdir -p "$1"
folder="$(cd "$1" && pwd)"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
shift
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" TOKENIZERS_PARALLELISM=true

convert() { # convert FROM TO KIND KIND [flags]: MindSpeed-LLM's converter between Hugging Face (hf) and Megatron (mg)
    local from="$1" to="$2" kind="$3" other="$4"
    shift 4
    (cd "$MINDSPEED_LLM" && python convert_ckpt.py --use-mcore-models --model-type GPT --model-type-hf llama2 --add-qkv-bias \
        --load-model-type "$kind" --save-model-type "$other" --load-dir "$from" --save-dir "$to" "$@")
}

if [ ! -e "$folder/.prepared" ]; then
    python "$here/rl_addition.py" prepare "$folder" ${RL_TEACHER_STEPS:+--steps "$RL_TEACHER_STEPS"}
    mkdir -p "$folder/data"
    for name in addition_data pairs_data; do
        (cd "$MINDSPEED_RL" && python cli/preprocess_data.py "$name" --config-path "$folder")
    done
    rm -rf "$folder/start"
    convert "$folder/model" "$folder/start" hf mg --target-tensor-parallel-size 2 --target-pipeline-parallel-size 1 \
        --tokenizer-model "$folder/model/tokenizer.json" --params-dtype fp32
    touch "$folder/.prepared"
fi
rm -rf "$folder/learned" "$folder/after"
program=("cli/train_$algorithm.py" --config-path "$folder" --config-name "${algorithm}_addition" "$@")
if [ "$algorithm" = dpo ]; then # its answers are there already, so it needs no Ray
    (cd "$MINDSPEED_RL" && torchrun --nproc-per-node 2 "${program[@]}" 2>&1 | tee "$folder/log.txt")
else
    (cd "$MINDSPEED_RL" && python -m megatron_ms.rollout.job --ranks 2 --log "$folder/log.txt" "${program[@]}")
fi
cp -r "$folder/model" "$folder/after"
convert "$folder/learned" "$folder/after" mg hf --target-tensor-parallel-size 1 --target-pipeline-parallel-size 1
result="$(python "$here/rl_addition.py" measure "$folder" "$folder/model")"
mv "$folder/after/mg2hf"/* "$folder/after/" # the converter reads the model in this folder and writes beside it
printf '{"before": %s, "after": %s}\n' "$result" "$(python "$here/rl_addition.py" measure "$folder" "$folder/after")" \
    >"$folder/result.json"
cat "$folder/result.json"
