"""Writes second_order.npz: second derivatives of the operators of PyTorch's own database of samples (OpInfo), seed 20.

<python with torch 2.13.0, expecttest, hypothesis, scipy> tests/golden/make_second_order.py
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import warnings
import zlib

import numpy as np
import torch
from second_order import FILE, answer, call, decoded, tensors
from torch.testing._internal.common_methods_invocations import op_db

SEED, SAMPLES, LARGEST = 20, 2, 160
PLACES = ("", "nn.functional.", "linalg.", "special.", "fft.", "masked.", "Tensor.")


class Unfit(Exception):
    """A sample that cannot be kept."""


def public_path(op) -> str | None:
    """The public name whose object the entry calls."""
    for place in PLACES:
        target = torch
        for part in (place + op.name).split("."):
            target = getattr(target, part, None)
        if target is not None and (target is op.op or target == op.op):
            return f"torch.{place}{op.name}"
    return None


def encoded(value, arrays: dict, budget: list[int]):
    """An argument as JSON; numbers of tensors are rounded to float16, so that the file is small."""
    if isinstance(value, torch.Tensor):
        budget[0] -= value.numel()
        if budget[0] < 0 or value.layout != torch.strided or value.is_complex():
            raise Unfit
        array = value.detach().numpy()
        if array.dtype == np.float64:
            array = array.astype(np.float16)
            if not np.isfinite(array).all():
                raise Unfit
        arrays[name := f"a{len(arrays)}"] = array
        return {"array": name, "grad": value.requires_grad}
    if isinstance(value, (tuple, torch.Size)):
        return {"tuple": [encoded(v, arrays, budget) for v in value]}
    if isinstance(value, list):
        return [encoded(v, arrays, budget) for v in value]
    if isinstance(value, (torch.dtype, torch.memory_format)):
        return {"name": str(value).removeprefix("torch.")}
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": repr(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise Unfit


def smallest(op) -> list:
    """The first samples of float64, small ones first, that have a number to differentiate."""
    found = list(itertools.islice(op.sample_inputs("cpu", torch.float64, requires_grad=True), 40))
    sized = [
        (sum(t.numel() for t in tensors([s.input, *s.args, *s.kwargs.values()])), k)
        for k, s in enumerate(found)
    ]
    return [found[k] for size, k in sorted(sized) if size > 1]


def record(op, path: str, sample, arrays: dict) -> dict:
    """The case of a sample with its answer; Unfit if PyTorch has none that is repeatable and finite."""
    case = {"path": path, "args": None, "kwargs": None}
    budget = [LARGEST]
    case["args"] = [encoded(v, arrays, budget) for v in (sample.input, *sample.args)]
    case["kwargs"] = {k: encoded(v, arrays, budget) for k, v in sample.kwargs.items()}
    args = decoded(torch, case["args"], arrays)
    ours = call(torch, path, args, {k: decoded(torch, v, arrays) for k, v in case["kwargs"].items()})
    if not any(y.requires_grad and y.numel() for y in tensors(ours)):
        raise Unfit
    answers = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        answers.append(answer(torch, case, arrays))
    if answers[0] != answers[1] or not all(math.isfinite(v) and abs(v) < 1e8 for v in answers[0]):
        raise Unfit
    return case | {"answer": answers[0]}


def cases_of(op, arrays: dict) -> list[dict]:
    path, kept = public_path(op), []
    if path is None or not op.supports_autograd or torch.float64 not in op.supported_backward_dtypes("cpu"):
        return kept
    torch.manual_seed(SEED + zlib.crc32(op.full_name.encode()))
    for sample in smallest(op):
        fresh = dict(arrays)
        try:
            kept.append(record(op, path, sample, fresh))
        except Exception:  # PyTorch refuses the sample or its second derivative
            continue
        arrays.update(fresh)
        if len(kept) == SAMPLES:
            break
    return kept


def main() -> None:
    assert torch.__version__.startswith("2.13."), torch.__version__
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    cases, arrays = {}, {}
    for op in op_db:
        for k, case in enumerate(cases_of(op, arrays)):
            cases[f"{op.full_name}-{k}"] = case
    text = np.frombuffer(json.dumps(cases, separators=(",", ":")).encode(), dtype=np.uint8)
    np.savez_compressed(FILE, cases=text, **arrays)
    print(len(cases), "cases,", FILE.stat().st_size, "bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
