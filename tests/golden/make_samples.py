"""The suite samples: values and first derivatives of PyTorch's own samples (OpInfo), options away from defaults first.

OpInfo needs the packages expecttest, hypothesis and scipy.
"""

from __future__ import annotations

import zlib

import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.golden.make_second_order import LARGEST, SEED, Unfit, encoded, public_path, varied
from tests.golden.samples import answer
from tests.golden.verdict import Rule, difference

SAMPLES = {
    torch.float64: 8, torch.float32: 2, torch.bfloat16: 4, torch.float16: 2, torch.complex128: 3, torch.int64: 4,
    torch.int32: 1, torch.uint8: 1, torch.bool: 2,
}  # fmt: skip


def record(path: str, sample, arrays: dict) -> dict:
    """The case of a sample with its answer. Raises Unfit if PyTorch's answer depends on chance."""
    budget = [LARGEST]
    args = [encoded(v, arrays, budget) for v in (sample.input, *sample.args)]
    case = {"path": path, "args": args}
    case["kwargs"] = {k: encoded(v, arrays, budget) for k, v in sample.kwargs.items()}
    answers = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        answers.append(answer(torch, case, arrays))
    nowhere = any(a and a["sum"] != a["sum"] for a in answers[0])
    if not answers[0] or difference(*answers, Rule({"float32": 0.0})) or nowhere:
        raise Unfit
    return case | {"answer": answers[0]}


def cases_of(op, dtype, arrays: dict) -> list[dict]:
    path, kept = public_path(op), []
    if op.name.startswith("empty"):  # its numbers are undefined, and may be equal twice by chance
        return kept
    if path is None or dtype not in op.supported_dtypes("cpu"):
        return kept
    torch.manual_seed(SEED + zlib.crc32(op.full_name.encode()))
    for sample in varied(op, dtype, op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")):
        fresh = dict(arrays)
        try:
            kept.append(record(path, sample, fresh))
        except Exception:  # PyTorch refuses the sample, or its answer is a matter of chance
            continue
        arrays.update(fresh)
        if len(kept) == SAMPLES[dtype]:
            break
    return kept


def golden_answers(torch) -> tuple[dict, dict]:
    cases, arrays = {}, {}
    for op in op_db:
        for dtype in SAMPLES:
            for k, case in enumerate(cases_of(op, dtype, arrays)):
                cases[f"{op.full_name}-{str(dtype)[6:]}-{k}"] = case
    return cases, arrays
