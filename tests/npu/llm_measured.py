"""Rows of MindSpeed-LLM that were measured: the release, the largest difference of a loss, and the day, in llm_measured.tsv.

python -m pytest tests/npu/test_mindspeed_llm.py tests/npu/test_mindspeed_llm_examples.py --junitxml=results.xml
python -m tests.npu.llm_measured results.xml    # adds what passed, and removes what failed
python -m tests.npu.llm_features                # writes the page again
"""

from __future__ import annotations

import csv
import sys
import xml.etree.ElementTree as ElementTree  # of files that pytest has just written
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("llm_measured.tsv")


@dataclass(frozen=True, order=True)
class Measured:
    """One row that holds: the losses of two trainings differ by at most `difference`."""

    release: str
    row: str
    difference: str
    day: str


def read(table: Path = TABLE) -> list[Measured]:
    """The rows of a table, such as that of MindSpeed-LLM."""
    if not table.exists():
        return []
    with table.open(encoding="utf-8", newline="") as file:
        return [Measured(*line) for line in csv.reader(file, delimiter="\t")]


def write(rows: list[Measured], table: Path = TABLE) -> None:
    """Replaces the rows of a table."""
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(
            (row.release, row.row, row.difference, row.day) for row in sorted(rows)
        )


def results(path: Path) -> tuple[list[Measured], set[str]]:
    """(the rows that passed, the names of those that failed) of a result file of pytest."""
    passed, failed = [], set()
    for suite in ElementTree.parse(path).getroot().iter("testsuite"):
        day = suite.get("timestamp", "")[:10]
        for case in suite.iter("testcase"):
            found = {p.get("name"): p.get("value", "") for p in case.iter("property")}
            if not {"row", "release"} <= found.keys():
                continue
            if case.find("failure") is not None or case.find("error") is not None:
                failed.add(f"{found['release']} {found['row']}")
            elif case.find("skipped") is None:
                difference = f"{float(found['largest_difference']):.1e}"
                passed.append(Measured(str(found["release"]), str(found["row"]), difference, day))
    return passed, failed


def merged(known: list[Measured], passed: list[Measured], failed: set[str]) -> list[Measured]:
    table = {f"{row.release} {row.row}": row for row in [*known, *passed]}
    return [row for name, row in table.items() if name not in failed]


if __name__ == "__main__":
    good, bad = results(Path(sys.argv[1]))
    write(merged(read(), good, bad))
    print(f"{len(good)} rows passed, {len(bad)} failed; see {TABLE}")
