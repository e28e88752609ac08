#!/usr/bin/env bash
# Builds the documentation as a site into build/site. A warning, such as a link that leads nowhere, is a failure. The tools live in an
# environment of their own, with the versions of pyproject.toml's extra "docs". Arguments go to mkdocs: bash tests/site.sh serve
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools="$(python3 -c 'from megatron_ms.convert.environment import pins_of; print(*pins_of("docs"))')"
if [ "$(cat build/site-tools/tools 2>/dev/null)" != "$tools" ]; then
  rm -rf build/site-tools
  mkdir -p build
  python3 -m venv build/site-tools
  # shellcheck disable=SC2086  # a list of words
  build/site-tools/bin/pip install --quiet --disable-pip-version-check $tools
  echo "$tools" > build/site-tools/tools
fi
[ $# -gt 0 ] || set -- build --quiet
export NO_MKDOCS_2_WARNING=1
exec build/site-tools/bin/mkdocs "$1" --strict "${@:2}"
