"""The format of recorded answers: NAME.json with one case a line, or NAME.npz where that would be large.

Both hold the same: a head with at least "torch", the version that gave the answers, and "seed"; and the cases, answer by
name. In an npz file lists of numbers are kept as arrays, apart from the text around them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
_ARRAY = "\0array"  # marks a list that was moved out of the text


@dataclass(frozen=True)
class Golden:
    """A recorded file: its head, the answers by case, and the arrays that cases refer to."""

    head: dict
    cases: dict
    arrays: dict = field(default_factory=dict)

    def answer(self, case: str):
        """The answer of a case. Files with arrays store the call of each case beside its answer."""
        return self.cases[case]["answer"] if self.arrays else self.cases[case]


def _file(name: str) -> Path:
    packed = HERE / f"{name}.npz"
    return packed if packed.exists() else HERE / f"{name}.json"


@cache
def load(name: str) -> Golden:
    """The recorded answers of a suite.

    Raises:
        FileNotFoundError: nothing is recorded under this name.
    """
    file = _file(name)
    if file.suffix == ".npz":
        return _unpacked(file)
    head = json.loads(file.read_text(encoding="utf-8"))
    return Golden({k: v for k, v in head.items() if k != "cases"}, head["cases"])


def save(name: str, head: dict, cases: dict, arrays: dict | None = None, packed: bool = False) -> Path:
    """Write a suite's file. `arrays` may be given if it is packed. The file of the other format is removed."""
    lines = [f"{_text(k)}: {_text(v)}" for k, v in head.items()]
    file, other = HERE / f"{name}.json", HERE / f"{name}.npz"
    if packed:
        file, other = other, file
        _pack(file, head, cases, arrays or {})
    else:
        inside = ",\n".join(f"{_text(k)}: {_text(v)}" for k, v in cases.items())
        file.write_text("{" + ", ".join(lines) + ', "cases": {\n' + inside + "\n}}\n", encoding="utf-8")
    other.unlink(missing_ok=True)
    load.cache_clear()
    return file


def _text(value) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


class _Pool:
    """Numbers that were moved out of the JSON text: one array for each dtype, and the position of each piece in it."""

    def __init__(self):
        self.parts: dict[str, list[np.ndarray]] = {}
        self.sizes: dict[str, int] = {}

    def put(self, array: np.ndarray) -> list:
        dtype = array.dtype.str
        start = self.sizes.get(dtype, 0)
        self.parts.setdefault(dtype, []).append(array.reshape(-1))
        self.sizes[dtype] = start + array.size
        return [dtype, start, list(array.shape)]

    def moved(self, value):
        """The value, in which lists of floats or of small integers are replaced by their positions in the arrays."""
        if isinstance(value, dict):
            return {k: self.moved(v) for k, v in value.items()}
        if not isinstance(value, list):
            return value
        if len(value) > 3 and all(type(v) is float for v in value):
            return {_ARRAY: self.put(np.array(value))}
        if len(value) > 3 and all(type(v) is int and abs(v) < 2**31 for v in value):
            return {_ARRAY: self.put(np.array(value, dtype=np.int32))}
        return [self.moved(v) for v in value]


def _pack(file: Path, head: dict, cases: dict, arrays: dict) -> None:
    pool = _Pool()
    told = {"head": head, "cases": pool.moved(cases), "arrays": {k: pool.put(v) for k, v in arrays.items()}}
    members = {f"numbers {dtype}": np.concatenate(parts) for dtype, parts in pool.parts.items()}
    np.savez_compressed(file, text=np.frombuffer(_text(told).encode(), dtype=np.uint8), **members)


def _unpacked(file: Path) -> Golden:
    with np.load(file) as z:
        told = json.loads(bytes(z["text"]).decode())
        numbers = {name.removeprefix("numbers "): z[name] for name in z.files if name != "text"}

    def piece(place) -> np.ndarray:
        dtype, start, shape = place
        return numbers[dtype][start : start + math.prod(shape)].reshape(shape)

    def restored(value):
        if isinstance(value, dict):
            return (
                piece(value[_ARRAY]).tolist()
                if _ARRAY in value
                else {k: restored(v) for k, v in value.items()}
            )
        return [restored(v) for v in value] if isinstance(value, list) else value

    arrays = {name: piece(place) for name, place in told["arrays"].items()}
    return Golden(told["head"], restored(told["cases"]), arrays)
