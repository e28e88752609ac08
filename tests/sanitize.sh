#!/usr/bin/env bash
# Runs tests with the C++ code built with AddressSanitizer and UndefinedBehaviorSanitizer. Arguments go to pytest. Any report
# is a failure.
#
# Every source of msadapter/csrc is instrumented, which is checked below. Not instrumented are:
# - the library of MindSpore's operators (device/pyboost_bind.h and the sources that are generated from it). It serves
#   MSADAPTER_FAST=0 and accelerators, takes many minutes more to compile, and consists almost only of MindSpore's templates.
#   The only test that needs it, tests/autograd/test_two_paths.py, is left out.
# - Python, MindSpore, oneDNN and LAPACK. Memory that they allocate is watched, but not their own accesses, except those in
#   functions of the C library. A defect of MindSpore that is found so is listed in sanitize.suppressions.
# Of the checks, "vptr" is off (see msadapter/_host/native.py). Two are not part of "undefined" in GCC: float-divide-by-zero,
# because elements are divided by zero on purpose, and float-cast-overflow, because floats that no integer holds are converted
# as the processor does it, as in PyTorch.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
export MSADAPTER_SANITIZE=address,undefined
export MSADAPTER_CACHE="${MSADAPTER_CACHE:-$root/build/sanitized}" MSADAPTER_BUILD="${MSADAPTER_BUILD:-$root/build}"
reports="$MSADAPTER_CACHE/reports"
mkdir -p "$MSADAPTER_CACHE"
rm -rf "$reports"
mkdir "$reports"
# The build command loads nothing: the sanitizers must be preloaded for that.
library="$(.venv/bin/python -m msadapter build | tail -1)"
# AddressSanitizer gives each object file a constructor of this name. A unit of compilation may include several sources.
instrumented="$(nm "$library" | grep -c ' _sub_I_00099_1$' || true)"
units="$(readelf --symbols --wide "$library" | awk '$4 == "FILE" && $8 ~ /[.]cpp$/' | wc -l)"
echo "$instrumented of $units units of compilation are instrumented"
[ "$units" -gt 0 ] && [ "$instrumented" -eq "$units" ] || { echo "$library: a unit is not instrumented" >&2; exit 1; }

compiler="${CXX:-g++}"
preload=""
for name in libasan.so libubsan.so libstdc++.so; do  # the last one, so that exceptions are intercepted
  preload+="${preload:+:}$("$compiler" -print-file-name=$name)"
done
# Leaks are not looked for: Python and MindSpore keep most of what they allocate until the end. Too large requests return
# null, as without the sanitizer. Types that MindSpore's headers define in several libraries are not errors here.
common="log_path=$reports/report:halt_on_error=0:print_stacktrace=1"
export ASAN_OPTIONS="$common:suppressions=$root/tests/sanitize.suppressions:detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0:max_allocation_size_mb=8192"
export UBSAN_OPTIONS="$common"
status=0
[ $# -gt 0 ] || set -- -q tests/ops tests/csrc tests/tensor tests/nn tests/sparse tests/masked tests/func tests/autograd \
  tests/kernels tests/optim tests/amp tests/profiler --deselect tests/autograd/test_two_paths.py
# UndefinedBehaviorSanitizer writes to the standard error stream whatever log_path says, when AddressSanitizer is loaded
# before it. --capture=sys keeps pytest from taking that stream, and child processes inherit it.
LD_PRELOAD="$preload" .venv/bin/python -m pytest --capture=sys "$@" 2> "$reports/stderr" || status=$?
if grep -q -E 'ERROR: AddressSanitizer|runtime error:' "$reports"/*; then
  grep -h -A 8 -E 'ERROR: AddressSanitizer|runtime error:' "$reports"/* | head -200
  echo "the sanitizers reported errors, see $reports" >&2
  exit 1
fi
[ "$status" -eq 0 ] || cat "$reports/stderr" >&2
exit "$status"
