#!/usr/bin/env bash
# Builds the source archive and the wheel, installs the wheel into an empty environment, and lets that compute:
#
#     bash tests/wheel.sh [FOLDER]             # FOLDER receives the files (default: build/wheel)
#     bash tests/wheel.sh --kernels [FOLDER]   # also a wheel for this Python and kind of machine, with the CPU kernels compiled
#     bash tests/wheel.sh --kernels=aarch64 [FOLDER]   # only such a wheel for Python 3.11 on aarch64, on a machine of another kind
#
# PYTHON names another Python 3.10, 3.11 or 3.12. Nothing of the checkout is importable there. The first import compiles the CPU kernels,
# unless the cache has them (5 minutes). With --kernels they are compiled for every instruction set of
# msadapter/_host/instructions.py, or for those that KERNEL_SETS names (each takes some minutes). That wheel is then installed
# into an empty environment and trains there without a compiler and with an empty cache.
#
# With --kernels=aarch64 a cross compiler compiles, and qemu emulates the machine on which the wheel trains. tests/aarch64.sh says what
# that needs. PYTHON must be a Python 3.11 then.
set -euo pipefail
unset PYTHONDONTWRITEBYTECODE # Python keeps what it compiles of the packages, for the next program
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="${PYTHON:-python3.11}"
kernels=""
case "${1:-}" in
  --kernels) kernels=here ;;
  --kernels=aarch64) kernels=aarch64 ;;
  --*) echo "tests/wheel.sh: $1 is no option: --kernels, or --kernels=aarch64" >&2; exit 2 ;;
esac
if [ -n "$kernels" ]; then shift; fi
read -r -a sets <<< "${KERNEL_SETS:-}"
output="$(mkdir -p "${1:-$root/build/wheel}" && cd "${1:-$root/build/wheel}" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

# A build writes build/ and *.egg-info beside the sources, so it gets a copy of what git knows.
mkdir "$work/source"
git -C "$root" archive HEAD | tar -x -C "$work/source"
"$python" -m venv "$work/tools"
"$work/tools/bin/pip" install --quiet --disable-pip-version-check build==1.6.1
build() { # ARGUMENT ...: of `python -m build`
  "$work/tools/bin/python" -m build "$@" "$work/source" > "$work/build.log" || { tail -30 "$work/build.log"; exit 1; }
}
mkdir "$work/bin" "$work/cache" # a PATH without a compiler, and an empty cache

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
assert "/empty/" in torch.__file__, torch.__file__
print(f"the wheel trains: loss {loss.item():.1e}")
PROGRAM

# Runs a command, with variables before it, where there is no compiler.
without_compiler() { env PATH="$work/bin" CXX=no-compiler MSADAPTER_CACHE="$work/cache" "$@"; }

# Checks that the environment "compiled", whose Python the arguments call, trains with the kernels of its wheel.
check_compiled() {
  sed -i 's:/empty/:/compiled/:' smoke.py
  without_compiler "$@" -m msadapter smoke.py
  echo "with kernels, from an empty environment to the trained model: $(($(date +%s) - began)) s"
  without_compiler "$@" -m msadapter doctor > doctor.txt || { cat doctor.txt; exit 1; }
  grep 'CPU kernels' doctor.txt
  [ -z "$(ls -A "$work/cache")" ] || { echo "something was compiled: $(ls "$work/cache")"; exit 1; }
}

if [ "$kernels" = aarch64 ]; then
  "$work/tools/bin/python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { echo "PYTHON must be a Python 3.11" >&2; exit 1; }
  export AARCH64_BUILD="${AARCH64_BUILD:-$root/build/aarch64}"
  emulated=(env PYTHON="$work/tools/bin/python" AARCH64_SOURCE="$work/source" bash "$root/tests/aarch64.sh" --python)
  "${emulated[@]}" -m msadapter prebuild "$work/source/msadapter/_prebuilt" "${sets[@]}"
  build --wheel --outdir "$work/kernels" -C--build-option=--plat-name=linux_aarch64
  began="$(date +%s)"
  "$work/tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$work/compiled" --only-binary=:all: \
    --implementation cp --python-version 3.11 --platform linux_aarch64 "$(ls "$work"/kernels/*.whl)"
  # The packages that msadapter needs are those of tests/aarch64.sh.
  run=(PYTHONPATH="$work/compiled:$AARCH64_BUILD/packages" "$AARCH64_BUILD/bin/python")
  check_compiled "${run[@]}"
  # qemu's processor has SVE, but /proc/cpuinfo is this machine's, so the sets are named one by one.
  for library in "$work"/compiled/msadapter/_prebuilt/*/_C.so; do
    echo "with the kernels for $(basename "$(dirname "$library")"):"
    without_compiler MSADAPTER_LIBRARY="$library" "${run[@]}" -m msadapter smoke.py
  done
  cp "$work"/kernels/*.whl "$output/"
  ls -l "$output"
  exit
fi

build --outdir "$work/dist"
"$python" -m venv "$work/empty"
# Without --no-compile pip compiles all packages, which takes longer than what is used of them below.
"$work/empty/bin/pip" install --quiet --disable-pip-version-check --no-compile "$(ls "$work"/dist/*.whl)[toolkit,megatron]"
"$work/empty/bin/python" -m msadapter smoke.py
"$work/empty/bin/python" -m msadapter doctor > doctor.txt || { cat doctor.txt; exit 1; }
tail -1 doctor.txt
"$work/empty/bin/python" -m megatron_ms models qwen3-0.6b > /dev/null
"$work/empty/bin/python" -m megatron_ms --help | grep --quiet grpo
"$work/empty/bin/python" -m patches --help > /dev/null
"$work/empty/bin/python" -c 'import kernels_ascend, importlib.metadata as m; print("msadapter", m.version("msadapter"))'

if [ "$kernels" = here ]; then
  "$work/empty/bin/python" -m msadapter prebuild "$work/source/msadapter/_prebuilt" "${sets[@]}"
  rm -rf "$work/source/build" # of the first wheel
  build --wheel --outdir "$work/kernels"
  began="$(date +%s)"
  "$python" -m venv "$work/compiled"
  "$work/compiled/bin/pip" install --quiet --disable-pip-version-check "$(ls "$work"/kernels/*.whl)"
  check_compiled "$work/compiled/bin/python"
  cp "$work"/kernels/*.whl "$output/"
fi
cp "$work"/dist/* "$output/"
ls -l "$output"
