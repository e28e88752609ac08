"""What is kept of an answer: the same code describes PyTorch's answers, when they are recorded, and ours, in the tests.

A case is a function of a torch module. `outcome` gives its answer as plain data that JSON can hold.
"""

from __future__ import annotations

import math
import re
import warnings


def number(v):
    """A number as JSON represents it: NaN and infinities as text, complex numbers as {"complex": [real, imaginary]}."""
    if isinstance(v, complex):
        return {"complex": [number(v.real), number(v.imag)]}
    if isinstance(v, float):
        return v if math.isfinite(v) else repr(v)
    return v


def _parts(value) -> list:
    """The indices and values of a sparse tensor. Their strides are left out, because programs cannot rely on them."""
    layout = str(value.layout)
    if layout == "torch.sparse_coo":
        found = [value._indices(), value._values(), value.is_coalesced()]
    elif layout in ("torch.sparse_csr", "torch.sparse_bsr"):
        found = [value.crow_indices(), value.col_indices(), value.values()]
    else:
        found = [value.ccol_indices(), value.row_indices(), value.values()]
    kept = [record(part) for part in found]
    return [
        {k: v for k, v in part.items() if k != "stride"} if isinstance(part, dict) else part for part in kept
    ]


def record(value):
    """An answer as plain data. A tensor becomes its dtype, shape, strides and numbers, and containers are recorded item by item."""
    if hasattr(value, "untyped_storage") and hasattr(value, "grad_fn") and not isinstance(value, type):
        value = value.detach()
        if str(value.layout) != "torch.strided":
            return {"layout": str(value.layout), "shape": list(value.shape), "parts": _parts(value)}
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "values": [number(v) for v in value.flatten().tolist()],
        }
    if isinstance(value, dict):
        return {str(k): record(v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return [record(v) for v in value]
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return number(value)
    return value.__name__ if isinstance(value, type) else str(value)


def first_sentence(error: BaseException) -> str:
    """The rule for comparing error texts: only the first sentence of the first line counts, without addresses."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else ""
    text = " ".join(text.split())  # some messages have the indentation of source code in them
    return re.sub(r"0x[0-9a-f]+", "0x", re.split(r"(?<=[a-z)\]])[.:;] ", text)[0].rstrip(".:"))


def told(error: BaseException) -> list[str]:
    """Class and first sentence of an error. The underscore in the name of PyTorch's class _LinAlgError is removed."""
    return [type(error).__name__.lstrip("_"), first_sentence(error)]


def refusal(function, *args, **kwargs) -> list[str]:
    """Class and first sentence of the error that a call raises."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        return told(error)
    return ["nothing raised", ""]


def outcome(case, torch, seed: int = 7):
    """The answer of a case as plain data, or {"error": [class, first sentence]}."""
    torch.manual_seed(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return record(case(torch))
        except Exception as error:
            return {"error": told(error)}


def expressions(setup: str, texts) -> dict:
    """Cases written as lines of Python: statements separated by "; ". The value of the last one is the answer.

    For a case that begins with "!", only the class of the error counts.
    """

    def case_of(text):
        def case(torch):
            space = {"torch": torch}
            exec(setup, space)
            *statements, last = text.removeprefix("!").split("; ")
            for statement in statements:
                exec(statement, space)
            try:
                code = compile(last, "<case>", "eval")
            except SyntaxError:  # an assignment: its error is the answer
                exec(last, space)
                return None
            return eval(code, space)

        return case

    return {text: case_of(text) for text in texts}


def cases_of(module, chosen: str = "CASES") -> dict:
    """The cases of a module by name.

    They are the result of its `golden_cases()`; or its list of expressions, if it has a SETUP; or its public functions and the
    cases in its dict.
    """
    if hasattr(module, "golden_cases"):
        return module.golden_cases()
    if hasattr(module, "SETUP") and not isinstance(getattr(module, chosen), dict):
        return expressions(module.SETUP, getattr(module, chosen))
    functions = {
        name: f
        for name, f in vars(module).items()
        if callable(f) and getattr(f, "__module__", "") == module.__name__ and not name.startswith("_")
    }
    return functions | getattr(module, chosen, {})
