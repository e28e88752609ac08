"""Write the golden data of tests/huggingface with real PyTorch, transformers, peft and accelerate.

Run in an environment with them: ``python tests/golden/make_transformers.py``. Makes ``transformers.json``.
"""

import json
import sys
import tempfile
from pathlib import Path

import torch
import transformers

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "huggingface"))

import model_cases  # noqa: E402
import training_cases  # noqa: E402

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
