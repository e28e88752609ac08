"""Writes golden/upstream.json: the hashes of what MindSpeed-LLM's own preprocess_data.py makes of the cases."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.toolkit.data.upstream_cases import GOLDEN, run_upstream


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = run_upstream(Path(folder), [Path(word).resolve() for word in sys.argv[1:]])
    GOLDEN.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
