"""The submodules in sys.modules after `import torch`, compared with PyTorch's (the suite modules of tests/golden)."""

from __future__ import annotations

import json
from pathlib import Path

from msadapter.alias.submodules import ELSEWHERE, PRESENT
from tests.alias.fresh import python_with_torch
from tests.golden import store

PYTORCH = {name for part in store.load("modules").cases.values() for name in part}
ABSENT = json.loads(Path(__file__).with_name("absent_modules.json").read_text())


def test_every_submodule_of_pytorch_is_here_or_listed_with_a_reason():
    here = {f"torch.{name}" for name in (*PRESENT, *ELSEWHERE)}
    absent = [name for names in ABSENT.values() for name in names]
    assert len(absent) == len(set(absent))
    assert not here & set(absent)
    assert here | set(absent) == PYTORCH


def test_they_stand_in_sys_modules_and_each_loads_in_place():
    python_with_torch("""
import importlib, sys
import torch
from msadapter.alias.submodules import ELSEWHERE, PRESENT
from msadapter.alias.waiting import is_waiting
names = ["torch." + name for name in (*PRESENT, *ELSEWHERE)]
before = {name: sys.modules[name] for name in names}
assert sum(map(is_waiting, before.values())) > 50, "import torch loads modules that the program has not used"
for name, module in before.items():
    assert importlib.import_module(name) is module, name
    assert vars(module) and not is_waiting(module), name  # Python 3.10 loads it at this use
    head, _, last = name.rpartition(".")
    there = getattr(sys.modules[head], last, module)
    assert there is module or name[6:] in ELSEWHERE or callable(there), name  # torch.autograd.gradcheck is a function
""")


def test_a_package_that_loads_its_module_loads_it_once():
    """The first use of the module loads the package, which loads the module."""
    python_with_torch("""
import sys
import torch
for name, function in (("torch.multiprocessing.reductions", "init_reductions"), ("torch.package.analyze", "is_from_package")):
    module = sys.modules[name]
    first = getattr(module, function)
    assert sys.modules[name] is module and sys.modules["msadapter" + name[5:]] is module, name
    assert getattr(sys.modules[name.rpartition(".")[0]], function) is first, name
""")


def test_a_module_that_its_waiting_package_loads_is_loaded_once():
    """The import system reads __path__ of the package. That loads the package, and with it the module that was asked for."""
    python_with_torch("""
import sys
import torch
from msadapter.alias.waiting import is_waiting
assert is_waiting(sys.modules["msadapter.func"])
from msadapter.func._derivatives import active
assert torch.func.grad.__globals__ is sys.modules["msadapter.func._derivatives"].__dict__ is active.__globals__
assert sys.modules["msadapter.func._derivatives"].__spec__.origin.endswith("_derivatives.py")
seen = []
torch.func.grad(lambda a: (seen.append(active()), a)[1])(torch.ones(()))
assert seen == [True]
""")


def test_modules_with_another_name_here_are_attributes_of_their_parents():
    python_with_torch("""
import importlib, sys
import torch
from msadapter.alias.submodules import ELSEWHERE
for name in ELSEWHERE:
    space = {}
    exec(f"import torch.{name} as found", space)
    # torch.nn.parallel.data_parallel is the function, in PyTorch too
    assert space["found"] is sys.modules["torch." + name] or callable(space["found"]), name
    parent, _, last = name.rpartition(".")
    exec(f"from torch{'.' * bool(parent)}{parent} import {last}", space)
""")


def test_absent_submodules_do_not_import():
    python_with_torch(f"""
import importlib
import torch
for name in {[name for names in ABSENT.values() for name in names]!r}:
    try:
        importlib.import_module(name)
    except ImportError:
        continue
    raise AssertionError(name + " is here")
""")


def test_walking_through_sys_modules_loads_nothing():
    python_with_torch("""
import inspect, sys, warnings
import torch
from msadapter.alias.waiting import is_waiting
waiting = [module for name, module in sys.modules.items() if name.startswith("torch.") and is_waiting(module)]
assert inspect.getmodule(test := lambda: 0) is sys.modules["__main__"]
for module in waiting:
    assert module.__name__.startswith("msadapter.")
    assert getattr(module, "__warningregistry__", None) is None
assert sys.modules["torch.jit"].__file__.endswith("jit/__init__.py")
assert all(map(is_waiting, waiting))
""")


def test_patching_loads_and_reaches_the_module():
    python_with_torch("""
import sys, unittest.mock
import torch
from msadapter.alias.waiting import is_waiting
module = sys.modules["torch.distributions.normal"]
assert is_waiting(module)
with unittest.mock.patch("torch.distributions.normal.Normal", "changed"):
    import torch.distributions.normal as again
    assert again is module and again.Normal == "changed"
assert callable(module.Normal)
sys.modules["torch.hub"].marked = 1
assert torch.hub.marked == 1 and torch.hub.load
""")


def test_threads_see_a_whole_module():
    python_with_torch("""
import sys, threading
import torch
module, faults = sys.modules["torch.distributions"], []
start = threading.Barrier(8)
def use():
    start.wait()
    try:
        module.Wishart, module.kl_divergence
    except Exception as error:
        faults.append(error)
threads = [threading.Thread(target=use) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not faults, faults
""")


def test_patched_initialisers_are_what_modules_call():
    """transformers protects loaded weights by replacing the functions of torch.nn.init in every module."""
    python_with_torch("""
import sys
import torch
calls = []
for module_name in ("init", "modules.activation", "modules.transformer", "modules.linear", "modules.loss",
                    "modules.batchnorm", "modules.conv", "modules.normalization", "modules.rnn", "modules.sparse"):
    module = sys.modules["torch.nn." + module_name]
    for name in list(vars(torch.nn.init)):
        if name.endswith("_") and not name.startswith("_") and hasattr(module, name):
            setattr(module, name, lambda tensor, *args, name=name, **kwargs: calls.append(name) or tensor)
nn = torch.nn
made = [nn.Linear(2, 3), nn.Bilinear(2, 2, 2), nn.Conv1d(2, 2, 1), nn.Conv2d(2, 2, 1), nn.ConvTranspose3d(2, 2, 1),
        nn.Embedding(3, 2),
        nn.EmbeddingBag(3, 2), nn.LayerNorm(2), nn.GroupNorm(1, 2), nn.RMSNorm(2), nn.BatchNorm2d(2),
        nn.InstanceNorm1d(2, affine=True),
        nn.LSTM(2, 2), nn.GRUCell(2, 2), nn.MultiheadAttention(4, 2, add_bias_kv=True), nn.PReLU(), nn.Transformer(4, 2, 1, 1, 4)]
for module in made:
    before = {name: value.clone() for name, value in module.named_parameters()}
    calls.clear()
    for part in module.modules():
        for reset in ("reset_parameters", "_reset_parameters"):
            if hasattr(part, reset):
                getattr(part, reset)()
    assert calls, module
    for name, value in module.named_parameters():
        assert torch.equal(value.nan_to_num(), before[name].nan_to_num()), (type(module).__name__, name)
""")


def test_parts_of_the_extension_answer():
    python_with_torch("""
import io, torch
C = torch._C
keys = C.DispatchKeySet(C.DispatchKey.CPU) | C.DispatchKeySet(C.DispatchKey.AutogradCPU)
# as PyTorch 2.13 prints and numbers them
assert (str(keys), str(keys.highestPriorityTypeId())) == ("DispatchKeySet(CPU, AutogradCPU)", "DispatchKey.AutogradCPU")
assert [int(C.DispatchKey[n]) for n in ("Meta", "SparseCsrCUDA", "AutogradMeta", "EndOfDenseBackends")] == [64, 101, 149, 64]
assert C._nn._parse_to("cpu", torch.float16) == (torch.device("cpu"), torch.float16, False, None)
assert torch.equal(C._linalg.linalg_inv(2 * torch.eye(2)), torch.eye(2) / 2)
assert isinstance(torch.ones(1), C.TensorBase) and type(torch.Tensor) is C._TensorMeta and C.Size is torch.Size

file = io.BytesIO()
torch.save({"a": torch.arange(3.0)}, file)
reader = C.PyTorchFileReader(file)
held = reader.get_storage_from_record("data/0", 12, torch.UntypedStorage)._typed_storage()._untyped_storage
assert torch.frombuffer(bytes(held), dtype=torch.float32).tolist() == [0, 1, 2] and reader.get_record_size("data/0") == 12
assert file.getvalue()[reader.get_record_offset("data/0"):][:12] == reader.get_record("data/0")
file = io.BytesIO()
writer = C.PyTorchFileWriter(file)
writer.write_record("x", b"abcd", 3)
writer.write_end_of_file()
assert C.PyTorchFileReader(file).get_record("x") == b"abc"

import torch.utils.model_zoo
assert torch.utils.model_zoo.load_url is torch.hub.load_state_dict_from_url
""")


def test_conversions_replace_or_exchange_parameters_on_demand():
    python_with_torch("""
import torch
net = torch.nn.Linear(2, 2)
first = net.weight
torch.__future__.set_overwrite_module_params_on_conversion(True)
net.double()
assert net.weight is not first and (first.dtype, net.weight.dtype) == (torch.float32, torch.float64)
torch.__future__.set_overwrite_module_params_on_conversion(False)
torch.__future__.set_swap_module_params_on_conversion(True)
second, net.weight.grad = net.weight, torch.ones(2, 2).double()
net.float()
assert net.weight is second and second.dtype is second.grad.dtype is torch.float32 and second.requires_grad
""")
