#!/usr/bin/env bash
# The tests, on a fresh machine too: the set-up of auto_convert.sh, then pytest. Arguments go to pytest. Without arguments,
# tests with the marker `extended` are left out, and several processes share the others: one more than there are cores, four
# at most, because tests wait for processes that they start. MSADAPTER_TEST_WORKERS sets another number, and
# MSADAPTER_TEST_JUNIT names a file for pytest's results.
# With --all, tests/everything.py runs everything else too: hours, and it goes on where it was stopped.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
bash auto_convert.sh --tests
export MSADAPTER_BUILD="$root/build"
unset PYTHONDONTWRITEBYTECODE # pytest keeps the tests as it has compiled them; to do so again takes half a minute of each process
if [ "${1:-}" = --all ]; then
  shift
  exec .venv/bin/python -m tests.everything "$@"
fi
if [ $# -eq 0 ]; then
  cores="$(nproc)"
  set -- -q -n "${MSADAPTER_TEST_WORKERS:-$((cores < 4 ? cores + 1 : 4))}" --dist worksteal -m "not extended" \
    ${MSADAPTER_TEST_JUNIT:+"--junitxml=$MSADAPTER_TEST_JUNIT"}
  export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}"  # threads of their own would only compete
fi
exec .venv/bin/python -m pytest "$@"
