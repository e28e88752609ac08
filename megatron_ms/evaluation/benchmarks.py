"""The benchmarks: where lm-eval's tasks of each are, and how the files that its authors publish become their rows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError
from . import needles
from .rows import Rows, json_lines, not_empty, table, value_of, with_columns

Subjects = dict[str, dict[str, Rows]]  # task of lm-eval -> split -> rows
_LETTERS = "ABCDEFGHIJ"


@dataclass(frozen=True)
class Benchmark:
    """A benchmark.

    about: what it asks, in one line.
    layout: the files below the named folder.
    tasks: the folder of its tasks in lm-eval, or None if the task is defined here.
    read: the rows of each subject of a folder, in the columns that lm-eval's task expects.
    runs_code: whether answers are programs that must be run.
    haystack: whether the lengths of evaluate.haystack are asked for: `read` gets them too.
    """

    about: str
    layout: str
    tasks: str | None
    read: Callable[..., Subjects]
    runs_code: bool = False
    haystack: bool = False


def _letter(row: dict[str, Any], name: str, path: Path, number: int, choices: int = 4) -> int:
    """The number of the choice that a letter names."""
    return _place(value_of(row, name, path, number), name, path, number, choices)


def _place(value: object, name: str, path: Path, number: int, choices: int) -> int:
    letter = str(value).strip()
    if len(letter) != 1 or letter not in _LETTERS[:choices]:
        raise UserError(
            f"{path}, row {number}: {name} must be a letter up to {_LETTERS[choices - 1]}, not {letter!r}"
        )
    return _LETTERS.index(letter)


def _files(folder: Path, pattern: str, ending: str) -> dict[str, Path]:
    """Subject -> file, for the files of a folder that match a pattern. UserError if there is none."""
    found = {path.name.removesuffix(ending): path for path in sorted(folder.glob(pattern))}
    if not found:
        raise UserError(f"{folder} has no files {pattern}")
    return found


def _file(folder: Path, *names: str) -> Path:
    """The first of these files that exists. The folder may also be the file itself."""
    if folder.is_file():
        return folder
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise UserError(f"{folder} has no file {' or '.join(names)}")


# ---------------------------------------------------------------- knowledge, by subject
def _mmlu(folder: Path) -> Subjects:
    found: Subjects = {}
    for subject, path in _files(folder / "test", "*_test.csv", "_test.csv").items():
        shots = _file(folder / "dev", f"{subject}_dev.csv")
        found[f"mmlu_{subject}"] = {"test": _mmlu_rows(path), "dev": _mmlu_rows(shots)}
    return found


def _mmlu_rows(path: Path) -> Rows:
    rows = table(path, ["question", "A", "B", "C", "D", "answer"])
    return [
        {
            "question": row["question"],
            "choices": [row[letter] for letter in "ABCD"],
            "answer": _letter(row, "answer", path, number),
        }
        for number, row in enumerate(rows, 1)
    ]


def _cmmlu(folder: Path) -> Subjects:
    columns = ("Question", "A", "B", "C", "D", "Answer")
    return {
        f"cmmlu_{subject}": _lettered({"test": path, "dev": _file(folder / "dev", f"{subject}.csv")}, columns)
        for subject, path in _files(folder / "test", "*.csv", ".csv").items()
    }


def _ceval(folder: Path) -> Subjects:
    columns = ("question", "A", "B", "C", "D", "answer")
    return {
        f"ceval-valid_{subject}": _lettered(
            {"val": path, "dev": _file(folder / "dev", f"{subject}_dev.csv")}, columns
        )
        for subject, path in _files(folder / "val", "*_val.csv", "_val.csv").items()
    }


def _lettered(splits: dict[str, Path], columns: tuple[str, ...]) -> dict[str, Rows]:
    """The rows of CSV files whose last column has the letter of the right choice."""
    found = {name: with_columns(table(path), path, *columns) for name, path in splits.items()}
    for name, path in splits.items():
        for number, row in enumerate(found[name], 1):
            _letter(row, columns[-1], path, number)
    return found


# The files of AGIEval whose questions are asked in Chinese, and those whose answers are written, not chosen.
_CHINESE = re.compile(r"logiqa-zh|jec-qa-.*|gaokao-(?!english).*")
_WRITTEN = {"math", "gaokao-mathcloze"}


def _agieval(folder: Path) -> Subjects:
    found: Subjects = {}
    for subject, path in _files(folder, "*.jsonl", ".jsonl").items():
        chinese = _CHINESE.fullmatch(subject) is not None
        ask = _agieval_written if subject in _WRITTEN else _agieval_chosen
        rows = [ask(row, path, number, chinese) for number, row in enumerate(json_lines(path), 1)]
        found[f"agieval_{subject.replace('-', '_')}"] = {"test": rows}
    return found


def _agieval_chosen(row: dict[str, Any], path: Path, number: int, chinese: bool) -> dict[str, Any]:
    options = value_of(row, "options", path, number)
    if not isinstance(options, list) or not options:
        raise UserError(f"{path}, row {number}: options must be a list of choices")
    label = value_of(row, "label", path, number)
    right = label if isinstance(label, list) and label else [label]  # some exams have several right choices
    gold = [_place(one, "label", path, number, len(options)) for one in right]
    last, choices = _LETTERS[len(options) - 1], " ".join(map(str, options))
    wanted = (
        f" 选项：{choices}\n答案：从A到{last}, 我们应选择"
        if chinese
        else f" Answer Choices: {choices}\nA: Among A through {last}, the answer is"
    )
    query = _agieval_question(row, path, number, chinese) + wanted
    return {"query": query, "choices": [f"({_LETTERS[i]})" for i in range(len(options))], "gold": gold}


def _agieval_written(row: dict[str, Any], path: Path, number: int, chinese: bool) -> dict[str, Any]:
    answer = value_of(row, "answer", path, number)
    if not isinstance(answer, str) or not answer:
        raise UserError(f"{path}, row {number}: answer must be a text, not {answer!r}")
    query = _agieval_question(row, path, number, chinese) + ("\n答案：" if chinese else "\nA: The answer is")
    return {"query": query, "answer": answer}


def _agieval_question(row: dict[str, Any], path: Path, number: int, chinese: bool) -> str:
    passage = f"{row['passage']}\n" if row.get("passage") else ""
    return f"{passage}{'问题：' if chinese else 'Q: '}{value_of(row, 'question', path, number)}"


def _bbh(folder: Path) -> Subjects:
    found: Subjects = {}
    for subject, path in _files(folder, "*.json", ".json").items():
        try:
            content = json.loads(path.read_text(encoding="utf-8-sig"))
            examples = content["examples"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise UserError(f"{path}: the file must be JSON with a list `examples`: {error}") from None
        if not isinstance(examples, list) or not all(isinstance(row, dict) for row in examples):
            raise UserError(f"{path}: `examples` must be a list of objects")
        rows = with_columns(not_empty(examples, path), path, "input", "target")
        found[f"bbh_cot_fewshot_{subject}"] = {"test": rows}
    return found


# ---------------------------------------------------------------- one file each
def _boolq(folder: Path) -> Subjects:
    path = _file(folder, "val.jsonl", "dev.jsonl")
    splits = {"validation": _boolq_rows(path)}
    if (shots := path.with_name("train.jsonl")).is_file():
        splits["train"] = _boolq_rows(shots)
    return {"boolq": splits}


def _boolq_rows(path: Path) -> Rows:
    rows = []
    for number, row in enumerate(json_lines(path), 1):
        label = row["label"] if "label" in row else value_of(row, "answer", path, number)
        if not isinstance(label, bool):
            raise UserError(f"{path}, row {number}: the answer must be true or false, not {label!r}")
        text = {name: value_of(row, name, path, number) for name in ("question", "passage")}
        rows.append({**text, "label": int(label)})
    return rows


def _gsm8k(folder: Path) -> Subjects:
    path = _file(folder, "test.jsonl")
    shots = path.with_name("train.jsonl")
    rows = with_columns(json_lines(path), path, "question", "answer")
    return {"gsm8k": {"test": rows, "train": with_columns(json_lines(shots), shots, "question", "answer")}}


def _hellaswag(folder: Path) -> Subjects:
    path = _file(folder, "hellaswag_val.jsonl")
    splits = {"validation": _hellaswag_rows(path)}
    if (shots := path.with_name("hellaswag_train.jsonl")).is_file():
        splits["train"] = _hellaswag_rows(shots)
    return {"hellaswag": splits}


def _hellaswag_rows(path: Path) -> Rows:
    rows = with_columns(json_lines(path), path, "activity_label", "ctx_a", "ctx_b", "endings", "label")
    for number, row in enumerate(rows, 1):
        endings, label = row["endings"], str(row["label"])
        if not isinstance(endings, list) or not label.isdigit() or int(label) >= len(endings):
            raise UserError(f"{path}, row {number}: label {label!r} names none of the endings")
        row["label"] = label
    return rows


def _humaneval(folder: Path) -> Subjects:
    path = _file(folder, "HumanEval.jsonl", "HumanEval.jsonl.gz")
    return {
        "humaneval": {
            "test": with_columns(json_lines(path), path, "task_id", "prompt", "test", "entry_point")
        }
    }


BENCHMARKS: dict[str, Benchmark] = {
    "mmlu": Benchmark(
        "57 subjects, four choices",
        "test/SUBJECT_test.csv and dev/SUBJECT_dev.csv, without a header",
        "mmlu",
        _mmlu,
    ),
    "cmmlu": Benchmark(
        "67 subjects in Chinese, four choices", "test/SUBJECT.csv and dev/SUBJECT.csv", "cmmlu", _cmmlu
    ),
    "ceval": Benchmark(
        "52 subjects in Chinese, four choices", "val/SUBJECT_val.csv and dev/SUBJECT_dev.csv", "ceval", _ceval
    ),
    "agieval": Benchmark(
        "entrance exams, with choices or written answers, as of AGIEval v1",
        "NAME.jsonl, such as lsat-ar.jsonl",
        "agieval",
        _agieval,
    ),
    "bbh": Benchmark("hard tasks of BIG-Bench, answered step by step", "NAME.json", "bbh", _bbh),
    "boolq": Benchmark("yes or no about a passage", "val.jsonl or dev.jsonl", "super_glue/boolq", _boolq),
    "gsm8k": Benchmark("arithmetic in words", "test.jsonl and train.jsonl", "gsm8k", _gsm8k),
    "hellaswag": Benchmark("how a scene goes on", "hellaswag_val.jsonl", "hellaswag", _hellaswag),
    "needlebench": Benchmark(
        "a sentence that is hidden in a long document, in English and Chinese",
        needles.LAYOUT,
        None,
        needles.read,
        haystack=True,
    ),
    "humaneval": Benchmark(
        "functions in Python; needs --allow-code, because it runs what the model writes",
        "HumanEval.jsonl or HumanEval.jsonl.gz",
        None,
        _humaneval,
        runs_code=True,
    ),
}
