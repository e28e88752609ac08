"""Expressions whose answers under real PyTorch are kept beside them: <topic>.py has SETUP and CASES, <topic>.json the answers.

A case is Python statements, `; ` between them, with `torch` and the names of SETUP; the last one's value is the answer.
Of an error the class and the first line of the text count; a case that begins with "~" compares its class alone.

    <python with torch 2.13> tests/golden/expressions/__init__.py [topic ...]      writes the answers
"""

from __future__ import annotations

import importlib.util
import json
import math
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
TOLERANCE = {
    "torch.float16": 2e-3,
    "torch.bfloat16": 1.6e-2,
    "torch.float32": 4e-6,
    "torch.float64": 1e-12,
    "torch.complex64": 4e-6,
    "torch.complex128": 1e-12,
}


def topics() -> list[str]:
    return sorted(path.stem for path in HERE.glob("*.py") if path.stem != "__init__")


def load(topic: str):
    spec = importlib.util.spec_from_file_location(topic, HERE / f"{topic}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _number(v):
    """A JSON value that keeps NaN and infinities."""
    if isinstance(v, complex):
        return [_number(v.real), _number(v.imag)]
    return repr(v) if isinstance(v, float) and not math.isfinite(v) else v


def record(value, torch):
    """What is compared of an answer, as JSON."""
    if isinstance(value, torch.Tensor) and value.layout != torch.strided:
        return {
            "layout": str(value.layout),
            "shape": list(value.shape),
            "parts": _parts(value.detach(), torch),
        }
    if isinstance(value, torch.Tensor):
        return {
            "dtype": str(value.dtype),
            "shape": list(value.shape),
            "stride": list(value.stride()),
            "values": [_number(v) for v in value.detach().flatten().tolist()],
        }
    if isinstance(value, torch.Size):
        value = list(value)
    if isinstance(value, (tuple, list)):
        return [record(v, torch) for v in value]
    if isinstance(value, dict):
        return {"items": [[str(k), record(v, torch)] for k, v in value.items()]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return {"value": _number(value)}
    return {"value": value.__name__ if isinstance(value, type) else str(value)}


def _parts(value, torch):
    """Indices and values without their strides, which no program can rely on."""
    return [{k: v for k, v in part.items() if k != "stride"} for part in _all_parts(value, torch)]


def _all_parts(value, torch):
    if value.layout == torch.sparse_coo:
        return [
            record(value._indices(), torch),
            record(value._values(), torch),
            {"value": value.is_coalesced()},
        ]
    rows = value.layout in (torch.sparse_csr, torch.sparse_bsr)
    plain = (
        (value.crow_indices(), value.col_indices()) if rows else (value.ccol_indices(), value.row_indices())
    )
    return [record(v, torch) for v in (*plain, value.values())]


def evaluate(topic, case: str, torch):
    """The recorded answer of a case, or {"error": class, "text": first line}."""
    space = {"torch": torch}
    *statements, last = case.removeprefix("~").split("; ")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(topic.SETUP, space)
        try:
            for statement in statements:
                exec(statement, space)
            return record(eval(last, space), torch)
        except Exception as e:  # the error is the answer
            return {"error": type(e).__name__, "text": str(e).split("\n")[0]}


def differences(have, want, at: str = "") -> list[str]:
    """Where two recorded answers differ beyond rounding."""
    if isinstance(want, list) and isinstance(have, list):
        if len(have) != len(want):
            return [f"{at}: {len(have)} parts instead of {len(want)}"]
        return [
            d
            for i, (h, w) in enumerate(zip(have, want, strict=True))
            for d in differences(h, w, f"{at}[{i}]")
        ]
    if isinstance(want, dict) and isinstance(have, dict) and want.keys() == have.keys():
        if "values" in want:
            tolerance = TOLERANCE.get(want["dtype"], 0)
            same = [have[k] == want[k] for k in want if k != "values"]
            if all(same) and _close(have["values"], want["values"], tolerance):
                return []
            return [f"{at}: {have} instead of {want}"]
        return [d for k in want for d in differences(have[k], want[k], f"{at}.{k}")]
    return [] if _close(have, want, 4e-6) else [f"{at}: {have} instead of {want}"]


def _close(have, want, tolerance: float) -> bool:
    if isinstance(want, list) and isinstance(have, list):
        return len(have) == len(want) and all(
            _close(h, w, tolerance) for h, w in zip(have, want, strict=True)
        )
    if isinstance(want, float) and isinstance(have, float):
        return abs(have - want) <= tolerance * max(abs(want), 0.05)
    return have == want and type(have) is type(want)


def answers(topic: str) -> dict:
    return json.loads((HERE / f"{topic}.json").read_text())


def _write(topic: str, torch) -> None:
    cases = load(topic)
    lines = (f"{json.dumps(c)}: {json.dumps(evaluate(cases, c, torch))}" for c in cases.CASES)
    (HERE / f"{topic}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(f"{len(cases.CASES)} answers of torch {torch.__version__} for {topic}", file=sys.stderr)


if __name__ == "__main__":
    import torch as real

    for name in sys.argv[1:] or topics():
        _write(name, real)
