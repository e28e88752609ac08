"""Rules that say how good a completion is, for the task grpo. A rule of one's own is FILE.py:FUNCTION, called like these."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

Rule = Callable[..., list[float]]
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def equals(completions: Sequence[Any], answer: Sequence[Any], **_: Any) -> list[float]:
    """1 where the completion is the row's `answer`, blanks at its ends aside, else 0."""
    pairs = zip(completions, answer, strict=True)
    return [float(_text(one).strip() == str(right).strip()) for one, right in pairs]


def number(completions: Sequence[Any], answer: Sequence[Any], **_: Any) -> list[float]:
    """1 where the last number of the completion is the row's `answer`, else 0. Commas inside numbers do not count."""
    found = [_NUMBER.findall(_text(one).replace(",", "")) for one in completions]
    wanted = [str(right).replace(",", "") for right in answer]
    return [
        float(bool(one) and float(one[-1]) == float(right)) for one, right in zip(found, wanted, strict=True)
    ]


RULES: dict[str, Rule] = {"equals": equals, "number": number}


def _text(completion: Any) -> str:
    """The text of a completion, which for prompts of messages is a list of messages."""
    if isinstance(completion, str):
        return completion
    return "".join(str(message["content"]) for message in completion)


def split(name: str) -> tuple[Path, str] | None:
    """File and function of a rule of one's own; None for the name of one of `RULES`."""
    file, colon, function = name.rpartition(":")
    return (Path(file), function) if colon else None


def find(name: str) -> Rule:
    """The rule of a name.

    Raises:
        ValueError: there is no such rule, file or function.
    """
    own = split(name)
    if own is None:
        if name not in RULES:
            raise ValueError(f"there is no rule {name}: {', '.join(RULES)}, or FILE.py:FUNCTION")
        return RULES[name]
    file, function = own
    if file.suffix != ".py" or not file.is_file():
        raise ValueError(f"there is no file {file} with a rule: write FILE.py:FUNCTION")
    spec = importlib.util.spec_from_file_location(f"rule_of_{file.stem}", file)
    assert spec is not None and spec.loader is not None  # the name ends with .py
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rule = getattr(module, function, None)
    if not callable(rule):
        raise ValueError(f"{file} has no function {function}")
    return rule
