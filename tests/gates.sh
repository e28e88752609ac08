#!/usr/bin/env bash
# The checks that need no build: lint, formats, types, and the files of docker/. The same tools and versions as pyproject.toml's extra "dev".
# They live in an environment of their own, build/gates, so that the tests' environment stays as the README makes it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
tools="$(python3 -c 'from megatron_ms.convert.environment import pins_of; print(*pins_of("dev"))')"
if [ "$(cat build/gates/tools 2>/dev/null)" != "$tools" ]; then
  rm -rf build/gates
  mkdir -p build
  python3 -m venv build/gates
  # shellcheck disable=SC2086  # a list of words
  build/gates/bin/pip install --quiet --disable-pip-version-check $tools
  echo "$tools" > build/gates/tools
fi
bin=build/gates/bin
echo "ruff check";        $bin/ruff check --quiet .
echo "ruff format";       $bin/ruff format --quiet --check .
echo "clang-format";      git ls-files '*.cpp' '*.h' | xargs $bin/clang-format --dry-run --Werror
echo "mypy";              $bin/mypy --no-error-summary
echo "hadolint";           $bin/hadolint docker/*.Dockerfile
echo "compose file";       $bin/python docker/check_compose.py
echo "stubs of torch";    $bin/python -m tests.stubs.check $bin/mypy
