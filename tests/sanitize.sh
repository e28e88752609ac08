#!/usr/bin/env bash
# The operator suite with the C++ code built with AddressSanitizer and UndefinedBehaviorSanitizer. Arguments go to pytest.
# Any report is a failure. MindSpore's libraries and Python are not instrumented.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
export MSADAPTER_SANITIZE=address,undefined
export MSADAPTER_CACHE="${MSADAPTER_CACHE:-$root/build/sanitized}" MSADAPTER_BUILD="${MSADAPTER_BUILD:-$root/build}"
reports="$MSADAPTER_CACHE/reports"
mkdir -p "$MSADAPTER_CACHE"
rm -rf "$reports"
mkdir "$reports"
.venv/bin/python -m msadapter build  # without loading it: the sanitizers must be preloaded for that

compiler="${CXX:-g++}"
preload=""
for name in libasan.so libubsan.so libstdc++.so; do  # the last one, so that exceptions are intercepted
  preload+="${preload:+:}$("$compiler" -print-file-name=$name)"
done
# Leaks are not looked for: Python and MindSpore keep most of what they allocate until the end. Too large requests return
# null, as without the sanitizer. Types that MindSpore's headers define in several libraries are no error here.
common="log_path=$reports/report:halt_on_error=0:print_stacktrace=1"
export ASAN_OPTIONS="$common:detect_leaks=0:allocator_may_return_null=1:detect_odr_violation=0:max_allocation_size_mb=8192"
export UBSAN_OPTIONS="$common"
status=0
# Left out: test_two_paths runs MindSpore's own dispatch, whose templates would be compiled with the sanitizers too, for
# many minutes, and none of this project's code would be in it.
[ $# -gt 0 ] || set -- -q tests/ops tests/csrc tests/tensor tests/nn tests/sparse tests/masked tests/func tests/autograd \
  --deselect tests/autograd/test_two_paths.py
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
