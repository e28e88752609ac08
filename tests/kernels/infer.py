"""MindSpore's own inference of shapes and dtypes, without a device: reads calls as JSON, writes results as JSON.

    python tests/kernels/infer.py < calls.json

A call is [operator, [operands]]: a tensor is {"shape": [...], "dtype": "float16"}, a list of tensors {"tensors": [...]},
a dtype {"dtype": ...}, a word that MindSpore hands on as a number {"word": ..., "operand": ..., "number": ...}. A compiled
function that returns nothing but the shapes and dtypes of an operator's results needs no kernel.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import mindspore
import numpy as np
from mindspore.ops.auto_generate import gen_ops_prim

PROGRAM = """from mindspore import jit
import mindspore


def made(operator):
    @jit
    def infer({parameters}):
        found = operator({arguments})
        if isinstance(found, tuple):
            results = ()
            for x in found:
                results = results + ((x.shape, x.dtype),)
            return results
        return ((found.shape, found.dtype),)

    return infer
"""


def value(x):
    """An operand in the form that MindSpore takes."""
    if isinstance(x, dict) and "shape" in x:
        return mindspore.Tensor(np.zeros(x["shape"]), getattr(mindspore, x["dtype"]))
    if isinstance(x, dict) and "tensors" in x:
        return tuple(value(one) for one in x["tensors"])
    if isinstance(x, dict):
        return x["word"] if "word" in x else getattr(mindspore, x["dtype"])
    return tuple(x) if isinstance(x, list) else x


def text(x) -> str:
    return f"mindspore.{str(x).lower()}" if isinstance(x, type(mindspore.float16)) else repr(x)


def infer(number: int, operator: str, operands: list) -> list:
    for x in operands:
        if isinstance(x, dict) and "word" in x:
            number_of_word = gen_ops_prim.str_to_enum(operator, x["operand"], x["word"])
            if number_of_word != x["number"]:
                raise ValueError(f"{x} is {number_of_word} in MindSpore")
    values = [value(x) for x in operands]
    tensors = {
        f"x{i}": x
        for i, x in enumerate(values)
        if isinstance(x, mindspore.Tensor)
        or (isinstance(x, tuple) and x and isinstance(x[0], mindspore.Tensor))
    }
    arguments = [f"x{i}" if f"x{i}" in tensors else text(x) for i, x in enumerate(values)]
    primitive = getattr(gen_ops_prim, operator)
    # The primitive's call takes the first operands. The others are attributes of the primitive.
    taken = primitive.__call__.__code__.co_argcount - 1
    made = primitive(*values[taken:])
    name = f"infer_{number}"
    path = Path(f"{name}.py")
    path.write_text(PROGRAM.format(parameters=", ".join(tensors), arguments=", ".join(arguments[:taken])))
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # MindSpore looks the source up by the module's name
    spec.loader.exec_module(module)
    return [[list(shape), str(dtype).lower()] for shape, dtype in module.made(made)(*tensors.values())]


if __name__ == "__main__":
    results = []
    for number, (operator, operands) in enumerate(json.load(sys.stdin)):
        try:
            results.append(infer(number, operator, operands))
        except (TypeError, ValueError, RuntimeError) as error:
            results.append(f"{type(error).__name__}: {str(error)[:400]}")
    print("\n" + json.dumps(results))
