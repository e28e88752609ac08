"""The suite trl: trl's trainers with real PyTorch, transformers and accelerate."""

import tempfile

import transformers
import trl

from tests.huggingface import trl_cases

HEAD = {"transformers": transformers.__version__, "trl": trl.__version__}


def golden_answers(torch) -> dict:
    found = {}
    for case in trl_cases.CASES:
        with tempfile.TemporaryDirectory() as folder:
            found |= {
                f"{case}: {kind}": answer for kind, answer in trl_cases.run(torch, case, folder).items()
            }
    return found
