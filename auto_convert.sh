#!/usr/bin/env bash
# Sets everything up and converts Megatron Core, or with `llm` or `rl` MindSpeed's projects. See `bash auto_convert.sh --help`.
# `source auto_convert.sh ...` does the same and then sources env.sh in this shell. A failure does not close the shell.
# megatron_ms/convert does the work (standard library only). This script only finds a Python 3.10, 3.11 or 3.12.
if [ "${BASH_SOURCE[0]:-$0}" != "$0" ]; then
    __msadapter_convert() {
        local script="${BASH_SOURCE[0]}" word output="" next=""
        bash "$script" "$@" || return $?
        for word in "$@"; do
            # As in the Python program, the last --output counts.
            case "$next$word" in
            next:*) output="$word" next="" ;;
            --output) next="next:" ;;
            --output=*) output="${word#--output=}" ;;
            esac
            case "$word" in --help | -h | --check | --list) return 0 ;; esac
        done
        case "$output" in
        "") output="$(cd "$(dirname "$script")" && pwd)/build" ;;
        /*) ;;
        *) output="./$output" ;; # a name such as -x would be an option of the command below
        esac
        . "$output/env.sh"
    }
    __msadapter_convert "$@"
    __msadapter_status=$?
    unset -f __msadapter_convert
    return $__msadapter_status
fi
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"

# The Python of an environment that is already there comes first.
present="$(sed -n 's/^version *= *\(3\.[0-9]*\).*/python\1/p' "$root/.venv/pyvenv.cfg" 2>/dev/null || true)"
for candidate in "${PYTHON:-}" "$present" python3.11 python3.12 python3.10 python3 python; do
    if [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 &&
        "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null; then
        exec "$candidate" "$root/megatron_ms/convert/start.py" "$@"
    fi
done
echo "auto_convert: Python 3.10, 3.11 or 3.12 is needed (MindSpore 2.10 has wheels for them), but none was found." >&2
echo "  On Debian: apt install python3.11 python3.11-venv python3.11-dev; or set its path: PYTHON=/path/python3.11 bash $0" >&2
exit 1
