#!/usr/bin/env bash
# Tests against unmodified upstream sources, without a network for these:
#
#     bash tests/upstreams.sh FOLDER [--llm | --newest | --rl] [arguments of pytest]
#
# FOLDER holds git repositories as Megatron-LM.git.tar, MindSpeed.git.tar and MindSpeed-LLM.git.tar, and a tree as
# MindSpeed-RL-2.3.0.tar.xz. They are unpacked and checked out under build/upstreams. Without further arguments Megatron-LM's
# parallel layouts, its newer releases and MindSpeed's adaptor are run, then MindSpeed-LLM as `auto_convert.sh llm` converts it.
# The newest Megatron-LM needs Python 3.12. If one is found, `auto_convert.sh --source` makes an environment for it and converts
# it, unless MSADAPTER_PYTHON_3_12 names the Python of such an environment; otherwise its tests are skipped. With --llm, pytest
# runs with MindSpeed-LLM as `auto_convert.sh llm` converts it, with --newest, with the newest Megatron-LM and the packages that
# all of its tests need, and with --rl, with MindSpeed-RL and Ray as `auto_convert.sh rl` converts them.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="$(cd "${1:?usage: bash tests/upstreams.sh FOLDER [--llm | --newest | --rl] [arguments of pytest]}" && pwd)"
shift
with=""
case "${1:-}" in --llm | --newest | --rl)
  with="$1"
  shift
  ;;
esac
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
    MSADAPTER_GIT_MINDSPEED_LLM="$work/MindSpeed-LLM.git" bash auto_convert.sh "$@" --output "$work/converted"
}

convert_llm() {
  unpack MindSpeed
  unpack MindSpeed-LLM
  converted llm --tests
}

python_3_12() { # prints the path of a Python 3.12, which may be one of pyenv's that is not enabled; nothing if there is none
  local candidate
  for candidate in python3.12 "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3.12; do
    if "$candidate" -c "" 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
}

name_newest() { # name_newest [options]: for tests/megatron: Megatron-LM 0.19.0, and an environment, made with these options
  MSADAPTER_MEGATRON_NEWEST="$(checkout Megatron-LM core_v0.19.0)"
  if [ -z "${MSADAPTER_PYTHON_3_12:-}" ]; then
    local python
    python="$(python_3_12)"
    if [ -z "$python" ]; then
      echo "Megatron-LM 0.19.0: skipped: no Python 3.12"
      return
    fi
    PYTHON="$python" converted core --source "$MSADAPTER_MEGATRON_NEWEST" "$@"
    MSADAPTER_PYTHON_3_12="$("$python" -c "from megatron_ms.convert.environment import PYTHON; print(PYTHON)")"
  fi
  export MSADAPTER_PYTHON_3_12 MSADAPTER_MEGATRON_NEWEST
}

name_llm() { # for tests/npu: MindSpeed-LLM 26.1.0, MindSpeed 26.1.0 and their packages
  export MSADAPTER_MINDSPEED="$work/converted/llm/MindSpeed" MSADAPTER_MINDSPEED_LLM="$work/converted/llm/MindSpeed-LLM"
  export PYTHONPATH="$work/converted/packages-llm-26.1.0"
}

MSADAPTER_MEGATRON="$(checkout Megatron-LM core_v0.12.1)"
MSADAPTER_MEGATRON_NEXT="$(checkout Megatron-LM core_v0.16.1)"
MSADAPTER_MINDSPEED="$(checkout MindSpeed 2.3.0_core_r0.12.1)"
export MSADAPTER_MEGATRON MSADAPTER_MEGATRON_NEXT MSADAPTER_MINDSPEED
case "$with" in
--llm)
  convert_llm
  name_llm
  ;;
--newest) name_newest --tests ;;
--rl)
  [ -d "$work/MindSpeed-RL" ] || tar -xf "$folder/MindSpeed-RL-2.3.0.tar.xz" -C "$work"
  unpack MindSpeed
  unpack MindSpeed-LLM
  converted rl --tests --source MindSpeed-RL="$work/MindSpeed-RL"
  export MSADAPTER_RL_ENV="$work/converted/rl/env.sh"
  ;;
esac
if [ $# -gt 0 ]; then exec bash tests/run.sh "$@"; fi

two=(-n 2 --dist worksteal) # a training waits often: for its start, its files and its other ranks
name_newest
bash tests/run.sh "${two[@]}" -m "not extended" tests/megatron/test_parallel.py tests/megatron/test_newer_release.py \
  "tests/megatron/test_newest_layouts.py::test_curve_of_one_process[tensor and sequence]" \
  "tests/megatron/test_newest.py::test_trains_as_one_process[experts in one product, engine]" \
  tests/megatron/test_simulated_npu.py tests/megatron/test_watch.py tests/megatron/test_plan.py tests/megatron/test_one_file.py \
  "tests/megatron/test_parity.py::test_curve[llama]" "tests/megatron/test_resume.py::test_goes_on_bit_for_bit[data-torch_dist]" \
  tests/npu/test_mindspeed_training.py tests/patches/test_manager.py tests/patches/test_product.py
convert_llm
name_llm
script() { # script PATH: the name of the test of an example script whose model has parts that the other models lack
  echo "tests/npu/test_mindspeed_llm_examples.py::test_the_faster_flags_of_a_script_change_no_loss[$1]"
}
MSADAPTER_LLM="$work/converted/llm" bash tests/run.sh "${two[@]}" -m "not extended" \
  tests/toolkit/recovery/test_mindspeed_llm.py \
  "tests/npu/test_mindspeed_llm.py::test_rows_of_the_newer_release[qwen25, engine]" \
  "tests/npu/test_mindspeed_llm.py::test_rows_of_the_newer_release[qwen25, engine, tensor]" \
  tests/npu/test_mindspeed_llm_tools.py::test_the_second_converter "$(script phi35/pretrain_phi35_moe_ptd.sh)" \
  "$(script longcat/pretrain_longcat_flash_560b_4k_A3_ptd.sh)" "$(script glm45-air/pretrain_glm45_air_106b_4k_A3_ptd.sh)" \
  "$(script deepseek4_flash/pretrain_deepseek4_flash_4k_A3_ptd.sh)" "$(script qwen3_next/pretrain_qwen3_next_80b_16K_A3_ptd.sh)"
