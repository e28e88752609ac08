#!/usr/bin/env bash
# Builds the source archive and the wheel, installs the wheel into an empty environment, and lets that compute:
#
#     bash tests/wheel.sh [FOLDER]         # FOLDER receives the two files (default: build/wheel)
#
# PYTHON names another Python 3.11 or 3.12. Nothing of the checkout is importable there. The first import compiles the CPU kernels,
# unless the cache has them (5 minutes).
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
python="${PYTHON:-python3.11}"
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
cp "$work"/dist/* "$output/"
ls -l "$output"
