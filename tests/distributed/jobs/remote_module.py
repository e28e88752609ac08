"""Modules on other workers. Every rank of three calls each check; the names of the workers are worker0 to worker2."""

from __future__ import annotations

import copy
import inspect
import pickle
import time

import pytest
import torch
from torch import nn
from torch.distributed import autograd as dist_autograd
from torch.distributed import rpc
from torch.distributed.nn import RemoteModule
from torch.distributed.nn.api import remote_module
from torch.distributed.optim import DistributedOptimizer

from tests.distributed.rpc_workers import LAST, NEXT, RANK, SIZE, seeded_layer


def setup():
    rpc.init_rpc(f"worker{RANK}", rank=RANK, world_size=SIZE)


def teardown():
    rpc.shutdown()


# -- what workers run for each other -----------------------------------------------------------------------
class Scaled(nn.Module):
    """Answers with what it was called with, and with the product of a parameter and a tensor."""

    def __init__(self, start, *, factor=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), float(start)))
        self.inner, self.factor = nn.Linear(3, 1), factor

    def forward(self, x, number=0, *, word="none"):
        return self.weight * x * self.factor, number, word


class Fails(nn.Module):
    def forward(self):
        raise KeyError("no result")


class Where(nn.Module):
    """Answers with the kinds of the devices of its parameter and its arguments."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))

    def forward(self, x, *, y):
        return self.weight.device.type, x.device.type, y.device.type, self.weight + x + y


def is_training(rref):
    return rref.local_value().training


def called(module, *args):
    return module.forward(*args)


def called_later(module, *args):
    return module.forward_async(*args).wait()


def given_back(value):
    return value


def weights_of(rref):
    return [parameter.detach() for parameter in rref.local_value().parameters()]


# -- calls -------------------------------------------------------------------------------------------------
def check_forward(rank, size):
    x = torch.arange(3.0)
    for place in (NEXT, f"{NEXT}/cpu", f"rank:{(RANK + 1) % SIZE}", f"rank:{(RANK + 1) % SIZE}/cpu"):
        module = RemoteModule(place, Scaled, (2,), {"factor": 3.0})
        assert isinstance(module, nn.Module) and not module.is_scriptable and not module.is_device_map_set
        assert module.on == (NEXT if place.startswith("worker") else (RANK + 1) % SIZE)
        assert module.device == "cpu"
        for result in (
            module.forward(x, 4, word="w"),
            module(x, number=4, word="w"),
            module.forward_async(x, 4, word="w").wait(),
        ):
            torch.testing.assert_close(result[0].detach(), 6 * x)
            assert result[1:] == (4, "w")
    assert inspect.signature(RemoteModule).parameters.keys() == {
        "remote_device", "module_cls", "args", "kwargs",
    }  # fmt: skip
    own = RemoteModule(f"worker{RANK}", Scaled, (1,))
    assert own.get_module_rref().is_owner() and own.forward(x)[1:] == (0, "none")


def check_references_to_the_module_and_its_parameters(rank, size):
    module = RemoteModule(NEXT, Scaled, (2,))
    rref = module.get_module_rref()
    assert rref is module.module_rref and rref.owner_name() == NEXT
    here = rref.to_here()
    assert type(here) is Scaled and here.weight.tolist() == [2, 2, 2]
    shapes = [parameter.to_here().shape for parameter in module.remote_parameters()]
    assert shapes == [(3,), (1, 3), (1,)]
    (only,) = module.remote_parameters(recurse=False)
    assert only.owner_name() == NEXT and torch.equal(only.to_here(), torch.full((3,), 2.0))


def check_training_mode(rank, size):
    """As in PyTorch, ``train(False)`` sets training mode, and both methods return a copy of the module."""
    module = RemoteModule(NEXT, Scaled, (2,))
    rref = module.get_module_rref()
    for change, expected in (
        (module.eval, False),
        (module.train, True),
        (module.eval, False),
        (lambda: module.train(False), True),
    ):
        assert type(change()) is Scaled
        assert rpc.rpc_sync(NEXT, is_training, (rref,)) is expected


# -- errors ------------------------------------------------------------------------------------------------
def check_errors(rank, size):
    for wrong in (list, nn.functional.relu):
        args = () if wrong is list else (torch.ones(1),)
        text = r"Expect `module_cls\(\*args, \*\*kwargs\)` returns an instance of <class nn.Module>, but it returns an instance"
        for use in ("forward", "remote_parameters", "train"):
            with pytest.raises(ValueError, match=text):
                getattr(RemoteModule(NEXT, wrong, args), use)()
    with pytest.raises(TypeError, match="in_features"):
        RemoteModule(NEXT, nn.Linear).forward()
    with pytest.raises(KeyError, match="no result"):
        RemoteModule(NEXT, Fails).forward_async().wait()
    for place, error, text in (
        ("cpu", TypeError, "must name a worker"),
        (torch.device("cpu"), TypeError, "must name a worker"),
        (3, TypeError, "Invalid type for remote_device: <class 'int'>"),
        (f"{NEXT}/cpu/cpu", ValueError, "Could not parse remote_device"),
        (f"{NEXT}/foo", RuntimeError, "device type at start of device string: foo"),
        ("worker9", RuntimeError, "could not find destination worker9"),
        ("rank:9", RuntimeError, "could not find destination 9"),
    ):
        with pytest.raises(error, match=text):
            RemoteModule(place, nn.Linear, (1, 1))


def check_methods_that_are_refused(rank, size):
    module = RemoteModule(NEXT, Scaled, (2,))
    for name in remote_module._REFUSED:
        with pytest.raises(ValueError, match=rf"^Method ``{name}`` not supported for RemoteModule$"):
            getattr(module, name)()
        assert getattr(module, name).__name__ == name
    with pytest.raises(
        ValueError, match=r"``parameters`` not supported for RemoteModule. Please use ``remote_parameters``"
    ):
        module.parameters()
    with pytest.raises(ValueError, match="Method ``extra_repr`` not supported"):
        repr(module)
    with pytest.raises(ValueError, match="Method ``register_parameter`` not supported"):
        module.weight = nn.Parameter(torch.ones(1))
    with pytest.raises(ValueError, match="Method ``named_modules`` not supported"):
        list(nn.Sequential(module).parameters())
    with pytest.raises(AttributeError, match="weight"):
        module.weight  # noqa: B018 (the access is the test)


def check_interfaces_of_torchscript_are_refused(rank, size):
    with pytest.raises(
        NotImplementedError, match=r"torch.distributed.nn.RemoteModule: a TorchScript interface"
    ):
        remote_module._RemoteModule(NEXT, Scaled, (2,), _module_interface_cls=Scaled)
    module = RemoteModule(NEXT, Scaled, (2,))
    with pytest.raises(
        NotImplementedError, match=r"torch.distributed.nn.RemoteModule: a TorchScript interface"
    ):
        RemoteModule.init_from_module_rref(NEXT, module.get_module_rref(), Scaled)


# -- sending ----------------------------------------------------------------------------------------------
def check_it_can_be_sent(rank, size):
    module, x = RemoteModule(NEXT, Scaled, (2,)), torch.ones(3)
    for function in (called, called_later):
        assert rpc.rpc_sync(LAST, function, (module, x, 5))[1:] == (5, "none")
        assert rpc.rpc_sync(NEXT, function, (module, x, 6))[1:] == (6, "none")  # where the module is
    back = rpc.rpc_sync(LAST, given_back, (module,))
    assert type(back) is RemoteModule and (back.on, back.device) == (NEXT, "cpu")
    assert back.get_module_rref().owner_name() == NEXT
    torch.testing.assert_close(back(x)[0].detach(), 2 * x)
    assert rpc.remote(LAST, given_back, (module,)).to_here().forward(x, 7)[1] == 7
    assert len(back.remote_parameters()) == 3
    module.note = 1
    names = rpc.rpc_sync(LAST, given_back, (module,)).__dict__.keys()
    assert "note" not in names and {*remote_module._REMOTE_MODULE_PICKLED_ATTRIBUTES} < names


def check_only_remote_calls_send_it(rank, size):
    module = RemoteModule(NEXT, Scaled, (2,))
    for write in (pickle.dumps, copy.deepcopy, copy.copy):
        with pytest.raises(RuntimeError, match="RemoteModule can only be pickled when using RPC"):
            write(module)
    with pytest.raises(RuntimeError, match="RemoteModule can only be unpickled when using RPC"):
        module.__setstate__({})

    class Further(RemoteModule):
        pass

    with pytest.raises(RuntimeError, match="RemoteModule can only be pickled when using RPC"):
        rpc.rpc_sync(LAST, given_back, (Further(NEXT, Scaled, (2,)),))


def check_from_a_reference(rank, size):
    module, x = RemoteModule(NEXT, Scaled, (2,)), torch.ones(3)
    twin = RemoteModule.init_from_module_rref(NEXT, module.get_module_rref())
    assert type(twin) is RemoteModule and twin.on == NEXT
    assert twin(x, 8)[1] == 8
    there = rpc.rpc_sync(LAST, RemoteModule.init_from_module_rref, (NEXT, module.get_module_rref()))
    assert there.forward(x, 9)[1] == 9


def owned_values():
    return int(rpc._get_debug_info()["num_owner_rrefs"])


def check_the_module_is_freed_with_its_last_reference(rank, size):
    everyone = {f"worker{rank}" for rank in range(SIZE)}
    rpc._barrier(everyone)
    before = owned_values()
    rpc._barrier(everyone)
    modules = [RemoteModule(NEXT, Scaled, (number,)) for number in range(5)]
    assert [module(torch.ones(3), 1)[1] for module in modules] == [1] * 5
    del modules
    end = time.monotonic() + 30
    while owned_values() > before and time.monotonic() < end:
        time.sleep(0.05)
    left = owned_values()
    rpc._barrier(everyone)  # before anyone makes further modules
    assert left <= before


# -- devices -----------------------------------------------------------------------------------------------
def check_a_module_on_an_accelerator(rank, size):
    """The host takes the place of the accelerator here. Its tensors come back on the CPU, in a tuple."""
    x, y = torch.ones(2), torch.full((2,), 2.0)
    for device in ("cuda", "cuda:0"):
        *kinds, total = RemoteModule(f"{NEXT}/{device}", Where)(x, y=y)
        assert kinds == ["cuda"] * 3 and total.device.type == "cpu" and total.tolist() == [4, 4]
    rows = RemoteModule(f"{NEXT}/cuda", nn.Linear, (2, 3))(torch.ones(4, 2))
    assert type(rows) is tuple and [row.shape for row in rows] == [(3,)] * 4


# -- distributed autograd ----------------------------------------------------------------------------------
def seeded(seed):
    return nn.Sequential(seeded_layer(seed), nn.Tanh())


def check_training_of_several_workers(rank, size):
    """One worker trains layers on two others and one of its own. PyTorch's steps are those of local twins."""
    if RANK == 0:
        layers = [RemoteModule(name, seeded, (seed,)) for seed, name in enumerate((NEXT, LAST))]
        head, twins = seeded(2), [seeded(seed) for seed in range(3)]
        own = [rpc.RRef(parameter) for parameter in head.parameters()]
        remote = [rref for layer in layers for rref in layer.remote_parameters()]
        optimizer = DistributedOptimizer(torch.optim.SGD, own + remote, lr=0.1, momentum=0.9)
        twin = torch.optim.SGD([p for layer in twins for p in layer.parameters()], lr=0.1, momentum=0.9)
        for _ in range(3):
            x = torch.randn(2, 4)
            with dist_autograd.context() as number:
                loss = head(layers[1](layers[0].forward_async(x).wait())).pow(2).sum()
                dist_autograd.backward(number, [loss])
                optimizer.step(number)
            twin.zero_grad()
            nn.Sequential(*twins)(x).pow(2).sum().backward()
            twin.step()
        for layer, local in zip(layers, twins[:2], strict=True):
            there = rpc.rpc_sync(layer.on, weights_of, (layer.get_module_rref(),))
            for one, other in zip(there, local.parameters(), strict=True):
                torch.testing.assert_close(one, other.detach(), rtol=1e-6, atol=1e-6)
        for one, other in zip(head.parameters(), twins[2].parameters(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)
    rpc._barrier({f"worker{rank}" for rank in range(SIZE)})
