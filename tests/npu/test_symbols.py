"""What MindSpeed 2.3.0 and MindSpeed-LLM 2.3.0 use of torch_npu and of their own extensions: data/symbols.tsv.

Every symbol resolves, and is callable where they call it, or is refused by its name with the page that says so.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import msadapter as torch
from kernels_ascend import mindspeed
from msadapter import torch_npu
from msadapter.ops import declarations

TABLE = Path(__file__).parent / "data/symbols.tsv"
ROWS = [line.split("\t") for line in TABLE.read_text().splitlines()[1:]]
SYMBOLS = {row[0]: len(row) > 3 for row in ROWS}  # whether they are called
CALLS = {row[0]: (int(row[3].split()[0]), row[3].split()[1:]) for row in ROWS if len(row) > 3}
EXTENSIONS = {name for name in SYMBOLS if name.startswith("mindspeed.")}
DEFINED = {name for name in SYMBOLS if name.startswith("torch.ops.mindspeed.")}  # by MindSpeed itself

_PROGRAM = """
import importlib, json, sys
import msadapter
msadapter.install()
import torch, torch_npu

def resolve(name):
    first, *rest = name.split(".")
    found, path = importlib.import_module(first), first
    for part in rest:
        path += "." + part
        if not hasattr(found, part):
            importlib.import_module(path)
        found = getattr(found, part)
    return found

# MindSpeed's op builders define the operators of torch.ops.mindspeed when they are made
library = torch.library.Library("mindspeed", "DEF")
symbols = json.load(sys.stdin)
for name in symbols:
    if name.startswith("torch.ops.mindspeed."):
        operator, _, overload = name.removeprefix("torch.ops.mindspeed.").partition(".")
        if overload not in ("", "default"):
            library.define(f"{operator}.{overload}(Tensor x) -> Tensor")
            torch.library.impl(library, f"{operator}.{overload}", "PrivateUse1")(lambda x: x + 1)
        elif not any(other.startswith(f"{name}.") and not other.endswith(".default") for other in symbols) and not overload:
            library.define(f"{operator}(Tensor x) -> Tensor")
            torch.library.impl(library, operator, "PrivateUse1")(lambda x: x + 1)
wrong = {}
for name, called in symbols.items():
    try:
        found = resolve(name)
        if called and not callable(found):
            wrong[name] = f"{found!r} cannot be called"
        if name.startswith("torch.ops.mindspeed.") and found(torch.ones(2, device="npu")).tolist() != [2, 2]:
            wrong[name] = "another operator answers"
    except NotImplementedError as error:
        if name.split(".")[-1] not in str(error) or "docs/coverage.md" not in str(error):
            wrong[name] = f"refused without its name: {error}"
    except (AttributeError, ImportError) as error:
        wrong[name] = str(error)
print(json.dumps(wrong))
"""


def test_every_symbol_resolves():
    """Runs in a process of its own, in which `import torch_npu` gives this project."""
    asked = json.dumps({name: called for name, called in SYMBOLS.items() if name not in EXTENSIONS})
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=asked,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=os.environ | {"MSADAPTER_DEVICE": "npu"},
    )
    assert json.loads(done.stdout.splitlines()[-1]) == {}


@pytest.mark.parametrize("name", sorted(EXTENSIONS))
def test_every_function_of_an_extension_is_there(name):
    _, extension, function = name.split(".")
    assert callable(getattr(mindspeed.load(extension), function))


def parameters_of(function) -> list[inspect.Parameter]:
    """The parameters of a Python function, or of an operator of the table by its schema."""
    found = {one.function: one.body for one in declarations.values()}.get(function, function)
    return list(inspect.signature(found).parameters.values())


@pytest.mark.parametrize(
    "name", sorted(n for n in CALLS if n.startswith(("torch_npu.", "torch.npu.")) or n in EXTENSIONS)
)
def test_arguments_of_the_calls_are_taken(name):
    """Every call's number of positional arguments and every keyword is accepted."""
    most, keywords = CALLS[name]
    first, *rest = name.split(".")
    found = {"mindspeed": mindspeed, "torch_npu": torch_npu, "torch": torch}[first]
    if name in EXTENSIONS:
        found, rest = mindspeed.load(rest[0]), rest[1:]
    for part in rest:
        found = getattr(found, part)
    parameters = parameters_of(found)
    kinds = [x.kind for x in parameters]
    places = sum(
        k in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD) for k in kinds
    )
    assert most <= places or inspect.Parameter.VAR_POSITIONAL in kinds
    known = {x.name for x in parameters}
    # torch's table calls the first operand both self and input
    known |= {"input"} if "self" in known else set()
    assert set(keywords) <= known or inspect.Parameter.VAR_KEYWORD in kinds


def test_what_mindspeed_defines_itself_has_an_extension_behind_it():
    functions = {name.split(".")[2] for name in EXTENSIONS}
    operators = {name.split(".")[3] for name in DEFINED}
    assert {name.removesuffix("_v2") for name in operators} <= functions
    assert all(
        name.split(".")[1] in mindspeed.EXTENSIONS for name in EXTENSIONS if name.split(".")[2] in operators
    )


def test_the_table_is_not_empty():
    """The table contains the names that programs were missing."""
    assert {"torch_npu.npu_fusion_attention", "mindspeed.lcal.matmul_all_reduce", "torch.npu.Stream"} <= set(
        SYMBOLS
    )
    assert len(SYMBOLS) > 200
