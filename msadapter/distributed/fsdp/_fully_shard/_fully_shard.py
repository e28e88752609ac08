"""The function fully_shard and the class that it gives to a module."""

from __future__ import annotations

import functools

from ...._errors import unsupported
from ....nn import Module, ModuleDict, ModuleList
from ..._composable_state import _get_module_state, _insert_module_state
from ._fsdp_api import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy
from ._fsdp_group import FSDPGroup
from ._fsdp_init import (
    _get_device_from_mesh,
    checked,
    managed_modules,
    managed_parameters,
    mesh_info,
    move_to_device,
)
from ._fsdp_param import FSDPParam
from ._fsdp_state import FSDPState

_classes: dict = {}


def _is_managed(module) -> bool:
    return isinstance(_get_module_state(module), FSDPState)


def fully_shard(
    module,
    *,
    mesh=None,
    reshard_after_forward=None,
    shard_placement_fn=None,
    mp_policy=MixedPrecisionPolicy(),  # noqa: B008
    offload_policy=OffloadPolicy(),  # noqa: B008
    ignored_params=None,
):
    """Shards the parameters of a module, or of several modules as one group, over a mesh, in place.

    Submodules to which fully_shard was applied before keep their own groups. Parameters become DTensors. They are unsharded
    while the module runs, and backward averages gradients into their shards.

    mesh: one dimension, or two (replicate, shard). reshard_after_forward: release parameters between forward and backward
    (default: true unless the module is the root). shard_placement_fn(parameter): returns Shard(dim), or None for dim 0.
    mp_policy, offload_policy: see their classes.
    """
    modules = tuple(module) if isinstance(module, (list, tuple)) else (module,)
    for one in modules:
        if isinstance(one, (ModuleList, ModuleDict)):
            raise ValueError(f"fully_shard does not support containers that do not implement forward: {one}")
        if _is_managed(one):
            raise AssertionError(
                "Each distinct composable distributed API can only be applied to a module once: fully_shard"
            )
    if reshard_after_forward is not None and not isinstance(reshard_after_forward, bool):
        raise unsupported(
            "torch.distributed.fsdp.fully_shard",
            "reshard_after_forward as a number of processes is not supported",
        )
    info = mesh_info(mesh)
    below = managed_modules(modules, _is_managed)
    found = managed_parameters(below, ignored_params or set())
    for parameter, _ in found:
        checked(parameter)
    move_to_device((p for p, _ in found), below, _get_device_from_mesh(info.mesh))
    offload = isinstance(offload_policy, CPUOffloadPolicy)
    place = shard_placement_fn or (lambda _: None)
    params = [FSDPParam(p, places, info, mp_policy, offload, place(p)) for p, places in found]
    group = FSDPGroup(params, info, mp_policy) if params else None
    auto = reshard_after_forward is None
    state = FSDPState(modules, group, mp_policy, True if auto else reshard_after_forward, auto)
    for one in modules:
        _insert_module_state(one, state)
        one.__class__ = _class_of(type(one))
    return module


def _class_of(cls):
    if cls not in _classes:
        _classes[cls] = type(
            f"FSDP{cls.__name__}",
            (FSDPModule, cls),
            {"__deepcopy__": _no_deepcopy, "__module__": cls.__module__},
        )
    return _classes[cls]


def _no_deepcopy(self, memo):
    raise AssertionError("FSDP does not support deepcopy. Please use state dict for serialization.")


class UnshardHandle:
    """The handle of an asynchronous unshard, which is complete here when it returns."""

    def wait(self) -> None:
        """Does nothing, because the operation is complete."""


class FSDPModule:
    """The class that `fully_shard` adds to a module."""

    def __new__(cls, *args, **kwargs):
        """Creates an instance of the original class of a sharded module."""
        original = cls.__mro__[2]
        made = original.__new__(original, *args, **kwargs)
        made.__init__(*args, **kwargs)
        return made

    def _get_fsdp_state(self) -> FSDPState:
        state = _get_module_state(self)
        if not isinstance(state, FSDPState):
            raise AssertionError(f"No FSDP state found on {self}")
        return state

    def _states(self, recurse: bool) -> list:
        """The state of this module; with `recurse` also those of submodules."""
        modules = self.modules() if recurse else [self]
        found = [_get_module_state(m) for m in modules]
        return list(dict.fromkeys(s for s in found if isinstance(s, FSDPState)))

    def _groups(self, recurse: bool) -> list:
        return [s.group for s in self._states(recurse) if s.group is not None]

    def reshard(self) -> None:
        """Releases the unsharded parameters of this module, but not those of submodules with their own fully_shard."""
        for group in self._groups(False):
            group.reshard()

    def unshard(self, async_op: bool = False):
        """Gathers the parameters of this module, but not those of submodules with their own fully_shard."""
        for group in self._groups(False):
            if not group.gathered:
                group.reread()  # before the first forward, parameters may just have been loaded
            group.unshard()
        return UnshardHandle() if async_op else None

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Records whether the next backward is the last one before the optimizer step."""
        for state in self._states(True):
            state.is_last_backward = is_last_backward

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Sets whether backward reduces gradients. Otherwise unsharded gradients accumulate on each process."""
        for group in self._groups(recurse):
            group.reduces = group.all_reduces = requires_gradient_sync

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """Sets whether backward also reduces over replicas."""
        for group in self._groups(recurse):
            group.all_reduces = requires_all_reduce

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Sets whether parameters are released between forward and backward."""
        for state in self._states(recurse):
            state.reshard_after_forward, state.auto = reshard_after_forward, False

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Sets whether parameters are released after backward."""
        for state in self._states(recurse):
            state.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules) -> None:
        """Checks its argument and has no other effect: parameters are not prefetched."""
        _check_prefetched(modules)

    def set_modules_to_backward_prefetch(self, modules) -> None:
        """Checks its argument and has no other effect: parameters are not prefetched."""
        _check_prefetched(modules)

    def set_all_reduce_hook(self, hook, *, stream=None) -> None:
        """Registers hook(reduced flat gradients), which is called after the reduction."""
        for group in self._groups(False):
            group.all_reduce_hook = hook

    def set_post_optim_event(self, event) -> None:
        """Accepted for compatibility; it has no effect, because operations are complete when they return."""

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Sets the divisor of summed gradients, which is the number of processes by default."""
        for group in self._groups(False):
            group.divide_factor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Accepted for compatibility; reductions are always sums here."""

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Sets whether backward gathers the parameters. Only True is supported."""
        if not unshard_in_backward:
            raise unsupported("torch.distributed.fsdp.FSDPModule.set_unshard_in_backward(False)")

    def _set_unshard_async_op(self, async_op: bool) -> None:
        """Accepted for compatibility; unsharding is always complete when it returns."""

    def _apply(self, *args, **kwargs):
        self.reshard()
        made = super()._apply(*args, **kwargs)
        for group in self._groups(False):
            group.reread()
        return made


def _check_prefetched(modules) -> None:
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expected an FSDPModule to prefetch, but got {type(module).__name__}")


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Treats a method like forward: parameters are gathered before it and released after it."""
    if not isinstance(module, FSDPModule):
        return
    if not hasattr(module, method_name):
        raise ValueError(f"{type(module)} does not have a method {method_name}")
    original = getattr(module, method_name)

    @functools.wraps(original)
    def wrapped(*args, **kwargs):
        state = module._get_fsdp_state()
        args, kwargs = state._before_forward(module, args, kwargs)
        return state._after_forward(module, args, original(*args, **kwargs))

    setattr(module, method_name, wrapped)
