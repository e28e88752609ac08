"""replicate: data parallel training as with DistributedDataParallel, of a module that stays the user's own."""

from __future__ import annotations

from ..._errors import unsupported
from ...nn import Module
from ...nn.parallel import DistributedDataParallel
from ...tensor import device
from .._composable_state import _get_module_state, _insert_module_state, _State

__all__ = ["DDP", "replicate"]

_REFUSED = ("mixed_precision",)
_classes: dict = {}


class _ReplicateState(_State):
    """What replicate stores for a module. `ddp` exists from the first forward pass on, as PyTorch's does."""

    def __init__(self, module: Module, options: dict):
        self.module, self.options = module, options
        self.ddp: DistributedDataParallel | None = None
        self.synchronizes = True
        self.hooks: list = []

    def before_forward(self, module, args, kwargs) -> None:
        """Send the buffers. The first call also sends the parameters of the first process to all."""
        if self.ddp is None:
            self.ddp = DistributedDataParallel(self.module, **self.options)
            for arguments, keywords in self.hooks:
                self.ddp.register_comm_hook(*arguments, **keywords)
        self.ddp.require_backward_grad_sync = self.synchronizes
        self.ddp._before_forward()

    def after_forward(self, module, args, output):
        """Prepare the reduction of the gradients."""
        return self.ddp._after_forward(output)


class DDP:
    """The class that `replicate` adds to a module."""

    def __new__(cls, *args, **kwargs):
        """Create an instance of the original class, as when a container is indexed by a slice."""
        original = cls.__mro__[2]
        made = original.__new__(original, *args, **kwargs)
        made.__init__(*args, **kwargs)
        return made

    def set_requires_gradient_sync(self, requires_gradient_sync: bool) -> None:
        """Say whether the next backward passes average gradients. Without it, gradients accumulate in each process."""
        _get_module_state(self).synchronizes = requires_gradient_sync

    def register_comm_hook(self, *args, **kwargs) -> None:
        """Reduce each bucket by a function; the arguments are those of DistributedDataParallel.register_comm_hook.

        As in PyTorch, it must be called before the first forward pass.
        """
        _get_module_state(self).hooks.append((args, kwargs))


def _no_deepcopy(self, memo):
    raise AssertionError("DDP does not support deepcopy. Please use state dict for serialization.")


def _class_of(cls):
    if cls not in _classes:
        contents = {"__deepcopy__": _no_deepcopy, "__module__": cls.__module__}
        _classes[cls] = type(f"DDP{cls.__name__}", (DDP, cls), contents)
    return _classes[cls]


def _managed_options(kwargs: dict) -> dict:
    """Return the keyword arguments for DistributedDataParallel."""
    for name in _REFUSED:
        if kwargs.get(name) is not None:
            raise unsupported("torch.distributed._composable.replicate", f"{name} is not supported")
    options = dict(kwargs)
    if "device_id" in options:
        place = options.pop("device_id")
        if not isinstance(place, (int, device)):
            raise RuntimeError(f"Expected device_id to be int or torch.device, but got {type(place)}")
        on_cpu = isinstance(place, device) and place.type == "cpu"
        options["device_ids"] = None if on_cpu else [place]
    return options


def replicate(module: Module, ignored_modules=None, **kwargs) -> Module:
    """Average the gradients of a module's parameters over the processes of a group, in place.

    ignored_modules: submodules whose parameters are left alone; their buffers too. kwargs: arguments of
    DistributedDataParallel, and `device_id`, the module's device. Returns the module.

    Raises:
        AssertionError: the module has a state of `replicate` or `fully_shard` already.
    """
    options = _managed_options(kwargs)
    ignored = {id(tensor) for one in ignored_modules or () for tensor in (*one.parameters(), *one.buffers())}
    if ignored:
        tensors = (*module.named_parameters(), *module.named_buffers())
        names = [name for name, tensor in tensors if id(tensor) in ignored]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(module, names)
    state = _ReplicateState(module, options)
    _insert_module_state(module, state)
    module.register_forward_pre_hook(state.before_forward, with_kwargs=True)
    module.register_forward_hook(state.after_forward)
    module.__class__ = _class_of(type(module))
    return module
