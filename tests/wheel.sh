#!/usr/bin/env bash
# Builds the source archive and the wheel, installs the wheel into an empty environment, and lets that compute:
#
#     bash tests/wheel.sh [FOLDER]             # FOLDER receives the files (default: build/wheel)
#     bash tests/wheel.sh --kernels [FOLDER]   # also a wheel for this Python and kind of machine, with the CPU kernels compiled
#
# PYTHON names another Python 3.11 or 3.12. Nothing of the checkout is importable there. The first import compiles the CPU kernels,
# unless the cache has them (5 minutes). With --kernels they are compiled for every instruction set of
# msadapter/_host/instructions.py, or for those that KERNEL_SETS names (each takes some minutes). That wheel is then installed
# into an empty environment and trains there without a compiler and with an empty cache.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="${PYTHON:-python3.11}"
kernels=""
if [ "${1:-}" = --kernels ]; then
  kernels=yes
  shift
fi
output="$(mkdir -p "${1:-$root/build/wheel}" && cd "${1:-$root/build/wheel}" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# A build writes build/ and *.egg-info beside the sources, so it gets a copy of what git knows.
mkdir "$work/source"
git -C "$root" archive HEAD | tar -x -C "$work/source"
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check build==1.6.1
"$work/tools/bin/python" -m build --outdir "$work/dist" "$work/source" > "$work/build.log" || { tail -30 "$work/build.log"; exit 1; }

"$python" -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet --disable-pip-version-check "$(ls "$work"/dist/*.whl)[toolkit,megatron]"
cd "$work" # not the checkout, which would be imported instead
cat > smoke.py <<'PROGRAM'
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
for _ in range(100):
    x = torch.randn(32, 4)
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert loss.item() < 0.01, loss
assert "/empty/lib/" in torch.__file__, torch.__file__
print(f"the wheel trains: loss {loss.item():.1e}")
PROGRAM
"$work/empty/bin/python" -m msadapter smoke.py
"$work/empty/bin/python" -m msadapter doctor > doctor.txt || { cat doctor.txt; exit 1; }
tail -1 doctor.txt
"$work/empty/bin/python" -m megatron_ms models qwen3-0.6b > /dev/null
"$work/empty/bin/python" -m megatron_ms --help | grep --quiet grpo
"$work/empty/bin/python" -m patches --help > /dev/null
"$work/empty/bin/python" -c 'import kernels_ascend, importlib.metadata as m; print("msadapter", m.version("msadapter"))'

if [ -n "$kernels" ]; then
  read -r -a sets <<< "${KERNEL_SETS:-}"
  "$work/empty/bin/python" -m msadapter prebuild "$work/source/msadapter/_prebuilt" "${sets[@]}"
  rm -rf "$work/source/build" # of the first wheel
  "$work/tools/bin/python" -m build --wheel --outdir "$work/kernels" "$work/source" > "$work/build.log" || { tail -30 "$work/build.log"; exit 1; }
  mkdir "$work/bin" "$work/cache" # a PATH without a compiler
  began="$(date +%s)"
  "$python" -m venv "$work/compiled"
  "$work/compiled/bin/pip" install --quiet --disable-pip-version-check "$(ls "$work"/kernels/*.whl)"
  sed -i 's:/empty/lib:/compiled/lib:' smoke.py
  run=(env PATH="$work/bin" CXX=no-compiler MSADAPTER_CACHE="$work/cache" "$work/compiled/bin/python" -m msadapter)
  "${run[@]}" smoke.py
  echo "with kernels, from an empty environment to the trained model: $(($(date +%s) - began)) s"
  "${run[@]}" doctor > doctor.txt || { cat doctor.txt; exit 1; }
  grep 'CPU kernels' doctor.txt
  [ -z "$(ls -A "$work/cache")" ] || { echo "something was compiled: $(ls "$work/cache")"; exit 1; }
  cp "$work"/kernels/*.whl "$output/"
fi
cp "$work"/dist/* "$output/"
ls -l "$output"
