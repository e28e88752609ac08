"""What is said when a program uses a name or a module of PyTorch that msadapter does not have."""

import json

import pytest

from msadapter.alias import absent
from tests.alias.fresh import python, python_with_torch

NAMES = {
    name: reason
    for reason, names in json.loads(absent.LIST.read_text(encoding="utf-8")).items()
    for name in names
}


def test_an_attribute_is_named_as_in_pytorch():
    python_with_torch("""
import torch
for holder, name in ((torch.jit, "foo"), (torch.nn, "foo"), (torch.distributions, "foo"), (torch, "foo"), (torch.autograd, "foo")):
    try:
        getattr(holder, name)
    except AttributeError as error:
        own = holder.__name__.replace("msadapter", "torch")
        assert str(error) == f"module {own!r} has no attribute 'foo'", error
        assert error.name == "foo"
    else:
        raise AssertionError(holder)
    assert not hasattr(holder, name) and getattr(holder, name, 3) == 3
""")


def test_an_import_of_a_name_says_torch():
    """The text is Python's, with the module's name in PyTorch and, where PyTorch has the name, the reason."""
    python_with_torch("""
import importlib
import torch

def check(statement, known):
    _, module, _, name = statement.split()
    try:
        exec(statement)
    except ImportError as error:
        assert str(error).startswith(f"cannot import name {name!r} from {module!r} (/"), error
        assert error.name == module and error.path.endswith("__init__.py")
        assert ("docs/coverage.md" in str(error) and "PyTorch has it" in str(error)) == known, error
    else:
        raise AssertionError(f"{statement}: it is here")
    assert not hasattr(importlib.import_module(module), name)  # as an attribute it stays an AttributeError

check("from torch.distributions import foo", False)  # a module that this statement loads
check("from torch.jit import foo", False)
check("from torch.nn import Linaer", False)
check("from torch import foo", False)
check("from torch import contrib", True)
check("from torch.nn import LinearCrossEntropyLoss", True)
""")


def test_an_attribute_that_pytorch_has_comes_with_the_reason():
    python_with_torch("""
import torch
for holder, name in ((torch, "cudnn_convolution"), (torch.nn, "LinearCrossEntropyLoss"), (torch.masked, "nothing_yet")):
    assert not hasattr(holder, name)
    try:
        getattr(holder, name)
    except AttributeError as error:
        text = str(error)
    assert ("docs/coverage.md" in text and "PyTorch has it" in text) == (name != "nothing_yet"), text
""")


def test_a_module_that_pytorch_has_comes_with_the_reason():
    python_with_torch("""
import importlib, importlib.util
import torch

names = ["torch.distributed.rpc._utils", "torch.contrib", "torch._inductor.codegen", "torch.contrib.deeper"]
names += ["torch.fx.experimental.normalize", "torch.distributed.elastic.agent.server"]  # deep, in packages that are here
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        assert error.name.startswith("torch.") and name.startswith(error.name), error.name
        assert "docs/coverage.md" in str(error) and "PyTorch has it" in str(error), error
    else:
        raise AssertionError(f"{name} is here")
assert importlib.util.find_spec("torch.contrib") is None
""")


def test_a_finder_that_a_program_adds_later_is_asked():
    python_with_torch("""
import importlib.machinery, sys, types
import torch

class Loader:
    def create_module(self, spec):
        return types.ModuleType(spec.name)
    def exec_module(self, module):
        module.of_the_program = True

class Finder:
    def find_spec(self, name, path=None, target=None):
        return importlib.machinery.ModuleSpec(name, Loader()) if name == "torch.contrib" else None

sys.meta_path.append(Finder())
import torch.contrib
assert torch.contrib.of_the_program
try:
    import torch.distributed.rpc._utils
except ModuleNotFoundError as error:
    assert "docs/coverage.md" in str(error), error
else:
    raise AssertionError("it is here")
""")


def test_a_module_that_pytorch_does_not_have_either():
    python_with_torch("""
import torch
try:
    import torch.no_such_module
except ModuleNotFoundError as error:
    assert str(error) == "No module named 'torch.no_such_module'", error
""")


def test_the_list_is_read_at_the_first_error_only():
    python_with_torch("""
import sys
import torch
import torch.nn.functional
from msadapter.alias import absent
assert absent._listed.cache_info().misses == 0
hasattr(torch, "contrib")
assert absent._listed.cache_info().misses == 1
""")


def test_nothing_of_the_list_is_here():
    """A name that is written later must leave the list."""
    import msadapter

    for name in NAMES:
        holder, _, last = name.rpartition(".")
        if holder == "torch":
            assert not hasattr(msadapter, last), name


@pytest.mark.parametrize("start", ["import torch", "import msadapter; msadapter.install()"])
def test_torch_npu_is_hidden_from_programs_for_the_cpu(start):
    program = f"""
import importlib, importlib.metadata, importlib.util, os, sys
os.environ["MSADAPTER_DEVICE"] = DEVICE
{start}
hidden = DEVICE.lower().startswith("cpu")
assert (importlib.util.find_spec("torch_npu") is None) == hidden
try:
    importlib.metadata.version("torch_npu")
    importlib.import_module("torch_npu")
    found = True
except ModuleNotFoundError:
    found = False
assert found != hidden
assert hidden == ("torch_npu" not in sys.modules) and importlib.metadata.version("torch")
"""
    for device in ("cpu", "CPU:0", "npu"):
        python(
            program.replace("DEVICE", repr(device)).replace("MSADAPTER_" + repr(device), "MSADAPTER_DEVICE")
        )


def test_torch_npu_alone_is_not_imported_for_the_cpu():
    python("""
import os
os.environ["MSADAPTER_DEVICE"] = "cpu"
try:
    import torch_npu
except ModuleNotFoundError as error:
    assert error.name == "torch_npu"
else:
    raise AssertionError("it is here")
""")
