#!/usr/bin/env bash
# Opens the course in Jupyter, in a browser on this machine: bash course/start.sh [arguments of jupyter lab]
# The first run sets up the environment of the project with the packages of its tests, which the chapters need too, and installs
# Jupyter into it.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
cd "$root"
bash auto_convert.sh --tests
.venv/bin/python -m pip install --quiet --disable-pip-version-check jupyterlab==4.6.6
exec .venv/bin/jupyter lab --notebook-dir course "$@"
