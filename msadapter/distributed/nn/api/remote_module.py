"""torch.distributed.nn.api.remote_module: a module on another worker, used like one of this process."""

from __future__ import annotations

import sys
from typing import Any

from .... import nn
from ...._errors import unsupported
from ...._values.device import ACCELERATORS
from ...._values.device import device as _device
from ....tensor import Tensor
from ... import rpc
from ...remote_device import _remote_device
from ...rpc.internal import _internal_rpc_pickler

__all__ = ["RemoteModule"]

# What is sent of a RemoteModule. What every Module has beside it, such as hooks, stays.
_REMOTE_MODULE_PICKLED_ATTRIBUTES = ("on", "device", "is_device_map_set", "is_scriptable", "module_rref")
_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_REFUSED = """
add_module apply bfloat16 buffers children cpu cuda double extra_repr float half ipu load_state_dict modules named_buffers
named_children named_modules named_parameters npu register_backward_hook register_buffer register_forward_hook
register_forward_pre_hook register_parameter requires_grad_ share_memory state_dict to type xpu zero_grad
""".split()  # noqa: SIM905 (a list literal of this length would be a page of quotes)


# -- what the worker of the module runs --------------------------------------------------------------------
def _create(module_cls, args, kwargs, device: str) -> nn.Module:
    module = module_cls(*args, **kwargs)
    if not isinstance(module, nn.Module):
        raise ValueError(
            "Expect `module_cls(*args, **kwargs)` returns an instance of <class nn.Module>, "
            f"but it returns an instance of {type(module)}."
        )
    return module.to(device)


def _forward(module_rref: rpc.RRef, device: str, is_device_map_set: bool, args: tuple, kwargs: dict):
    """Call the module's forward. If it is on an accelerator, tensors among the arguments are moved there first.

    Without a map of devices, only the CPU's tensors can be sent back. The result is then, as in PyTorch, a tuple of what
    iterating over the module's result gives, with its tensors on the CPU.
    """
    module = module_rref.local_value()
    if _device(device).type not in ACCELERATORS:
        return module.forward(*args, **kwargs)
    moved = {name: _moved(value, device) for name, value in kwargs.items()}
    result = module.forward(*(_moved(value, device) for value in args), **moved)
    return result if is_device_map_set else tuple(_moved(value, "cpu") for value in result)


def _moved(value, device: str):
    return value.to(device) if isinstance(value, Tensor) else value


def _parameters_of(module_rref: rpc.RRef, recurse: bool) -> list[rpc.RRef]:
    return [rpc.RRef(parameter) for parameter in module_rref.local_value().parameters(recurse)]


# -- the module of the caller ------------------------------------------------------------------------------
class _RemoteModule(nn.Module):
    """A RemoteModule, with the argument for a TorchScript interface, which is not supported."""

    def __init__(
        self,
        remote_device: str,
        module_cls: type[nn.Module],
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
        _module_interface_cls: Any = None,
    ):
        super().__init__()
        self._place(remote_device, _module_interface_cls)
        arguments = (module_cls, args or (), kwargs or {}, self.device)
        self.module_rref = rpc.remote(self.on, _create, arguments)

    def _place(self, remote_device: str, interface: Any) -> None:
        """Note the worker and the device."""
        if interface is not None:
            raise unsupported(
                "torch.distributed.nn.RemoteModule", "a TorchScript interface is not supported; leave it out"
            )
        if not rpc._is_current_rpc_agent_set():
            raise AssertionError("RemoteModule only works in RPC.")
        place = _remote_device(remote_device)
        worker = place.rank() if place.worker_name() is None else place.worker_name()
        if worker is None:
            raise TypeError(
                f"RemoteModule: remote_device must name a worker, as in 'worker1/cpu', got {remote_device}"
            )
        agent = rpc._get_current_rpc_agent()
        self.on, self.device = worker, str(place.device())
        self.is_device_map_set = bool(agent.options.device_maps.get(agent.get_worker_info(worker).name))
        self.is_scriptable = False

    @staticmethod
    def init_from_module_rref(
        remote_device: str, module_rref: rpc.RRef[nn.Module], _module_interface_cls: Any = None
    ) -> RemoteModule:
        """Return a RemoteModule for a module that exists already, to which ``module_rref`` refers.

        ``remote_device`` names the module's device, as for a new one; the module is not moved. Errors are those of a new one.
        """
        remote = _without_module()
        remote._place(remote_device, _module_interface_cls)
        remote.module_rref = module_rref
        return remote

    def forward_async(self, *args, **kwargs):
        """Call the module's ``forward``, and return a future of its result at once."""
        call = (self.module_rref, self.device, self.is_device_map_set, args, kwargs)
        return rpc.rpc_async(self.module_rref.owner(), _forward, call)

    def forward(self, *args, **kwargs):
        """Call the module's ``forward``, and return its result. Errors there are raised here, with the same class."""
        return self.forward_async(*args, **kwargs).wait()

    def remote_parameters(self, recurse: bool = True) -> list[rpc.RRef[nn.Parameter]]:
        """Return references to the module's parameters, as DistributedOptimizer takes them.

        ``recurse`` includes those of its submodules.
        """
        return rpc.rpc_sync(self.module_rref.owner(), _parameters_of, (self.module_rref, recurse))

    def get_module_rref(self) -> rpc.RRef[nn.Module]:
        """Return a reference to the module."""
        return self.module_rref

    def train(self, mode: bool = True):
        """Set the module to training mode, and return a copy of it. As in PyTorch, ``mode`` makes no difference."""
        return self.module_rref.rpc_sync().train()

    def eval(self):
        """Set the module to evaluation mode, and return a copy of it, as in PyTorch."""
        return self.module_rref.rpc_sync().eval()

    def parameters(self, recurse: bool = True):
        """Not supported: raises ValueError. ``remote_parameters`` gives references to them."""
        raise ValueError(
            "Method ``parameters`` not supported for RemoteModule. Please use ``remote_parameters`` instead."
        )

    def __getstate__(self):
        raise RuntimeError(
            "Cannot pickle RemoteModule in python pickler. RemoteModule can only be pickled when using RPC"
        )

    def __setstate__(self, state):
        raise RuntimeError(
            "Cannot unpickle RemoteModule in python pickler. RemoteModule can only be unpickled when using RPC"
        )


def _refused(name: str):
    def method(self, *args, **kwargs):
        raise ValueError(f"Method ``{name}`` not supported for RemoteModule")

    method.__name__, method.__qualname__ = name, f"_RemoteModule.{name}"
    method.__doc__ = "Not supported: raises ValueError."
    return method


for _name in _REFUSED:
    setattr(_RemoteModule, _name, _refused(_name))


class RemoteModule(_RemoteModule):
    """A module that is made on another worker and stays there, where its ``forward`` runs.

    Gradients within a context of torch.distributed.autograd go through it. It can be an argument or a result of remote calls:
    what is sent is a reference to the module. Methods of Module that would need the module here raise ValueError.

    Args:
        remote_device: the worker by its name or rank, and the device there: "worker1/cpu", "rank:1/cuda:0". The default device
            is the CPU. If it is an accelerator, ``forward`` moves tensors among its arguments there.
        module_cls: the class of the module. The worker must be able to import it.
        args, kwargs: the arguments of the class.

    Raises:
        AssertionError: ``rpc.init_rpc`` has not been called.
        TypeError: ``remote_device`` is no string, or names no worker.
        ValueError: ``remote_device`` cannot be read. What ``module_cls`` returns is no Module: this is raised by the first use.
        RuntimeError: there is no such worker or kind of device.
    """

    def __init__(
        self,
        remote_device: str,
        module_cls: type[nn.Module],
        args: tuple | None = None,
        kwargs: dict[str, Any] | None = None,
    ):
        super().__init__(remote_device, module_cls, args, kwargs)


# -- how it is sent ----------------------------------------------------------------------------------------
def _without_module() -> RemoteModule:
    remote = RemoteModule.__new__(RemoteModule)
    nn.Module.__init__(remote)
    return remote


def _received(*values) -> RemoteModule:
    remote = _without_module()
    vars(remote).update(zip(_REMOTE_MODULE_PICKLED_ATTRIBUTES, values, strict=True))
    return remote


def _sent(remote: RemoteModule) -> tuple:
    """Return what pickle writes for a RemoteModule. Attributes that a program has added are named, and left out."""
    for name in vars(remote).keys() - _OF_EVERY_MODULE - set(_REMOTE_MODULE_PICKLED_ATTRIBUTES):
        print(
            f"The new attribute ``{name}`` of RemoteModule is ignored during RPC pickling.", file=sys.stderr
        )
    return _received, tuple(getattr(remote, name) for name in _REMOTE_MODULE_PICKLED_ATTRIBUTES)


_internal_rpc_pickler._register_reducer(RemoteModule, _sent)
