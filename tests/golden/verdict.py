"""How an answer is judged against PyTorch's: one table of tolerances, and the failures that are known.

`known_failures.tsv` has a line for every case that is known to differ: suite, case (a regular expression for the whole
name) and the reason, with tabs between. Lines of the suite `plain:NAME` count only with MSADAPTER_FAST=0, where every call
goes through MindSpore's operators as it does on Ascend. A case fails when it differs and no line names it, and when a line
names it and it no longer differs.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tests.golden import store
from tests.golden.answers import outcome
from tests.golden.suites import SUITES

FILE = Path(__file__).resolve().with_name("known_failures.tsv")


@dataclass(frozen=True)
class Rule:
    """How much a number may differ.

    tolerance: relative difference by dtype; other dtypes agree exactly. Numbers outside tensors count as float32.
    floor: the magnitude below which a difference counts absolutely, since sums of larger numbers leave such remainders.
    share: the part of the largest magnitude of its tensor that counts in place of an element's own, if that is smaller.
    strides: whether the strides of results are compared.
    signs_of_zero: whether +0.0 and -0.0 differ.
    """

    tolerance: Mapping[str, float]
    floor: float = 1.0
    share: float = 0.0
    strides: bool = True
    signs_of_zero: bool = False


# Sums of many terms, by the dtype of the result.
SUMS = {
    "float64": 1e-9,
    "complex128": 1e-9,
    "float32": 2e-5,
    "complex64": 2e-5,
    "float16": 4e-3,
    "bfloat16": 2e-2,
}
# One operation on each number: the last bits, which differ between C libraries.
SINGLE = {
    "float64": 1e-12, "complex128": 1e-12, "float32": 2e-6, "complex64": 2e-6, "float16": 1e-3, "bfloat16": 1.6e-2,
}  # fmt: skip
DEFAULT = Rule(SUMS)
SPREAD = Rule(SUMS, share=1)


def _plain(relative: float, **options) -> Rule:
    """The rule for answers whose numbers are not in tensors."""
    return Rule({"float32": relative}, **options)


# The table of tolerances. The first line whose suite and case (a regular expression) fit is taken; else DEFAULT.
RULES: list[tuple[str, str, Rule]] = [
    ("amp", ".*", _plain(1e-6, floor=0)),
    ("aten|complex32|float8|further_names|rare_methods|sparse|storages", ".*", Rule(SINGLE)),
    ("autograd|backends|futures|fx|jit|optim_cases|programs|tensor|testing|utils", ".*", Rule(SINGLE)),
    ("data", ".*", _plain(0)),
    # PyTorch computes the derivative of gamma samples with an error of about 1e-4.
    ("distributions", "slopes.*", _plain(1e-3)),
    ("distributions", ".*", replace(DEFAULT, strides=False)),
    ("dtensor", ".*", _plain(1e-5, floor=0.1)),
    ("flex_attention", ".*", Rule(SUMS, strides=False)),
    # The vectorised code of PyTorch leaves some results permuted.
    ("func", ".*", Rule(SINGLE, strides=False)),
    ("masked", ".*half.*", Rule(dict.fromkeys(SINGLE, 1e-3))),
    ("masked", ".*", Rule(SINGLE)),
    # Initial values depend on the generator only.
    ("nn_cases", "init .*", _plain(1e-6)),
    ("nested|quantized_training", ".*", Rule(SINGLE, strides=False)),
    ("nn_scenarios", ".*", _plain(1e-4, floor=0.2)),  # rounded to five digits
    ("optim", "optimizer lbfgs.*", _plain(2e-4)),  # a search along a line: gradients differ in the last bit
    ("optim", "optimizer .*", _plain(1e-5)),
    ("optim", "schedule .*", _plain(1e-12, floor=0)),
    # PyTorch takes powers of the betas in float32 there, the dtype of the step counter.
    ("optim_forms", "gradients N?AdamW?-.*", _plain(2e-5, share=1)),
    ("optim_forms", "gradients .*", _plain(1e-10)),
    ("optim_forms", ".* rate as a tensor", _plain(1e-6, share=1)),
    ("optim_forms", ".*-bfloat16", _plain(3e-2, share=1)),
    # PyTorch itself rounds eta of ASGD to float32 in one of its forms.
    ("optim_forms", "ASGD-.*", _plain(1e-6, share=1)),
    ("optim_forms", ".*-float32", _plain(1e-5, share=1)),  # forms round in another order
    ("optim_forms", ".*", _plain(1e-11)),
    ("pointwise", ".*", Rule(SINGLE, floor=0.05, signs_of_zero=True)),
    ("npu_bodies", ".*", Rule({**SINGLE, "float16": 2e-3}, strides=False)),
    ("op_options", ".*", Rule(SUMS, strides=False)),  # gradients that are laid out in another way
    (
        "random",
        ".*",
        Rule(dict.fromkeys(("float32", "float64"), 3e-7), floor=3e-3),
    ),  # log and cos of C libraries
    # A product of three derivatives: rounding counts against the largest of the four numbers.
    # Gradients and indices that are contiguous here, and column by column in PyTorch.
    ("matmul", r"grad2?\(torch\.(matmul|bmm), .*q\)", replace(SPREAD, strides=False)),
    ("nn_functions", r"grad2\(lambda x, w.*conv.*", replace(SPREAD, strides=False)),
    ("indexing", r"m\.nonzero\(\)", Rule(SINGLE, strides=False)),
    ("view", r"torch\.unravel_index.*", Rule(SINGLE, strides=False)),
    (
        "linalg",
        r"torch\.linalg\.inv\(torch\.zeros\(2, 0, 0\)\)",
        replace(DEFAULT, strides=False),
    ),  # it is empty
    ("matmul|nn_functions", ".*", SPREAD),
    ("second_order", ".*", Rule({"float64": 1e-6}, share=1)),
    ("transformers", ".*", _plain(2e-6, floor=5)),
    ("trl", ".*: (ids|losses)", _plain(1e-6)),
    ("trl", ".*: measures", _plain(2e-5)),
    ("indexing|reduction|view", ".*", Rule(SINGLE, floor=0.5)),
]


@cache
def rule_of(suite: str, case: str) -> Rule:
    """The line of the table for a case."""
    return next(
        (rule for s, c, rule in RULES if re.fullmatch(s, suite) and re.fullmatch(c, case, re.DOTALL)), DEFAULT
    )


def _close(a, b, allowed: float, rule: Rule, size: float) -> bool:
    """Whether two numbers agree. `size` is used as the magnitude if the number's own is smaller."""
    if isinstance(b, dict) and "complex" in b:
        if not (isinstance(a, dict) and "complex" in a):
            return False
        finite = [abs(v) for v in b["complex"] if isinstance(v, float)]
        size = max(size, math.hypot(*finite))
        loose = replace(rule, signs_of_zero=False)
        return all(
            _close(x, y, allowed, loose, size) for x, y in zip(a["complex"], b["complex"], strict=True)
        )
    if type(a) is not float or type(b) is not float:
        return a == b and type(a) is type(b)
    if rule.signs_of_zero and a == b == 0:
        return math.copysign(1, a) == math.copysign(1, b)
    return a == b or abs(a - b) <= allowed * max(abs(b), size)


_TENSOR = {"dtype", "shape", "values"}


def _digests_differ(ours: dict, theirs: dict, rule: Rule, at: str) -> str | None:
    """For tensors of which only a sum is recorded: the sum may differ by a share of the sum of the magnitudes."""
    allowed = rule.tolerance.get(theirs["dtype"].removeprefix("torch."), 0.0)
    magnitude = max(ours["magnitude"], theirs["magnitude"], 1e-3)
    same = all(ours[k] == theirs[k] for k in ("dtype", "shape", "not finite"))
    if same and abs(ours["sum"] - theirs["sum"]) <= allowed * magnitude:
        return None
    return f"{at}: {ours} instead of {theirs}"


def _numbers_differ(ours: list, theirs: list, dtype: str, rule: Rule, at: str) -> str | None:
    """The first element in which two lists of numbers of one dtype differ."""
    allowed = rule.tolerance.get(dtype, 0.0)
    largest = max((abs(v) for v in theirs if type(v) is float), default=0.0) if rule.share else 0.0
    size = max(rule.floor, rule.share * largest)
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if not _close(a, b, allowed, rule, size):
            return f"{at}: element {k} is {a} instead of {b}"
    return None


def _tensors_differ(ours: dict, theirs: dict, rule: Rule, at: str) -> str | None:
    wanted = [k for k in theirs if k != "values" and (rule.strides or k != "stride")]
    if any(ours[k] != theirs[k] for k in wanted) or len(ours["values"]) != len(theirs["values"]):
        return f"{at}: {ours} instead of {theirs}"
    dtype = theirs["dtype"].removeprefix("torch.")
    return _numbers_differ(ours["values"], theirs["values"], dtype, rule, at)


def difference(ours, theirs, rule: Rule = DEFAULT, at: str = "") -> str | None:
    """Where two answers differ beyond rounding, or None. Both have the form that `answers.record` returns."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            return f"{at}: {ours} instead of {theirs}"
        if _TENSOR <= theirs.keys() <= _TENSOR | {"stride"}:
            return _tensors_differ(ours, theirs, rule, at)
        if "magnitude" in theirs:
            return _digests_differ(ours, theirs, rule, at)
        if "complex" not in theirs:
            pairs = [(k, ours[k], theirs[k]) for k in ours]
            return next(filter(None, (difference(a, b, rule, f"{at}/{k}") for k, a, b in pairs)), None)
    if isinstance(ours, list) and isinstance(theirs, list):
        if len(ours) != len(theirs):
            return f"{at}: {len(ours)} parts instead of {len(theirs)}: {ours} instead of {theirs}"
        if all(type(v) is float for v in theirs):
            return _numbers_differ(ours, theirs, "float32", rule, at)
        pairs = [(str(k), a, b) for k, (a, b) in enumerate(zip(ours, theirs, strict=True))]
        return next(filter(None, (difference(a, b, rule, f"{at}/{k}") for k, a, b in pairs)), None)
    allowed = rule.tolerance["float32"]
    return None if _close(ours, theirs, allowed, rule, rule.floor) else f"{at}: {ours} instead of {theirs}"


@cache
def known_failures() -> dict[str, list[tuple[re.Pattern, str]]]:
    """Pattern and reason of every known failure, by suite.

    Raises:
        ValueError: a line of the file does not have three parts.
    """
    found: dict[str, list[tuple[re.Pattern, str]]] = {}
    for number, line in enumerate(FILE.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        parts = line.split("\t")
        if len(parts) != 3 or not all(parts):
            raise ValueError(f"{FILE}:{number}: expected suite, case and reason with tabs between: {line!r}")
        suite, case, reason = parts
        found.setdefault(suite, []).append((re.compile(case, re.DOTALL), reason))
    return found


def reason_of(suite: str, case: str) -> str | None:
    """Why a case is known to differ, or None."""
    suites = [suite, f"plain:{suite}"] if os.environ.get("MSADAPTER_FAST") == "0" else [suite]
    lines = [line for name in suites for line in known_failures().get(name, ())]
    return next((why for known, why in lines if known.fullmatch(case)), None)


def judge(suite: str, case: str, difference: str | None) -> None:
    """Fail the test if an answer differs from PyTorch's and is not a known failure, or is a known failure and does not differ.

    difference: a description, or None. A reason that begins with "rounding" allows both, because the last bits depend on the
    processor.
    """
    reason = reason_of(suite, case)
    if reason is None:
        assert difference is None, f"{suite} {case}: {difference}"
    elif not reason.startswith("rounding"):
        assert difference is not None, (
            f"{suite} {case} is as PyTorch's now: take its line out of {FILE.name} (its reason: {reason})"
        )


def check(suite: str, case: str, function, torch) -> None:
    """Run a case and judge its answer."""
    compare(suite, case, outcome(function, torch, SUITES[suite].seed))


def compare(suite: str, case: str, ours) -> None:
    """Judge an answer, given as plain data."""
    theirs = store.load(suite).answer(case)
    ours = json.loads(json.dumps(ours))
    if case.startswith("!"):  # of these the class of the error alone is compared
        ours, theirs = ({"error": a["error"][:1]} if "error" in a else a for a in (ours, theirs))
    judge(suite, case, difference(ours, theirs, rule_of(suite, case)))


def unused(suite: str, cases) -> list[str]:
    """The patterns of a suite that match none of its cases. These lines should be removed."""
    return [
        known.pattern for known, _ in known_failures().get(suite, ()) if not any(map(known.fullmatch, cases))
    ]
