#!/usr/bin/env bash
# From a file of instructions to a chat with a fine-tuned Qwen2.5, with MindSpeed-LLM on two processes.
#
#     bash alpaca_to_chat.sh MODEL INSTRUCTIONS.json TREES FOLDER [RECIPE] [KEY=VALUE ...]
#
# MODEL is the folder of Qwen2.5 from Hugging Face, INSTRUCTIONS.json is in Alpaca form, and TREES the folder that
# `bash auto_convert.sh llm` wrote. Everything is written into the new folder FOLDER. RECIPE is qwen2.5-0.5b by default.
set -euo pipefail
model="$(realpath "$1")" instructions="$(realpath "$2")" trees="$(realpath "$3")" recipe="${5:-qwen2.5-0.5b}"
python="${PYTHON:-python}"
mkdir "$4"
cd "$4"
shift $(($# < 5 ? $# : 5))
more=("$@")
toolkit() { # toolkit COMMAND WORDS...: one command of the toolkit, on story.yaml
  local command="$1"
  shift
  echo
  echo "\$ python -m megatron_ms $command story.yaml $*"
  "$python" -m megatron_ms "$command" story.yaml "$@" "${more[@]}"
}

cat > story.yaml <<YAML
name: story
recipe: $recipe
data: {task: instruction, sources: "$instructions", tokenizer: "$model", template: qwen, output: rows, seq_length: 512}
run: {task: sft, trees: "$trees", device: npu, processes: 2}
dataset: {sequence_length: 512}
parallel: {tensor: 2}
train: {iterations: 20, micro_batch: 1, global_batch: 4, lr: 1e-3}
save: {interval: 10, optimizer: false}
resume: {load: start}
convert: {source: "$model", output: start, to: megatron}
generate: {model: tuned, max_new_tokens: 16}
YAML
toolkit data --show 1
toolkit data
toolkit convert
toolkit plan
toolkit train
"$python" -m megatron_ms status
toolkit convert "convert.source=$(echo runs/story/*/checkpoints)" convert.output=tuned convert.to=huggingface "convert.like=$model"
echo "Say hello" | toolkit chat
