"""Cases that are functions of a torch module: recorded with PyTorch, compared with ours (tests/autograd, tests/tensor)."""

from __future__ import annotations

import json
import math
import re
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent


def number(v):
    """A JSON value that keeps NaN, infinities and complex numbers."""
    if isinstance(v, complex):
        return {"complex": [number(v.real), number(v.imag)]}
    if isinstance(v, float):
        return v if math.isfinite(v) else repr(v)
    return v


def record(value):
    """What is compared of an answer."""
    if hasattr(value, "untyped_storage") and hasattr(value, "grad_fn"):
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "values": [number(v) for v in value.detach().flatten().tolist()],
        }
    if isinstance(value, dict):
        return {str(k): record(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [record(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return number(value)
    return str(value)


def first_sentence(error: BaseException) -> str:
    """Up to the end of the first sentence or line; addresses and the like are cut."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else ""
    return re.sub(r"0x[0-9a-f]+", "0x", re.split(r"(?<=[a-z)\]])[.:;] ", text)[0].rstrip(".:"))


def refusal(function, *args, **kwargs) -> list[str]:
    """Class and first sentence of the error that a call raises."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return [type(error).__name__, first_sentence(error)]
    return ["nothing raised", ""]


def outcome(case, torch):
    """The recorded answer of a case, or the error that it raises."""
    torch.manual_seed(7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return record(case(torch))
        except Exception as error:
            return {"error": [type(error).__name__, first_sentence(error)]}


def expressions(setup: str, texts) -> dict:
    """Cases written as lines of Python: statements separated by "; ", of which the last one's value is the answer."""

    def case_of(text):
        def case(torch):
            space = {"torch": torch}
            exec(setup, space)
            *statements, last = text.split("; ")
            for statement in statements:
                exec(statement, space)
            return eval(last, space)

        return case

    return {text: case_of(text) for text in texts}


def cases_of(module) -> dict:
    """Functions of a module by name, and the expressions in its ``CASES``."""
    functions = {
        name: f
        for name, f in vars(module).items()
        if callable(f) and getattr(f, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    return functions | getattr(module, "CASES", {})


def difference(ours, theirs, tolerance: float = 1e-6, path: str = "") -> str | None:
    """Where two records differ, or None."""
    if isinstance(ours, float) or isinstance(theirs, float):
        same = (
            isinstance(ours, (int, float))
            and isinstance(theirs, (int, float))
            and math.isclose(ours, theirs, rel_tol=tolerance, abs_tol=tolerance)
        )
        return None if same else f"{path}: {ours} instead of {theirs}"
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        pairs = [(k, ours[k], theirs[k]) for k in ours]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = [(i, a, b) for i, (a, b) in enumerate(zip(ours, theirs, strict=True))]
    else:
        return (
            None if ours == theirs and type(ours) is type(theirs) else f"{path}: {ours} instead of {theirs}"
        )
    return next(filter(None, (difference(a, b, tolerance, f"{path}/{k}") for k, a, b in pairs)), None)


def golden(name: str) -> dict:
    return json.loads((HERE / f"{name}.json").read_text())
