"""The suite out_forms: which functions of PyTorch take ``out=``, of those that the op table declares.

Every function is called with plausible arguments and ``out=``; what matters is whether the arguments are understood.
MSADAPTER_PYTHON names the interpreter with msadapter, if it is not .venv/bin/python.
"""

import functools
import json
import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def schemas() -> dict:
    """{name: [[parameter, its type, required, keyword only], ...]} of every public function of the table."""
    from msadapter.ops import declarations

    return {
        name: [(p.name, p.type, p.required, p.keyword_only) for p in d.schema.parameters]
        for d in declarations.values()
        for name in (d.schema.name, *d.aliases)
        if "f" in d.forms and not name.startswith("Tensor.") and not name.split(".")[-1].startswith("_")
    }


def golden_answers(torch) -> dict[str, bool]:
    """Whether a function takes out=, by name. Our interpreter is asked for the declarations."""
    ours = os.environ.get("MSADAPTER_PYTHON", ROOT / ".venv/bin/python")
    program = "import json; from tests.golden.make_out_forms import schemas; print(json.dumps(schemas()))"
    told = subprocess.run([ours, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    values = {
        "Tensor": torch.ones(2, 2), "TensorOrScalar": torch.ones(2, 2), "Tensor[]": [torch.ones(2, 2)], "Scalar": 1.0, "int": 1,
        "int[]": [1], "float": 1.0, "float[]": [1.0], "bool": False, "str": "none", "ScalarType": torch.float32,
    }  # fmt: skip
    answers = {}
    for name, parameters in json.loads(told.splitlines()[-1]).items():
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
    return dict(sorted(answers.items()))
