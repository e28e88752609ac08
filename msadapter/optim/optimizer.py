"""The base class of optimizers: parameter groups, state, hooks and state dicts."""

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from copy import deepcopy
from itertools import chain

from .._values.dtype import float32
from ..autograd import is_grad_enabled, set_grad_enabled
from ..profiler import record_function
from ..tensor import Tensor
from ..tensor import _tensor as factory
from ..utils.hooks import RemovableHandle

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

ParamsT = Iterable[Tensor] | Iterable[dict[str, object]] | Iterable[tuple[str, Tensor]]

_global_pre_hooks: dict = OrderedDict()
_global_post_hooks: dict = OrderedDict()


class _Required:
    """Marks a hyper-parameter without default, which every group must give."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()


def _register(hooks: dict, hook, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before the step of every optimizer."""
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after the step of every optimizer."""
    return _register(_global_post_hooks, hook)


def _use_grad_for_differentiable(step):
    """Run a step outside of autograd, or inside if the optimizer is `differentiable`."""

    @functools.wraps(step)
    def wrapper(self, *args, **kwargs):
        before = is_grad_enabled()
        set_grad_enabled(bool(self.defaults.get("differentiable", False)))
        try:
            return step(self, *args, **kwargs)
        finally:
            set_grad_enabled(before)

    return wrapper


def _to_scalar(x):
    """Return a learning rate for the update rules: a number, or a 0-dimensional tensor.

    The dtype of the tensor decides how the arithmetic is rounded.
    """
    return x.reshape(()) if isinstance(x, Tensor) and x.dim() != 0 else x


def _get_value(x):
    """Return the number in a tensor with one element. Numbers are returned as they are."""
    return x.item() if isinstance(x, Tensor) else x


def _get_scalar_dtype(is_fused=None):
    """Return the dtype of step counters: float32, or float64 if that is the default dtype."""
    if is_fused:
        return float32
    default = factory.tensor(0.0).dtype
    return default if default.itemsize == 8 else float32


def _default_to_fused_or_foreach(params, differentiable, use_fused=False):
    """Return defaults for (fused, foreach). The update rules here choose the fused kernel by themselves."""
    return False, False


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """Return the function unchanged, because nothing is compiled."""
    return lambda func: func


class Optimizer:
    """Base class. It holds `param_groups` (hyper-parameters and their parameters) and `state`.

    params: tensors, (name, tensor) pairs, or dicts with an entry 'params' and the hyper-parameters of this
    group. defaults: hyper-parameters for groups that do not give them.
    """

    def __init__(self, params, defaults: dict):
        self.defaults = defaults
        self._init_hooks()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or "
                "dicts, "
                f"but got {params.type()}"
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(dict(group))
        self._warned_capturable_if_run_uncaptured = True

    def _init_hooks(self):
        self._optimizer_step_pre_hooks = OrderedDict()
        self._optimizer_step_post_hooks = OrderedDict()
        self._optimizer_state_dict_pre_hooks = OrderedDict()
        self._optimizer_state_dict_post_hooks = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks = OrderedDict()
        self._optimizer_load_state_dict_post_hooks = OrderedDict()

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state):
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._init_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self):
        text = self.__class__.__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            for key in sorted(group):
                if key != "params":
                    text += f"    {key}: {group[key]}\n"
        return text + ")"

    # -- steps and their hooks -----------------------------------------------------------------------------
    def _patch_step_function(self):
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{self.__class__.__name__}.zero_grad"
        if not getattr(self.__class__.step, "hooked", None):
            self.__class__.step = self.profile_hook_step(self.__class__.step)
            self.__class__.step.hooked = True

    @staticmethod
    def profile_hook_step(func):
        """Wrap a step: pre-hooks, then the step inside a profiler range, then post-hooks."""

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            self = args[0]
            with record_function(f"Optimizer.step#{self.__class__.__name__}.step"):
                for hook in chain(_global_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                    result = hook(self, args, kwargs)
                    if result is not None:
                        if not (isinstance(result, tuple) and len(result) == 2):
                            raise RuntimeError(
                                f"{func} must return None or a tuple of (new_args, "
                                "new_kwargs), "
                                f"but got {result}."
                            )
                        args, kwargs = result
                out = func(*args, **kwargs)
                self._optimizer_step_code()
                for hook in chain(self._optimizer_step_post_hooks.values(), _global_post_hooks.values()):
                    hook(self, args, kwargs)
            return out

        return wrapper

    def _optimizer_step_code(self):
        """A function to which profilers attach."""

    def register_step_pre_hook(self, hook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step. It may return new (args, kwargs)."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before state_dict."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after state_dict. It may return another dict."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before load_state_dict. It may return another dict."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after load_state_dict."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def step(self, closure=None):
        """Update all parameters once."""
        raise NotImplementedError

    def _cuda_graph_capture_health_check(self):
        """Does nothing, because there are no CUDA graphs."""

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Remove the gradients of all parameters, or set them to zero (set_to_none=False)."""
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                if set_to_none:
                    p.grad = None
                    continue
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # -- groups --------------------------------------------------------------------------------------------
    def add_param_group(self, param_group: dict) -> None:
        """Add a group: a dict with hyper-parameters and 'params' (a tensor, tensors, or (name, tensor)
        pairs).
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the "
                "ordering of "
                "tensors in sets will change between runs. Please use a list instead."
            )
        param_group["params"], names = _split_names(list(params))
        if names:
            param_group["param_names"] = names
        for p in param_group["params"]:
            if not isinstance(p, Tensor):
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {_type_name(p)}"
                )
            if not self.defaults.get("differentiable", None) and not (p.is_leaf or p.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        self._check_new_group(param_group)
        self.param_groups.append(param_group)

    def _check_new_group(self, group):
        params = group["params"]
        if len(params) != len({id(p) for p in params}):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this "
                "will "
                "cause an error; see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=4,
            )
        if self.param_groups and ("param_names" in self.param_groups[0]) != ("param_names" in group):
            given = "with names" if "param_names" in group else "without names"
            raise ValueError(
                "all optimizer param groups should be with/without names. "
                f"cannot add param group {given} to the optimizer"
            )
        present = {id(p) for other in self.param_groups for p in other["params"]}
        if present & {id(p) for p in params}:
            raise ValueError("some parameters appear in more than one parameter group")

    # -- state_dict ----------------------------------------------------------------------------------------
    def state_dict(self) -> dict:
        """Return {'state': {index: state}, 'param_groups': [groups with indices instead of parameters]}."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        index_of, start = {}, 0
        groups = []
        for group in self.param_groups:
            packed = {k: v for k, v in group.items() if k != "params"}
            # A parameter that a group has twice gets the index of its last place, as in PyTorch.
            places = {id(p): start + i for i, p in enumerate(group["params"])}
            index_of = places | index_of
            start += len(group["params"])
            packed["params"] = [index_of[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {(index_of[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, result)
            if replaced is not None:
                result = replaced
        return result

    def load_state_dict(self, state_dict: dict) -> None:
        """Restore what state_dict() returned. The groups must have the same numbers of parameters."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            if replaced is not None:
                state_dict = replaced
        saved = deepcopy(state_dict["param_groups"])
        groups = self.param_groups
        if len(groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(
            len(mine["params"]) != len(theirs["params"]) for mine, theirs in zip(groups, saved, strict=True)
        ):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of "
                "optimizer's group"
            )
        by_index = dict(
            zip(
                chain.from_iterable(g["params"] for g in saved),
                chain.from_iterable(g["params"] for g in groups),
                strict=True,
            )
        )
        state = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in by_index:
                p = by_index[key]
                state[p] = _cast_state(p, value, key, saved)
            else:
                state[key] = value
        merged = [_merge_group(mine, theirs) for mine, theirs in zip(groups, saved, strict=True)]
        self.__setstate__({"state": state, "param_groups": merged})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    @staticmethod
    def _process_value_according_to_param_policy(param, value, param_id, param_groups, key=None):
        """Return a loaded state tensor on the parameter's device, and in its dtype if that is floating point.

        Step counters keep their dtype, and move to the device only for capturable or fused groups.
        """
        if key == "step":
            group = next((g for g in param_groups if param_id in g["params"]), {})
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)


def _split_names(params):
    if not params or not isinstance(params[0], tuple):
        if any(isinstance(p, tuple) for p in params):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        return params, []
    names = []
    for entry in params:
        if not isinstance(entry, tuple):
            raise ValueError(
                "all optimizer params should be with/without names. Some param names are missing"
            )
        names.append(entry[0])
    return [entry[1] for entry in params], names


def _type_name(obj) -> str:
    module = type(obj).__module__
    return type(obj).__name__ if module == "builtins" else f"{module}.{type(obj).__name__}"


def _cast_state(param, value, param_id, groups, key=None):
    if isinstance(value, Tensor):
        return Optimizer._process_value_according_to_param_policy(param, value, param_id, groups, key)
    if isinstance(value, dict):
        return {k: _cast_state(param, v, param_id, groups, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_cast_state(param, v, param_id, groups) for v in value)
    return value


def _merge_group(mine, saved):
    saved["params"] = mine["params"]
    if "param_names" in mine and "param_names" not in saved:
        saved["param_names"] = mine["param_names"]
    return saved
