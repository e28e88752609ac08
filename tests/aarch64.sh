#!/usr/bin/env bash
# The tests of the operators on aarch64, which qemu emulates on a machine of another kind:
#
#     bash tests/aarch64.sh                        # tests/ops; hours, because every instruction is emulated
#     bash tests/aarch64.sh --every 10 tests/ops   # every tenth case of a test, and each operator at least once (tests/sampling.py)
#     bash tests/aarch64.sh tests/nested -k sum    # arguments go to pytest
#     bash tests/aarch64.sh --python -m msadapter doctor   # the emulated Python alone; nothing is compiled before
#
# On Debian, it needs `apt install qemu-user-static g++-aarch64-linux-gnu`. Everything else comes into build/aarch64, and
# nothing into the system: Python from Debian's packages for arm64, which are unpacked and not installed; MindSpore and the other
# packages from the package index, as their wheels for aarch64; the kernels, compiled by the cross compiler. What is there is kept
# for the next run. AARCH64_CPU chooses the kernels' instruction set (armv8-a, or another one of msadapter/_host/instructions.py).
# AARCH64_MEMORY limits the memory of the run, in GiB. tests/ops/test_extreme_integers.py needs AARCH64_MEMORY=12: it expects
# errors where a limit is exceeded that it sets for itself, and qemu does not apply such a limit. AARCH64_SOURCE names another
# copy of the sources than this checkout.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
home="${AARCH64_BUILD:-$root/build/aarch64}"
sysroot="$home/sysroot"
sources="${AARCH64_SOURCE:-$root}"
python="${PYTHON:-$root/.venv/bin/python}"
mkdir -p "$home"

for tool in qemu-aarch64-static aarch64-linux-gnu-g++ apt-get dpkg-deb; do
  command -v "$tool" > /dev/null || { echo "tests/aarch64.sh: $tool is missing: apt install qemu-user-static g++-aarch64-linux-gnu" >&2; exit 1; }
done

# Debian's packages for arm64, with a state of apt's that knows no installed package. Signatures are checked as always.
if [ ! -e "$home/sysroot.done" ]; then
  echo "Python for aarch64, from Debian's packages"
  apt="$home/apt"
  rm -rf "$apt" "$sysroot"
  mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$sysroot"
  : > "$apt/status"
  options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Dir::State="$apt/state"
    -o Dir::State::status="$apt/status" -o Dir::Cache="$apt/cache" -o Debug::NoLocking=1 -o APT::Install-Recommends=false -qq)
  apt-get "${options[@]}" update
  apt-get "${options[@]}" --yes --download-only install python3.11 libpython3.11-dev libstdc++6 libgomp1 > "$home/apt.log"
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$sysroot"; done
  rm -rf "$apt"
  touch "$home/sysroot.done"
fi

# The interpreter, and the compiler that it calls. PYTHONHOME keeps it away from the standard library of this machine's Python. qemu is
# named by its path, because a test may run the interpreter with an empty PATH.
mkdir -p "$home/bin"
cat > "$home/bin/python" <<PROGRAM
#!/bin/sh
PYTHONHOME="$sysroot/usr" exec $(command -v qemu-aarch64-static) -L "$sysroot" -0 "\$0" "$sysroot/usr/bin/python3.11" "\$@"
PROGRAM
cat > "$home/bin/g++" <<PROGRAM
#!/bin/sh
exec aarch64-linux-gnu-g++ -idirafter "$sysroot/usr/include" -Wno-psabi "\$@"
PROGRAM
chmod +x "$home/bin/python" "$home/bin/g++"

# The packages, as pyproject.toml pins them.
wanted="$(cd "$root" && "$python" <<'PROGRAM'
from megatron_ms.convert.environment import pins_of

print(*pins_of(None, (3, 11)), *(pin for pin in pins_of("test", (3, 11)) if "xdist" not in pin), sep="\n")
PROGRAM
)"
if [ "$(cat "$home/packages.done" 2> /dev/null)" != "$wanted" ]; then
  echo "the packages for aarch64"
  rm -rf "$home/packages"
  platforms=()
  for tag in manylinux_2_35 manylinux_2_34 manylinux_2_28 manylinux_2_27 manylinux_2_26 manylinux_2_24 manylinux_2_17 manylinux2014; do
    platforms+=(--platform "${tag}_aarch64")
  done
  mapfile -t names <<< "$wanted"
  "$python" -m pip install --quiet --disable-pip-version-check --target "$home/packages" --only-binary=:all: --implementation cp \
    --python-version 3.11 "${platforms[@]}" "${names[@]}"
  echo "$wanted" > "$home/packages.done"
fi

export PYTHONPATH="$sources:$home/packages" PYTHONDONTWRITEBYTECODE=1
export CXX="$home/bin/g++" MSADAPTER_CACHE="$home/cache" MSADAPTER_CPU="${AARCH64_CPU:-armv8-a}"
export MSADAPTER_SLOWER="${MSADAPTER_SLOWER:-20}" # the time limits of single cases, times this
cd "$sources"
if [ "${1:-}" = --python ]; then
  shift
  exec "$home/bin/python" "$@"
fi
"$home/bin/python" -c 'import platform, sys; print("Python", platform.python_version(), platform.machine(), sys.executable)'
"$home/bin/python" -m msadapter build
if [ -n "${AARCH64_MEMORY:-}" ]; then ulimit -v $((AARCH64_MEMORY << 20)); fi
exec "$home/bin/python" -m pytest -p no:cacheprovider "${@:-tests/ops}"
