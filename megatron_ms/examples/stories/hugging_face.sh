#!/usr/bin/env bash
# Hugging Face only, without git sources: LoRA on a file of instructions, merge, evaluate, and a question.
#
#     bash hugging_face.sh MODEL INSTRUCTIONS.json BOOLQ FOLDER [STEPS]
#
# MODEL is the folder of a model with a chat template, such as Qwen2.5-0.5B-Instruct. INSTRUCTIONS.json is in Alpaca form,
# and BOOLQ the folder of that benchmark. Everything is written into the new folder FOLDER.
# Once: pip install 'msadapter[hf,toolkit]' && pip install --no-deps -r megatron_ms/training/requirements-hf.txt
set -euo pipefail
model="$(realpath "$1")" instructions="$(realpath "$2")" boolq="$(realpath "$3")" steps="${5:-20}"
python="${PYTHON:-python}"
mkdir "$4"
cd "$4"
toolkit() { echo; echo "\$ python -m megatron_ms $*"; "$python" -m megatron_ms "$@"; }

cat > story.yaml <<YAML
name: story
data: {task: instruction, sources: "$instructions", tokenizer: "$model", template: chat, output: rows, format: jsonl}
run: {backend: hf, task: lora, device: cpu}
train: {iterations: $steps, micro_batch: 4, lr: 1e-2}
tune: {rank: 8, alpha: 16}
save: {interval: $steps}
resume: {load: "$model"}
convert: {source: adapter, like: "$model", output: merged}
generate: {model: merged, max_new_tokens: 20, prompts: ["Say hello"]}
evaluate: {benchmarks: {boolq: "$boolq"}, output: scores, limit: 4}
YAML
toolkit data story.yaml --show 1
toolkit data story.yaml
toolkit train story.yaml
toolkit status
ln -s runs/story/*/checkpoints/final adapter
toolkit convert story.yaml
toolkit evaluate story.yaml
toolkit generate story.yaml
