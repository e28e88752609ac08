"""The suite second_order: second derivatives of the operators of PyTorch's own database of samples (OpInfo), seed 20.

OpInfo needs the packages expecttest, hypothesis and scipy.
"""

from __future__ import annotations

import itertools
import math
import zlib

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

from tests.golden.second_order import answer, call, decoded, tensors

SEED, SAMPLES, LARGEST, CONSIDERED = 20, 8, 160, 300
PLACES = ("", "nn.functional.", "linalg.", "special.", "fft.", "masked.", "Tensor.")


class Unfit(Exception):
    """A sample that cannot be recorded."""


def public_path(op) -> str | None:
    """The public name of the function that the entry calls."""
    for place in PLACES:
        target = torch
        for part in (place + op.name).split("."):
            target = getattr(target, part, None)
        if target is not None and (target is op.op or target == op.op):
            return f"torch.{place}{op.name}"
    return None


def encoded(value, arrays: dict, budget: list[int]):
    """An argument as JSON. Numbers of tensors are rounded to float16, so that the file is small."""
    if isinstance(value, torch.Tensor):
        budget[0] -= value.numel()
        if budget[0] < 0 or value.layout != torch.strided or value.is_quantized:
            raise Unfit
        plain = value.detach().resolve_conj().resolve_neg()
        floating = plain.is_floating_point() or plain.is_complex()
        array = (
            (torch.view_as_real(plain) if plain.is_complex() else plain)
            .to(torch.float64 if floating else plain.dtype)
            .numpy()
        )
        if floating:
            array = array.astype(np.float16)
            if not np.isfinite(array).all():
                raise Unfit
        arrays[name := f"a{len(arrays)}"] = array
        dtype = {} if value.dtype == torch.float64 or not floating else {"dtype": str(value.dtype)[6:]}
        return {"array": name, "grad": value.requires_grad} | dtype
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


def options_of(value) -> str:
    """The arguments of a sample without its numbers: plain values as they are, and the number of dimensions of each tensor."""
    if isinstance(value, torch.Tensor):
        return f"{value.dtype} {value.ndim}-d"
    if isinstance(value, dict):
        return str({k: options_of(v) for k, v in sorted(value.items())})
    if isinstance(value, (tuple, list)):
        return str([options_of(v) for v in value])
    return repr(value)


def varied(op, dtype=torch.float64, requires_grad: bool = True) -> list:
    """The samples that contain a number to differentiate: first those with new options, and among these the small ones.

    Samples are compared by their keywords, then by all arguments, so an option away from its default comes early.
    """
    samples = op.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    found = list(itertools.islice(samples, CONSIDERED))
    sizes = [sum(t.numel() for t in tensors([s.input, *s.args, *s.kwargs.values()])) for s in found]
    seen: dict[str, int] = {}
    ranked = []
    for k in sorted((k for k in range(len(found)) if sizes[k] > 1), key=lambda k: sizes[k]):
        keywords = options_of(found[k].kwargs)
        everything = options_of([found[k].input, found[k].args, found[k].kwargs])
        ranked.append((seen.get(everything, 0), seen.get(keywords, 0), k))
        for words in {keywords, everything}:
            seen[words] = seen.get(words, 0) + 1
    return [found[k] for *_, k in sorted(ranked)]


def record(op, path: str, sample, arrays: dict) -> dict:
    """The case of a sample with its answer. Raises Unfit if PyTorch's answer is not repeatable or not finite."""
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
    numbers = answers[0]["values"]
    if answers[0] != answers[1] or not all(math.isfinite(v) and abs(v) < 1e8 for v in numbers):
        raise Unfit
    return case | {"answer": answers[0]}


def cases_of(op, arrays: dict) -> list[dict]:
    path, kept = public_path(op), []
    if path is None or not op.supports_autograd or torch.float64 not in op.supported_backward_dtypes("cpu"):
        return kept
    torch.manual_seed(SEED + zlib.crc32(op.full_name.encode()))
    for sample in varied(op):
        fresh = dict(arrays)
        try:
            kept.append(record(op, path, sample, fresh))
        except Exception:  # PyTorch refuses the sample or its second derivative
            continue
        arrays.update(fresh)
        if len(kept) == SAMPLES:
            break
    return kept


def golden_answers(torch) -> tuple[dict, dict]:
    cases, arrays = {}, {}
    for op in op_db:
        for k, case in enumerate(cases_of(op, arrays)):
            cases[f"{op.full_name}-{k}"] = case
    return cases, arrays
