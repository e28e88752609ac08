"""Writes docs/mindspeed_targets.md: what MindSpeed replaces for MindSpore, and why msadapter needs none of it.

    MSADAPTER_RECORD_TARGETS=FOLDER python -m pytest tests/npu/test_mindspeed_llm.py ...      records (entered.py)
    python -m tests.npu.targets FOLDER                                                        adds these records

The records are kept in data/entered.json: name -> the first tests in which it ran.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from tests.npu import entered

ROOT = Path(__file__).resolve().parents[2]

KNOWN = Path(__file__).parent / "data" / "entered.json"
PAGE = ROOT / "docs" / "mindspeed_targets.md"
_SHOWN = 2  # number of tests in a row of the table

_HEAD = """# What MindSpeed replaces for MindSpore

With `--ai-framework mindspore`, MindSpeed 2.3.0 and MindSpeed-LLM 2.3.0 replace {all} names at run time. msadapter runs their
PyTorch flavour, which uses none of these replacements. For each name, the table says why the replacement is unnecessary (or
which patch takes its place) and what proves it. For {ran} names the proof is a test that trains with upstream's unmodified
sources: during this test the function of that name in the PyTorch flavour was called (`tests/npu/entered.py`
says how). The other proofs are:

- operator: an operator of `kernels_ascend` with its own tests
- suites: [upstream's own tests](suites.md) run
- patch: one of the two [run-time patches](patches.md) of MindSpeed
- not run: no test here calls the function; nothing is known to be missing

| name | why no replacement is needed | proof |
|---|---|---|
"""


def records(folder: Path) -> dict[str, list[str]]:
    """Name -> the tests that called its function, sorted by name."""
    found: dict[str, set[str]] = {}
    for path in folder.glob("*.json"):
        told = json.loads(path.read_text(encoding="utf-8"))
        test = re.sub(r" \(\w+\)$", "", told["run"]).rpartition("/")[2]
        for name in told["entered"]:
            found.setdefault(name, set()).add(test)
    return {name: sorted(tests) for name, tests in sorted(found.items())}


def page(known: dict[str, list[str]]) -> str:
    """The text of docs/mindspeed_targets.md."""
    rows = entered.targets()
    lines = []
    for row in rows:
        tests = [f"`{test.replace('.py::', ': ')}`" for test in known.get(row["name"], ())[:_SHOWN]]
        shown = "; ".join([*tests, *([row["shown"]] if row["shown"] else [])]) or "not run"
        lines.append(f"| `{row['name']}` | {row['why']} | {shown} |\n")
    ran = sum(row["name"] in known for row in rows)
    return _HEAD.format(all=len(rows), ran=ran) + "".join(lines)


def main() -> None:
    known: dict[str, list[str]] = json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}
    for folder in sys.argv[1:]:
        for name, tests in records(Path(folder)).items():
            known[name] = sorted({*known.get(name, ()), *tests})[:_SHOWN]
    KNOWN.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(known), encoding="utf-8")


if __name__ == "__main__":
    main()
