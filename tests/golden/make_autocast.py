"""Writes autocast.json: the types that PyTorch gives to results under autocast, for each device and operator.

    python -m tests.golden.make_autocast        # with a real PyTorch; no accelerator is needed

CUDA's answers come from fake tensors: they pass PyTorch's dispatcher, and so its autocast, without memory.
"""

import json
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tests.amp import policy_cases as cases

HERE = Path(__file__).resolve().parent

if __name__ == "__main__":
    with FakeTensorMode():
        cuda = cases.answers(torch, "cuda")
    answers = {"torch": torch.__version__, "cuda": cuda, "cpu": cases.answers(torch, "cpu")}
    rows = ",\n".join(
        f'"{device}": {{\n'
        + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in answers[device].items())
        + "}"
        for device in ("cuda", "cpu")
    )
    text = f'{{"torch": {json.dumps(answers["torch"])},\n{rows}}}\n'
    assert json.loads(text) == answers
    (HERE / "autocast.json").write_text(text, encoding="utf-8")
