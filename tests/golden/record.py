"""Write recorded answers: <python with torch 2.13.0> -m tests.golden.record NAME ... (see suites.py for the names).

The suites samples and second_order need the packages expecttest, hypothesis and scipy too; surface needs tensorboard;
transformers needs transformers, peft and accelerate; trl needs trl, datasets and these; vision needs torchvision 0.28.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import torch

from tests.golden import store
from tests.golden.answers import outcome
from tests.golden.suites import SUITES, cases, modules_of


def record(name: str) -> None:
    """Write the file of a suite.

    Raises:
        SystemExit: every case of the suite ends in an error, so its set-up must be wrong.
    """
    suite = SUITES[name]
    answers, arrays, head = {}, {}, {"torch": torch.__version__, "seed": suite.seed}
    for module in modules_of(name):
        if hasattr(module, "golden_files"):
            module.golden_files(torch)
            continue
        head |= getattr(module, "HEAD", {})
        if hasattr(module, "golden_answers"):
            made = module.golden_answers(torch)
            made, more = made if isinstance(made, tuple) else (made, {})
            answers, arrays = answers | made, arrays | more
    answers |= {case: outcome(function, torch, suite.seed) for case, function in cases(name).items()}
    if not answers:
        return
    if all(isinstance(answer, dict) and "error" in answer for answer in answers.values()):
        raise SystemExit(f"{name}: every case ends in an error, the first in {next(iter(answers.values()))}")
    file = store.save(name, head, answers, arrays, suite.packed)
    print(f"{len(answers)} answers of PyTorch {torch.__version__} in {file}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.golden.record", description=__doc__)
    parser.add_argument("names", nargs="+", choices=SUITES, metavar="NAME", help=", ".join(SUITES))
    if "msadapter" in (torch.__file__ or "") or not torch.__version__.startswith("2.13."):
        raise SystemExit(
            f"answers must come from PyTorch 2.13, not from {torch.__version__} ({torch.__file__})"
        )
    warnings.simplefilter("ignore")
    for name in parser.parse_args().names:
        torch.set_num_threads(1)
        record(name)


if __name__ == "__main__":
    main()
