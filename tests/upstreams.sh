#!/usr/bin/env bash
# Tests against unmodified upstream sources, without a network:
#
#     bash tests/upstreams.sh FOLDER [arguments of pytest]
#
# FOLDER holds git repositories as Megatron-LM.git.tar and MindSpeed.git.tar. They are unpacked and checked out under
# build/upstreams. Without further arguments Megatron-LM's parallel layouts, its newer release and MindSpeed's adaptor are run.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
folder="$(cd "${1:?usage: bash tests/upstreams.sh FOLDER [arguments of pytest]}" && pwd)"
shift
work="$root/build/upstreams"
mkdir -p "$work"

checkout() { # checkout NAME BRANCH: prints the path of a checkout of that branch
  local tree="$work/$1-$2"
  if [ ! -e "$tree/.complete" ]; then
    rm -rf "$tree"
    [ -d "$work/$1.git" ] || tar -xf "$folder/$1.git.tar" -C "$work"
    git clone --quiet --branch "$2" "$work/$1.git" "$tree"
    touch "$tree/.complete"
  fi
  echo "$tree"
}

MSADAPTER_MEGATRON="$(checkout Megatron-LM core_v0.12.1)"
MSADAPTER_MEGATRON_NEXT="$(checkout Megatron-LM core_v0.16.1)"
MSADAPTER_MINDSPEED="$(checkout MindSpeed 2.3.0_core_r0.12.1)"
export MSADAPTER_MEGATRON MSADAPTER_MEGATRON_NEXT MSADAPTER_MINDSPEED
if [ $# -eq 0 ]; then
  set -- tests/megatron/test_parallel.py tests/megatron/test_newer_release.py tests/megatron/test_simulated_npu.py \
    tests/megatron/test_watch.py \
    tests/npu/test_mindspeed_training.py tests/patches/test_manager.py tests/patches/test_product.py
fi
cd "$root"
exec bash tests/run.sh "$@"
