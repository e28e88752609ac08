"""Writes random.json: what real PyTorch (2.13, CPU) draws in random_cases.py.

<python with torch> -m tests.golden.make_random
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import torch

from tests.golden.random_cases import CLOSE, ERRORS, EXACT, SEED


def digest(tensor) -> str:
    """Identity of a tensor: dtype, shape, strides and bytes."""
    text = f"{tensor.dtype}{list(tensor.shape)}{list(tensor.stride())}".encode()
    raw = tensor.contiguous().flatten()
    raw = torch.view_as_real(raw).contiguous().flatten() if raw.is_complex() else raw
    return hashlib.sha256(text + bytes(raw.view(torch.uint8).tolist() if raw.numel() else [])).hexdigest()[
        :16
    ]


def main() -> None:
    answers = {"exact": {}, "close": {}, "errors": {}, "states": {}}
    for case in EXACT:
        torch.manual_seed(SEED)
        answers["exact"][case] = [digest(eval(case)), digest(torch.get_rng_state())]
    for case in CLOSE:
        torch.manual_seed(SEED)
        value = eval(case)
        answers["close"][case] = {
            "dtype": str(value.dtype),
            "stride": list(value.stride()),
            "values": value.tolist(),
            "left": torch.get_rng_state()[8:24].tolist(),
        }
    for case in ERRORS:
        try:
            eval(case)
            raise SystemExit(f"no error: {case}")
        except (RuntimeError, TypeError, ValueError) as e:
            answers["errors"][case] = [type(e).__name__, str(e).splitlines()[0]]
    for seed in (0, 42, -1, 2**40 + 7):
        torch.manual_seed(seed)
        torch.randn(3)
        answers["states"][str(seed)] = [torch.initial_seed(), digest(torch.get_rng_state())]
    torch.manual_seed(7)
    torch.randn(5)
    answers["saved_state"] = bytes(torch.get_rng_state().tolist()).hex()
    answers["after_saved_state"] = torch.randn(4).tolist()
    Path(__file__).with_name("random.json").write_text(json.dumps(answers, indent=0) + "\n")


if __name__ == "__main__":
    main()
