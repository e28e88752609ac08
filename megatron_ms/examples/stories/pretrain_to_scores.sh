#!/usr/bin/env bash
# Pretraining on two blended sources, stopped and resumed on other ranks, exported to Hugging Face, and evaluated.
#
#     bash pretrain_to_scores.sh MODEL TEXTS1.jsonl TEXTS2.jsonl TREES BOOLQ FOLDER RECIPE [KEY=VALUE ...]
#
# MODEL has the config.json and the tokenizer of the model, without weights. TREES is the folder that `bash auto_convert.sh llm`
# wrote, and BOOLQ the folder of that benchmark. Everything is written into the new folder FOLDER.
set -euo pipefail
model="$(realpath "$1")" one="$(realpath "$2")" two="$(realpath "$3")" trees="$(realpath "$4")" boolq="$(realpath "$5")"
recipe="$7" python="${PYTHON:-python}"
mkdir "$6"
cd "$6"
shift 7
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
data:
  sources:
    - {path: "$one", weight: 0.7, name: one}
    - {path: "$two", weight: 0.3, name: two}
  tokenizer: "$model"
  output: texts
run: {trees: "$trees", device: npu, processes: 2}
dataset: {sequence_length: 512}
parallel: {pipeline: 2}
train: {iterations: 8, micro_batch: 1, global_batch: 4, lr: 1e-3}
save: {interval: 4, format: torch_dist}
convert: {source: checkpoints, output: exported, to: huggingface, like: "$model"}
generate: {model: exported, max_new_tokens: 16}
evaluate: {benchmarks: {boolq: "$boolq"}, output: scores, limit: 4}
YAML
toolkit data
toolkit train upstream.exit_interval=4
"$python" -m megatron_ms status
toolkit train --resume parallel.pipeline=1 parallel.tensor=2
"$python" -m megatron_ms status
ln -s runs/story/*/checkpoints checkpoints
toolkit convert parallel.pipeline=1 run.processes=1
toolkit evaluate
