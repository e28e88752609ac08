#!/usr/bin/env bash
# All tests, on a fresh machine too: the set-up of auto_convert.sh, then pytest. Arguments go to pytest.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
bash auto_convert.sh --tests
export MSADAPTER_BUILD="$root/build"
exec .venv/bin/python -m pytest "$@"
