#!/usr/bin/env bash
# Sets everything up, converts Megatron Core and, with --train, trains a GPT. `bash auto_convert.sh --help` tells more.
# The work is done by megatron_ms/convert (standard library only); here we only find a Python 3.11.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

for candidate in "${PYTHON:-}" python3.11 python3 python; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 &&
        "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
        # -P: a folder of the same name in the working directory must not be taken for ours.
        PYTHONPATH="$root" exec "$candidate" -P -m megatron_ms.convert "$@"
    fi
done
echo "auto_convert: Python 3.11 is needed (MindSpore 2.10's wheel is for it) and none was found." >&2
echo "  On Debian: apt install python3.11 python3.11-venv python3.11-dev; or name one: PYTHON=/path/python3.11 bash $0" >&2
exit 1
