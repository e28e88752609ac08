"""Writes docs/mindspeed_targets.md: what MindSpeed replaces for MindSpore, and what shows that nothing needs it here.

    MSADAPTER_RECORD_TARGETS=FOLDER python -m pytest tests/npu/test_mindspeed_llm.py ...      records (entered.py)
    python tests/npu/targets.py FOLDER                                                        joins it with what is known

The records are kept as data/entered.json: name -> the first tests in which it has run.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import entered  # noqa: E402 its place is known now

KNOWN = Path(__file__).parent / "data" / "entered.json"
PAGE = ROOT / "docs" / "mindspeed_targets.md"
_SHOWN = 2  # tests that a line names

_HEAD = """# What MindSpeed patches for MindSpore, and what answers here

With `--ai-framework mindspore` MindSpeed 2.3.0 and MindSpeed-LLM 2.3.0 replace {all} names at run time. The PyTorch flavour
runs here, so that none of them is used. A line each: why the replacement is unnecessary, or which patch answers, and what
shows it. {ran} of them are entered by a test that trains with upstream's unmodified sources, which is then named: a function
that stands at that name in the PyTorch flavour was called there ([how it is recorded](../tests/npu/entered.py)).

- operator: a kernel, tested by itself ([kernels_ascend](../kernels_ascend)); suites: upstream's own tests run
  ([suites](suites.md)); patch: one of the two [run-time patches](patches.md) of MindSpeed answers
- not run: nothing is known to be missing, and no test here enters it

| name | why no replacement is needed | shown by |
|---|---|---|
"""


def records(folder: Path) -> dict[str, list[str]]:
    """name -> tests that have entered it, in the order of their names."""
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
