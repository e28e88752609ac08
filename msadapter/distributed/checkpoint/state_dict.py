"""State dicts of models and optimizers under the original parameter names, for wrapped and sharded models too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ... import ops
from ..._errors import unsupported
from ...autograd import no_grad
from ...nn import Module
from ...nn.parallel import DistributedDataParallel
from ...tensor import Tensor
from ...utils._pytree import tree_map
from .. import collectives, objects
from ..setup import get_rank, is_initialized
from ..tensor import DTensor, distribute_tensor

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]

_WRAPPERS = ("module.", "_orig_mod.", "_checkpoint_wrapped_module.", "_fsdp_wrapped_module.")


@dataclass
class StateDictOptions:
    """Options of the functions below.

    full_state_dict: unsharded tensors instead of DTensors; with cpu_offload only on rank 0. broadcast_from_rank0: when a state
    dict is loaded, use rank 0's unsharded values. flatten_optimizer_state_dict: use a flat dict of names.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"

    def __post_init__(self):
        if self.broadcast_from_rank0 and not self.full_state_dict:
            raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")


class _IncompatibleKeys(NamedTuple):
    missing_keys: list
    unexpected_keys: list


def _fqn(name: str) -> str:
    """A parameter's name without the prefixes of wrappers."""
    parts = [part + "." for part in name.split(".")]
    return "".join(part for part in parts[:-1] if part not in _WRAPPERS) + parts[-1][:-1]


def _unwrapped(model):
    return model.module if isinstance(model, DistributedDataParallel) else model


def _replace(owner, name: str, function) -> None:
    """Replaces a method of one object. `_original` still finds the method that it had."""
    function.original = _original(owner, name)
    setattr(owner, name, function)


def _original(owner, name: str):
    """A method of an object as it was before `_replace`."""
    method = getattr(owner, name)
    return getattr(method, "original", method)


def _names(model) -> dict:
    """Parameter -> its names. Shared parameters have several names."""
    found: dict = {}
    for name, parameter in _unwrapped(model).named_parameters(remove_duplicate=False):
        found.setdefault(parameter, []).append(_fqn(name))
    return found


def _moved(value, options: StateDictOptions):
    """The value, unsharded and moved to the host if the options say so."""
    if isinstance(value, DTensor) and options.full_state_dict:
        value = value.full_tensor()
    if isinstance(value, Tensor) and options.cpu_offload:
        value = value.cpu()
    return value.detach() if isinstance(value, Tensor) else value


def _given(state: dict, options: StateDictOptions) -> dict:
    """Converts the state dict according to the options. With full_state_dict and cpu_offload, other ranks get an empty one."""
    with no_grad():
        made = tree_map(lambda x: _moved(x, options), state)
    only_first = options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0
    return {} if only_first else made


# ---- models
def get_model_state_dict(model: Module, *, submodules=None, options: StateDictOptions | None = None) -> dict:
    """The model's state dict, {name: DTensor, tensor or object}."""
    options = options or StateDictOptions()
    if submodules is not None:
        raise unsupported("torch.distributed.checkpoint.state_dict", "submodules is not supported")
    frozen = {n for p, names in _names(model).items() if not p.requires_grad for n in names}
    state = {_fqn(name): value for name, value in _original(_unwrapped(model), "state_dict")().items()}
    if options.ignore_frozen_params:
        state = {name: value for name, value in state.items() if name not in frozen}
    return _given(state, options)


def _spread_like(value, target):
    """Shards an unsharded value like ``target``."""
    if isinstance(target, DTensor) and isinstance(value, Tensor) and not isinstance(value, DTensor):
        return distribute_tensor(value.detach(), target.device_mesh, target.placements, src_data_rank=None)
    return value


def _memory_of(targets: dict):
    """The device of the tensors that are not on "meta", the host if there is none, and whether some are on "meta"."""
    devices = {value.device for value in targets.values() if isinstance(value, Tensor) and value.dim() > 0}
    real = {device for device in devices if device.type != "meta"}
    if len(real) > 1:
        raise ValueError("Multiple devices found")
    return next(iter(real), "cpu"), real != devices


def _from_first(state: dict, device_of) -> dict:
    """Broadcasts rank 0's values to all ranks, one tensor at a time, to the device that `device_of(name)` returns."""
    first = get_rank() == 0
    described = [
        {k: ((tuple(v.shape), v.dtype) if isinstance(v, Tensor) else (None, v)) for k, v in state.items()}
        if first
        else None
    ]
    objects.broadcast_object_list(described, 0)
    made = {}
    for key, (shape, kind) in described[0].items():
        if shape is None:
            made[key] = kind
            continue
        device = device_of(key)
        value = (
            state[key].detach().to(device).contiguous()
            if first
            else ops.empty(shape, dtype=kind, device=device)
        )
        collectives.broadcast(value, 0)
        made[key] = value
    return made


def set_model_state_dict(
    model: Module, model_state_dict: dict, *, options: StateDictOptions | None = None
) -> _IncompatibleKeys:
    """Loads a state dict of DTensors, or, with full_state_dict, of unsharded tensors."""
    options = options or StateDictOptions()
    inner = _unwrapped(model)
    own = _original(inner, "state_dict")()
    by_name = {_fqn(name): name for name in own}
    given, assign = dict(model_state_dict), False
    if options.full_state_dict:
        # A parameter without memory is replaced, because nothing can be copied to it.
        device, assign = _memory_of(own)
        given = _from_first(given, lambda name: device) if options.broadcast_from_rank0 else given
    state = {by_name.get(n, n): _spread_like(v, own.get(by_name.get(n, n))) for n, v in given.items()}
    return _IncompatibleKeys(
        *_original(inner, "load_state_dict")(state, strict=options.strict, assign=assign)
    )


# ---- optimizers
def _all(optimizers) -> tuple:
    return (optimizers,) if not isinstance(optimizers, (list, tuple)) else tuple(optimizers)


def _init_optim_state(optimizer) -> None:
    """Creates the state of an optimizer that has not stepped, by a step with zero gradients and learning rate 0."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    if any(p.grad is not None for p in parameters):
        return
    rates = [group.get("lr") for group in optimizer.param_groups]
    for p in parameters:
        if p.requires_grad:
            p.grad = ops.zeros_like(p.detach())
    for group in optimizer.param_groups:
        if group.get("lr") is not None:
            group["lr"] = ops.zeros_like(group["lr"]) if isinstance(group["lr"], Tensor) else 0.0
    optimizer.step(closure=None)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)


def _optimizer_state(model, optimizer, options) -> dict:
    _init_optim_state(optimizer)
    names = _names(model)
    skip = {p for p in names if options.ignore_frozen_params and not p.requires_grad}
    state = {
        names[p][0]: dict(optimizer.state[p])
        for group in optimizer.param_groups
        for p in group["params"]
        if p in optimizer.state and p not in skip
    }
    groups = []
    for group in optimizer.param_groups:
        made = {k: v for k, v in group.items() if k != "params"}
        groups.append(made | {"params": [names[p][0] for p in group["params"] if p not in skip]})
    return {"state": state, "param_groups": groups}


def _flattened(state: dict) -> dict:
    made = {
        f"state.{name}.{key}": value
        for name, values in state["state"].items()
        for key, value in values.items()
    }
    for group in state["param_groups"]:
        for name in group["params"]:
            made |= {f"param_groups.{name}.{key}": value for key, value in group.items() if key != "params"}
    return made


def _unflattened(flat: dict, model, optimizer) -> dict:
    names = _names(model)
    known = sorted({n for all_names in names.values() for n in all_names}, key=len, reverse=True)
    state: dict = {}
    for key, value in flat.items():
        if key.startswith("state."):
            name = next(n for n in known if key.startswith(f"state.{n}."))
            state.setdefault(name, {})[key[len(f"state.{name}.") :]] = value
    groups = []
    for group in optimizer.param_groups:
        members = [names[p][0] for p in group["params"]]
        made = {k: flat.get(f"param_groups.{members[0]}.{k}", v) for k, v in group.items() if k != "params"}
        groups.append(made | {"params": members})
    return {"state": state, "param_groups": groups}


def get_optimizer_state_dict(
    model: Module, optimizers, *, submodules=None, options: StateDictOptions | None = None
) -> dict:
    """The state {"state": {name: {...}}, "param_groups": [{"params": [names], ...}]} of one or several optimizers."""
    options = options or StateDictOptions()
    if submodules is not None:
        raise unsupported("torch.distributed.checkpoint.state_dict", "submodules is not supported")
    made: dict = {"state": {}, "param_groups": []}
    for optimizer in _all(optimizers):
        one = _optimizer_state(model, optimizer, options)
        made["state"] |= one["state"]
        made["param_groups"] += one["param_groups"]
    if options.flatten_optimizer_state_dict:
        made = _flattened(made)
    return _given(made, options)


def set_optimizer_state_dict(
    model: Module, optimizers, optim_state_dict: dict, *, options: StateDictOptions | None = None
) -> None:
    """Loads a result of `get_optimizer_state_dict`, which may come from a different number of processes."""
    options = options or StateDictOptions()
    for optimizer in _all(optimizers):
        _init_optim_state(optimizer)
        given = optim_state_dict
        if options.broadcast_from_rank0:
            given = _optimizer_from_first(given, model, optimizer, options)
        elif options.flatten_optimizer_state_dict:
            given = _unflattened(given, model, optimizer)
        _load_optimizer(model, optimizer, given, options)


def _optimizer_from_first(given, model, optimizer, options):
    flat = given if options.flatten_optimizer_state_dict or get_rank() != 0 else _flattened(given)
    targets = _flattened(_optimizer_state(model, optimizer, options))
    spread = _from_first(flat, lambda name: getattr(targets.get(name), "device", "cpu"))
    return _unflattened(spread, model, optimizer)


def _load_optimizer(model, optimizer, given, options) -> None:
    names, own = _names(model), _original(optimizer, "state_dict")()
    order = [p for group in optimizer.param_groups for p in group["params"]]
    state, groups, start = {}, [], 0
    for i, p in enumerate(order):
        key = next((n for n in names[p] if n in given["state"]), None)
        if key is None:
            if p in optimizer.state and options.strict and not options.ignore_frozen_params:
                raise RuntimeError(f"Missing optimizer state for parameter '{names[p][0]}' in checkpoint. ")
            continue
        state[i] = {k: _state_like(v, p, optimizer.state[p].get(k)) for k, v in given["state"][key].items()}
    for group in own["param_groups"]:
        members = [n for p in order[start : start + len(group["params"])] for n in names[p]]
        start += len(group["params"])
        theirs = next((g for g in given["param_groups"] if set(g["params"]) & set(members)), {})
        groups.append(
            group | {k: v for k, v in theirs.items() if k != "params"} | {"params": group["params"]}
        )
    _original(optimizer, "load_state_dict")({"state": state, "param_groups": groups})


def _state_like(value, parameter, own):
    target = (
        own
        if isinstance(own, DTensor)
        else parameter
        if getattr(value, "shape", None) == parameter.shape
        else None
    )
    return _spread_like(value, target)


# ---- both
def get_state_dict(
    model: Module, optimizers, *, submodules=None, options: StateDictOptions | None = None
) -> tuple:
    """Returns (state dict of the model, state dict of the optimizers)."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options)
        if _all(optimizers)
        else {},
    )


def set_state_dict(
    model: Module,
    optimizers,
    *,
    model_state_dict: dict,
    optim_state_dict: dict,
    options: StateDictOptions | None = None,
) -> _IncompatibleKeys:
    """Loads the state dicts of the model and of the optimizers."""
    if _all(optimizers):
        set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _patch_model_state_dict(model: Module, *, options: StateDictOptions | None = None) -> None:
    """Replaces `model.state_dict` and `model.load_state_dict` by the functions above."""
    _replace(model, "state_dict", lambda: get_model_state_dict(model, options=options))
    _replace(model, "load_state_dict", lambda state: set_model_state_dict(model, state, options=options))


def _patch_optimizer_state_dict(
    model: Module, *, optimizers, options: StateDictOptions | None = None
) -> None:
    """Replaces the optimizers' state dict methods by the functions above."""
    for optimizer in _all(optimizers):
        _replace(
            optimizer, "state_dict", lambda: get_optimizer_state_dict(model, optimizers, options=options)
        )
        _replace(
            optimizer,
            "load_state_dict",
            lambda state: set_optimizer_state_dict(model, optimizers, state, options=options),
        )
