"""NeedleBench's retrieval of one needle: a sentence is hidden in a long document, and the question asks for it.

Questions, prompts and measure are those of its authors. The length of a document is counted in characters, because their count
depends on the tokenizer of another model.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..errors import UserError
from .rows import json_lines, not_empty, with_columns

DEPTHS = (0, 25, 50, 75, 100)  # percent of the document before the needle
_FILES = {
    "needlebench_en": ("PaulGrahamEssays.jsonl", "English"),
    "needlebench_zh": ("zh_finance.jsonl", "Chinese"),
}
_NEEDLES = "needles.jsonl"
LAYOUT = f"{_NEEDLES} and {' or '.join(file for file, _ in _FILES.values())}"
_REPEATS = 3
_PROMPT = {
    "English": (
        "You are an intelligent AI assistant skilled in answering user questions.\nPlease keep your answers concise and clear. "
        "Do not talk about irrelevant topics or repeat your answers.\nThe document given to you by the user is {document}\n\n"
        "Now, the question is: {question}"
    ),
    "Chinese": (
        "你是一个善于回答用户问题的智能AI助手\n请保持你的回答简洁清楚。不要说和下面文档中的无关的话，或重复你的回答\n"
        "用户现在给你的文档是{document}\n\n现在请问：{question}"
    ),
}
_HINT = {  # the text before the words that describe the form of the answer
    "English": (
        "Please answer in the format",
        "Before answering, please consider what in the document is most relevant to this question. ",
    ),
    "Chinese": ("请按照", "在回答之前，请思考文档中与此问题最相关的内容是什么。"),
}


def read(folder: Path, lengths: Sequence[int]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The rows for each language whose document is there: every length, depth and repetition."""
    place = folder / _NEEDLES
    needles = with_columns(json_lines(place), place, "language", "needle", "retrieval_question", "arg2")
    found = {}
    for subject, (name, language) in _FILES.items():
        if not (folder / name).is_file():
            continue
        texts = [str(row["text"]) for row in with_columns(json_lines(folder / name), folder / name, "text")]
        own = not_empty([row for row in needles if row["language"] == language], place)
        found[subject] = {"test": list(_rows(texts, own, language, lengths, folder / name))}
    if not found:
        raise UserError(f"{folder} has no file {' or '.join(name for name, _ in _FILES.values())}")
    return found


def _rows(
    texts: list[str], needles: list[dict[str, Any]], language: str, lengths: Sequence[int], file: Path
) -> Iterator[dict[str, Any]]:
    for length in lengths:
        if sum(map(len, texts)) < length:
            raise UserError(f"{file}: has less than {length} characters (evaluate.haystack)")
        for depth in DEPTHS:
            for number in range(_REPEATS):
                order = random.Random(number)
                needle = order.choice(needles)
                hidden = f"\n{needle['needle']}\n"
                document = "".join(order.sample(texts, len(texts)))[: max(0, length - len(hidden))]
                place = len(document) * depth // 100
                words, hint = _HINT[language]
                question = str(needle["retrieval_question"]).replace(words, hint + words, 1)
                whole = document[:place] + hidden + document[place:]
                yield {
                    "prompt": _PROMPT[language].format(document=whole, question=question),
                    "needle": str(needle["needle"]),
                    "keyword": str(needle["arg2"]),
                    "length": length,
                    "depth": depth,
                }


def task(name: str) -> dict[str, Any]:
    """The task for lm-eval."""
    return {
        "task": name,
        "output_type": "generate_until",
        "test_split": "test",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": "{{needle}}",
        "process_results": lambda doc, answers: {"needle": score(answers[0], doc["needle"], doc["keyword"])},
        "metric_list": [{"metric": "needle", "aggregation": "mean", "higher_is_better": True}],
        "generation_kwargs": {"until": [], "max_gen_toks": 200, "do_sample": False},
        "num_fewshot": 0,
        "repeats": 1,
        "metadata": {"version": 1.0},
    }


def score(answer: str, needle: str, keyword: str) -> float:
    """1 for an answer with the keyword; else a fifth of the likeness of answer and needle."""
    if keyword in answer:
        return 1.0
    one, other = re.sub(r"\s+", "", answer), re.sub(r"\s+", "", needle)
    longest = max(len(one), len(other))
    return 0.2 * (1 - _edits(one, other) / longest) if longest else 0.2


def _edits(one: str, other: str) -> int:
    """The least number of letters to add, remove or replace that make one text the other."""
    costs = list(range(len(other) + 1))
    for row, letter in enumerate(one, 1):
        corner, costs[0] = costs[0], row
        for column, wanted in enumerate(other, 1):
            cheapest = min(costs[column] + 1, costs[column - 1] + 1, corner + (letter != wanted))
            corner, costs[column] = costs[column], cheapest
    return costs[-1]


SUBJECTS = tuple(_FILES)
