"""Toy data of every benchmark in its own layout. Question n has answer n modulo the number of choices."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

QUESTIONS = 8


def _write(path: Path, rows: list, header: list[str] | None = None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        if header:
            writer.writerow(header)
        writer.writerows(rows)


def _lines(path: Path, rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def _choices(n: int) -> list[str]:
    return [f'{word} "{n}", said' for word in ("eins", "zwei", "drei", "vier")]


def mmlu(folder: Path) -> None:
    for subject in ("anatomy", "world_religions"):
        for split in ("test", "dev"):
            rows = [[f"Which, {n}?", *_choices(n), "ABCD"[n % 4]] for n in range(QUESTIONS)]
            _write(folder / split / f"{subject}_{split}.csv", rows)


def cmmlu(folder: Path) -> None:
    for split in ("test", "dev"):
        rows = [[n, f"哪一个 {n}?", *_choices(n), "ABCD"[n % 4]] for n in range(QUESTIONS)]
        _write(folder / split / "anatomy.csv", rows, ["", "Question", "A", "B", "C", "D", "Answer"])


def ceval(folder: Path) -> None:
    for split in ("val", "dev"):
        rows = [[n, f"哪一个 {n}?", *_choices(n), "ABCD"[n % 4]] for n in range(QUESTIONS)]
        _write(
            folder / split / f"accountant_{split}.csv", rows, ["id", "question", "A", "B", "C", "D", "answer"]
        )


def agieval(folder: Path) -> None:
    rows = [
        {
            "passage": "P" if n % 2 else None,
            "question": f"Q {n}",
            "options": [f"({letter}) {n}" for letter in "ABCDE"],
            "label": "ABCDE"[n % 5],
            "other": None,
        }
        for n in range(QUESTIONS)
    ]
    _lines(folder / "lsat-ar.jsonl", rows)


def agieval_more(folder: Path) -> None:
    """A file in Chinese, and both files whose answers are written."""
    written = [
        {"passage": None, "question": f"{n} + 1 = ?", "options": None, "label": None, "answer": str(n + 1)}
        for n in range(4)
    ]
    for name in ("math", "gaokao-mathcloze"):
        _lines(folder / f"{name}.jsonl", written)
    options = [f"({letter}){letter}" for letter in "ABCD"]
    rows = [{"passage": "文", "question": "问", "options": options, "label": "B", "answer": None}]
    _lines(folder / "gaokao-physics.jsonl", rows)


def needlebench(folder: Path) -> None:
    needles = [
        {
            "language": language,
            "needle": f"The treasure of {n} is gold {n}.",
            "retrieval_question": f"What is it? {words} 'x'.",
            "arg2": f"gold {n}",
        }
        for language, words in (("English", "Please answer in the format"), ("Chinese", "请按照"))
        for n in range(3)
    ]
    _lines(folder / "needles.jsonl", needles)
    _lines(folder / "PaulGrahamEssays.jsonl", [{"text": f"Nothing at {n}. " * 60} for n in range(10)])


def bbh(folder: Path) -> None:
    folder.mkdir(parents=True)
    examples = [{"input": f"not {bool(n % 2)} is", "target": str(not n % 2)} for n in range(QUESTIONS)]
    (folder / "boolean_expressions.json").write_text(json.dumps({"canary": "", "examples": examples}))


def boolq(folder: Path) -> None:
    for name in ("val", "train"):
        rows = [
            {"question": f"is it {n}", "passage": "It is.", "idx": n, "label": n % 2 == 0}
            for n in range(QUESTIONS)
        ]
        _lines(folder / f"{name}.jsonl", rows)


def gsm8k(folder: Path) -> None:
    for name in ("test", "train"):
        rows = [
            {"question": f"{n} and 1?", "answer": f"So many.\n#### {1000 + n:,}"} for n in range(QUESTIONS)
        ]
        _lines(folder / f"{name}.jsonl", rows)


def hellaswag(folder: Path) -> None:
    rows = [
        {
            "ind": n,
            "activity_label": "Cooking",
            "ctx_a": "A man cooks.",
            "ctx_b": "he",
            "ctx": "A man cooks. he",
            "endings": [f"does {n}. [step] {i}" for i in range(4)],
            "label": n % 4,
        }
        for n in range(QUESTIONS)
    ]
    _lines(folder / "hellaswag_val.jsonl", rows)


def humaneval(folder: Path) -> None:
    rows = [
        {
            "task_id": f"HumanEval/{n}",
            "prompt": f"def add{n}(a, b):\n",
            "canonical_solution": f"    return a + b + {n}\n",
            "test": f"def check(candidate):\n    assert candidate(1, 2) == {3 + n}\n",
            "entry_point": f"add{n}",
        }
        for n in range(4)
    ]
    folder.mkdir(parents=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "HumanEval.jsonl.gz").write_bytes(gzip.compress(text.encode()))


ALL: dict[str, Callable[[Path], None]] = {
    "mmlu": mmlu,
    "cmmlu": cmmlu,
    "ceval": ceval,
    "agieval": agieval,
    "bbh": bbh,
    "boolq": boolq,
    "gsm8k": gsm8k,
    "hellaswag": hellaswag,
    "needlebench": needlebench,
    "humaneval": humaneval,
}
