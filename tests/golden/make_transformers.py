"""The suite transformers: models and training runs with real PyTorch, transformers, peft and accelerate."""

import tempfile

import transformers

from tests.huggingface import model_cases, training_cases

HEAD = {"transformers": transformers.__version__}


def golden_answers(torch) -> dict:
    families = model_cases.FAMILIES
    found = {f"family {family}": model_cases.run(torch, transformers, family) for family in families}
    for case in training_cases.CASES:
        with tempfile.TemporaryDirectory() as folder:
            found[f"training {case}"] = training_cases.run(torch, case, folder)
    return found
