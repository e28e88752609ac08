"""Golden data of tests/optim from real PyTorch 2.13.0: python -m tests.golden.make_optim (seeds in the cases)."""

import json
from pathlib import Path

import torch

from tests.optim import form_cases
from tests.optim import optim_cases as cases

HERE = Path(__file__).resolve().parent

golden = {
    "torch": torch.__version__,
    "optimizers": {name: cases.run_optimizer(torch, name) for name in cases.OPTIMIZERS},
    "schedules": {name: cases.run_schedule(torch, name) for name in cases.SCHEDULES},
    "errors": {name: cases.error_of(torch, name) for name in cases.ERRORS},
}
(HERE / "optim.json").write_text(json.dumps(golden) + "\n")

forms = {
    "torch": torch.__version__,
    "values": {name: form_cases.run(torch, name, form_cases.FORMS["loop"]) for name in form_cases.cases()},
    "gradients": form_cases.differentiable(torch),
}
lines = []
for section, rows in forms.items():
    if isinstance(rows, dict):
        rows = "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in rows.items()) + "\n}"
    else:
        rows = json.dumps(rows)
    lines.append(f"{json.dumps(section)}: {rows}")
(HERE / "optim_forms.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
