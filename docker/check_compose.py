"""Checks compose.yaml against the Compose specification, without Docker: python docker/check_compose.py

Needs compose-spec, which tests/gates.sh installs. A misspelt key or a network that is not declared is an error, and exit code 1.
"""

from __future__ import annotations

import sys
from pathlib import Path

from compose_spec import PyOptions

FILE = Path(__file__).with_name("compose.yaml")


def main() -> int:
    options = PyOptions()
    options.apply_merge = True  # both services begin with the same part (<<)
    try:
        options.from_yaml(FILE.read_text(encoding="utf-8")).validate()
    except ValueError as error:
        print(f"{FILE}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
