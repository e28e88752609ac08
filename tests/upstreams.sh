#!/usr/bin/env bash
# Tests against unmodified upstream sources, without a network for these:
#
#     bash tests/upstreams.sh FOLDER [--llm] [arguments of pytest]
#
# FOLDER holds git repositories as Megatron-LM.git.tar, MindSpeed.git.tar and MindSpeed-LLM.git.tar, and a tree as
# MindSpeed-RL-2.3.0.tar.xz. They are unpacked and checked out under build/upstreams. Without further arguments Megatron-LM's
# parallel layouts, its newer releases and MindSpeed's adaptor are run, then the trainings through trl, peft and accelerate, which
# pip fetches, then MindSpeed-LLM as `auto_convert.sh llm` converts it, with the user stories of the toolkit, then MindSpeed-RL with
# Ray as `auto_convert.sh rl` converts it. The newest Megatron-LM needs Python 3.12: it is run if MSADAPTER_PYTHON_3_12 names the one
# of an environment that `auto_convert.sh core --release 0.19.0` has made. With --llm, pytest runs with MindSpeed-LLM as
# `auto_convert.sh llm` converts it.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="$(cd "${1:?usage: bash tests/upstreams.sh FOLDER [--llm] [arguments of pytest]}" && pwd)"
shift
llm=""
if [ "${1:-}" = --llm ]; then
  llm=1
  shift
fi
work="$root/build/upstreams"
mkdir -p "$work"
cd "$root"

unpack() { # unpack NAME: the git repository of that name, once
  [ -d "$work/$1.git" ] || tar -xf "$folder/$1.git.tar" -C "$work"
}

checkout() { # checkout NAME BRANCH: prints the path of a checkout of that branch
  local tree="$work/$1-$2"
  if [ ! -e "$tree/.complete" ]; then
    rm -rf "$tree"
    unpack "$1"
    git clone --quiet --branch "$2" "$work/$1.git" "$tree"
    touch "$tree/.complete"
  fi
  echo "$tree"
}

converted() { # converted SCENARIO [options]: as a user converts it, from the unpacked repositories
  MSADAPTER_GIT_MEGATRON_LM="$work/Megatron-LM.git" MSADAPTER_GIT_MINDSPEED="$work/MindSpeed.git" \
    MSADAPTER_GIT_MINDSPEED_LLM="$work/MindSpeed-LLM.git" bash auto_convert.sh "$@" --tests --output "$work/converted"
}

convert_llm() {
  unpack MindSpeed
  unpack MindSpeed-LLM
  converted llm
}

name_llm() { # for tests/npu: MindSpeed-LLM 26.1.0, MindSpeed 26.1.0 and their packages
  export MSADAPTER_MINDSPEED="$work/converted/llm/MindSpeed" MSADAPTER_MINDSPEED_LLM="$work/converted/llm/MindSpeed-LLM"
  export PYTHONPATH="$work/converted/packages-llm-26.1.0"
}

trainers() { # prints the folder with what run.backend: hf adds to the tests' environment
  local list="$root/megatron_ms/training/requirements-hf.txt" place="$work/trainers"
  if ! cmp --quiet "$list" "$place/requirements"; then
    rm -rf "$place"
    .venv/bin/pip install --quiet --disable-pip-version-check --no-deps --target "$place" -r "$list" >&2
    cp "$list" "$place/requirements"
  fi
  echo "$place"
}

MSADAPTER_MEGATRON="$(checkout Megatron-LM core_v0.12.1)"
MSADAPTER_MEGATRON_NEXT="$(checkout Megatron-LM core_v0.16.1)"
MSADAPTER_MINDSPEED="$(checkout MindSpeed 2.3.0_core_r0.12.1)"
export MSADAPTER_MEGATRON MSADAPTER_MEGATRON_NEXT MSADAPTER_MINDSPEED
if [ -n "${MSADAPTER_PYTHON_3_12:-}" ]; then
  MSADAPTER_MEGATRON_NEWEST="$(checkout Megatron-LM core_v0.19.0)"
  export MSADAPTER_MEGATRON_NEWEST
fi
if [ -n "$llm" ]; then
  convert_llm
  name_llm
fi
if [ $# -gt 0 ]; then exec bash tests/run.sh "$@"; fi

bash tests/run.sh tests/megatron/test_parallel.py tests/megatron/test_newer_release.py tests/megatron/test_simulated_npu.py \
  tests/megatron/test_watch.py tests/megatron/test_plan.py tests/megatron/test_one_file.py \
  tests/megatron/test_resharding.py::test_a_training_goes_on_in_another_layout \
  "tests/megatron/test_parity.py::test_curve[llama]" "tests/megatron/test_resume.py::test_goes_on_bit_for_bit[data-torch_dist]" \
  tests/npu/test_mindspeed_training.py tests/patches/test_manager.py tests/patches/test_product.py
PYTHONPATH="$(trainers)" bash tests/run.sh tests/huggingface/test_trl.py tests/huggingface/test_training.py \
  tests/toolkit/training/test_hf.py tests/toolkit/training/test_grpo.py tests/toolkit/training/test_tuning.py \
  tests/toolkit/stories/test_hugging_face.py
convert_llm
MSADAPTER_LLM="$work/converted/llm" bash tests/run.sh tests/toolkit/stories/test_megatron.py tests/toolkit/training/test_dpo.py \
  tests/toolkit/recovery/test_mindspeed_llm.py
name_llm
examples="faster_flags and (deepseek4 or glm45 or longcat or phi35_moe or qwen3_next)" # models whose parts differ most
bash tests/run.sh tests/npu/test_mindspeed_llm.py tests/npu/test_mindspeed_llm_examples.py tests/npu/test_mindspeed_llm_tools.py \
  tests/npu/test_high_availability.py -k "engine and qwen25 or second_converter or last_checkpoint and 1-kill or $examples"
unset PYTHONPATH MSADAPTER_MINDSPEED MSADAPTER_MINDSPEED_LLM # of release 26.1.0, and MindSpeed-RL needs 2.3.0
[ -d "$work/MindSpeed-RL" ] || tar -xf "$folder/MindSpeed-RL-2.3.0.tar.xz" -C "$work"
converted rl --source MindSpeed-RL="$work/MindSpeed-RL"
MSADAPTER_RL_ENV="$work/converted/rl/env.sh" bash tests/run.sh tests/npu/test_mindspeed_rl.py -k "mathematics or course or killed or 2-1"
