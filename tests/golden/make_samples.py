"""Writes samples.npz: values and first derivatives of PyTorch's own samples (OpInfo), options away from defaults first.

<python with torch 2.13.0, expecttest, hypothesis, scipy> -m tests.golden.make_samples
"""

from __future__ import annotations

import sys
import warnings
import zlib

import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.golden.make_second_order import LARGEST, SEED, Unfit, encoded, public_path, varied
from tests.golden.samples import FILE, answer, differs
from tests.golden.second_order import save

SAMPLES = {
    torch.float64: 8, torch.float32: 2, torch.bfloat16: 4, torch.float16: 2, torch.complex128: 3, torch.int64: 4,
    torch.int32: 1, torch.uint8: 1, torch.bool: 2,
}  # fmt: skip


def record(path: str, sample, arrays: dict) -> dict:
    """The case of a sample with its answer; Unfit if PyTorch's answer depends on chance."""
    budget = [LARGEST]
    args = [encoded(v, arrays, budget) for v in (sample.input, *sample.args)]
    case = {"path": path, "args": args}
    case["kwargs"] = {k: encoded(v, arrays, budget) for k, v in sample.kwargs.items()}
    answers = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        answers.append(answer(torch, case, arrays))
    if not answers[0] or differs(*answers, lambda dtype: 0.0) or any(a and a[3] != a[3] for a in answers[0]):
        raise Unfit
    return case | {"answer": answers[0]}


def cases_of(op, dtype, arrays: dict) -> list[dict]:
    path, kept = public_path(op), []
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


def main() -> None:
    assert torch.__version__.startswith("2.13."), torch.__version__
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    cases, arrays = {}, {}
    for op in op_db:
        for dtype in SAMPLES:
            for k, case in enumerate(cases_of(op, dtype, arrays)):
                cases[f"{op.full_name}-{str(dtype)[6:]}-{k}"] = case
    save(cases, arrays, FILE)
    print(len(cases), "cases,", FILE.stat().st_size, "bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
