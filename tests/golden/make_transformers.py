"""Write the golden data of tests/huggingface with real PyTorch, transformers, peft and accelerate.

Run in an environment with them: ``python -m tests.golden.make_transformers``. Makes ``transformers.json``.
"""

import json
import tempfile
from pathlib import Path

import torch
import transformers

from tests.huggingface import model_cases, training_cases

HERE = Path(__file__).resolve().parent

answers = {family: model_cases.run(torch, transformers, family) for family in model_cases.FAMILIES}
training = {}
for case in training_cases.CASES:
    with tempfile.TemporaryDirectory() as folder:
        training[case] = training_cases.run(torch, case, folder)
made = {
    "torch": torch.__version__,
    "transformers": transformers.__version__,
    "families": answers,
    "training": training,
}
(HERE / "transformers.json").write_text(json.dumps(made, indent=1) + "\n")
