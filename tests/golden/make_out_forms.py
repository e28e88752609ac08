"""Writes out_forms.json: which functions of PyTorch take ``out=``, of those that the op table declares.

    MSADAPTER_TORCH_PYTHON=/path/to/python python -m tests.golden.make_out_forms

Every function is called with plausible arguments and ``out=``; what matters is whether the arguments are understood.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def schemas() -> dict:
    """{name: [[parameter, its type, required, keyword only], ...]} of every public function of the table."""
    from msadapter.ops import declarations

    return {
        name: [(p.name, p.type, p.required, p.keyword_only) for p in d.schema.parameters]
        for d in declarations.values()
        for name in (d.schema.name, *d.aliases)
        if "f" in d.forms and not name.startswith("Tensor.") and not name.split(".")[-1].startswith("_")
    }


def probe() -> None:
    """In a process with PyTorch: reads the schemas from stdin and writes {name: whether it takes out=} to stdout."""
    import functools
    import warnings

    import torch

    warnings.simplefilter("ignore")
    values = {
        "Tensor": torch.ones(2, 2), "TensorOrScalar": torch.ones(2, 2), "Tensor[]": [torch.ones(2, 2)], "Scalar": 1.0, "int": 1,
        "int[]": [1], "float": 1.0, "float[]": [1.0], "bool": False, "str": "none", "ScalarType": torch.float32,
    }  # fmt: skip
    answers = {}
    for name, parameters in json.load(sys.stdin).items():
        function = functools.reduce(lambda o, part: getattr(o, part, None), name.split("."), torch)
        if not callable(function):
            continue
        wanted = [(n, values.get(t, 1), k) for n, t, required, k in parameters if required]
        args, kwargs = [v for _, v, k in wanted if not k], {n: v for n, v, k in wanted if k}
        said = []
        for extra in ({}, {"out": torch.empty(0)}, {"out": (torch.empty(0), torch.empty(0))}):
            try:
                function(*args, **kwargs, **extra)
                said.append("")
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")
        plain, *out = said
        if not plain.startswith(
            "TypeError"
        ):  # else the arguments themselves were not understood, which tells nothing
            answers[name] = not all(
                o.startswith("TypeError")
                and ("unexpected keyword" in o or "invalid combination" in o and " out = None" not in o)
                for o in out
            )
    json.dump({"torch": torch.__version__, "takes_out": answers}, sys.stdout)


if __name__ == "__main__":
    if sys.argv[1:] == ["--probe"]:
        probe()
    else:
        made = subprocess.run(
            [os.environ["MSADAPTER_TORCH_PYTHON"], "-m", "tests.golden.make_out_forms", "--probe"],
            input=json.dumps(schemas()),
            capture_output=True,
            text=True,
            check=True,
        )
        answers = json.loads(made.stdout)
        (HERE / "out_forms.json").write_text(json.dumps(answers, sort_keys=True) + "\n", encoding="utf-8")
