"""Hooks of modules: the registries (of one module and global) and the wiring of backward hooks."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict

from ...autograd import Function
from ...tensor import Tensor
from ...utils.hooks import RemovableHandle

_global_forward_pre_hooks: dict = OrderedDict()
_global_forward_hooks: dict = OrderedDict()
_global_forward_hooks_always_called: dict = OrderedDict()
_global_forward_hooks_with_kwargs: dict = OrderedDict()
_global_backward_pre_hooks: dict = OrderedDict()
_global_backward_hooks: dict = OrderedDict()
_global_buffer_registration_hooks: dict = OrderedDict()
_global_module_registration_hooks: dict = OrderedDict()
_global_parameter_registration_hooks: dict = OrderedDict()
_global_is_full_backward_hook: bool | None = None


def _has_any_global_hook():
    return (
        _global_backward_pre_hooks
        or _global_backward_hooks
        or _global_forward_hooks
        or _global_forward_pre_hooks
        or _global_forward_hooks_always_called
        or _global_forward_hooks_with_kwargs
    )


def _add(registry, hook):
    handle = RemovableHandle(registry)
    registry[handle.id] = hook
    return handle


def register_module_forward_pre_hook(hook):
    """Call ``hook(module, input)`` before every module's forward; returns a removable handle."""
    return _add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(hook, *, with_kwargs=False, always_call=False):
    """Call ``hook(module, input, output)`` after every module's forward; returns a removable handle."""
    handle = RemovableHandle(
        _global_forward_hooks,
        extra_dict=[_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called],
    )
    _global_forward_hooks[handle.id] = hook
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_backward_hook(hook):
    """Deprecated form of :func:`register_module_full_backward_hook`."""
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is True:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full_backward_hook = False
    return _add(_global_backward_hooks, hook)


def register_module_full_backward_pre_hook(hook):
    """Call ``hook(module, grad_output)`` before every module's backward."""
    return _add(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook):
    """Call ``hook(module, grad_input, grad_output)`` after every module's backward."""
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is False:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module "
            "hook. Please use only one of them."
        )
    _global_is_full_backward_hook = True
    return _add(_global_backward_hooks, hook)


def register_module_buffer_registration_hook(hook):
    """Call ``hook(module, name, buffer)`` whenever a module registers a buffer."""
    return _add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook):
    """Call ``hook(module, name, submodule)`` whenever a module registers a submodule."""
    return _add(_global_module_registration_hooks, hook)


def register_module_parameter_registration_hook(hook):
    """Call ``hook(module, name, param)`` whenever a module registers a parameter."""
    return _add(_global_parameter_registration_hooks, hook)


class BackwardHookFunction(Function):
    """An identity function whose backward passes the gradients of all its tensors to a callback.

    With ``materialize`` the callback gets zeros where no gradient arrived, as the hooks get them for a module's inputs.
    """

    @staticmethod
    def forward(ctx, callback, materialize, *tensors):
        ctx.callback = callback
        ctx.set_materialize_grads(materialize)
        ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, *ctx.callback(grads))


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


class BackwardPass:
    """Runs the full backward hooks for one call of a module.

    The inputs and the outputs of the call pass through identity nodes. In backward, the node of the outputs
    receives grad_output first and runs the pre-hooks. The node of the inputs receives grad_input later and
    runs the hooks.
    """

    def __init__(self, module, hooks, pre_hooks):
        self.module = module
        self.hooks = hooks
        self.pre_hooks = pre_hooks
        self.grad_outputs = None
        self.n_inputs = None
        self.input_positions = []
        self.n_outputs = 0
        self.output_positions = []

    def tap_inputs(self, args):
        self.n_inputs = len(args)
        args, self.input_positions = self._tap(args, self._on_grad_inputs, True)
        return args

    def tap_outputs(self, result):
        if isinstance(result, Tensor):
            values, rebuild = (result,), None
        elif isinstance(result, tuple):
            values, rebuild = result, type(result)
        else:
            return result
        self.n_outputs = len(values)
        values, self.output_positions = self._tap(values, self._on_grad_outputs, False)
        if rebuild is None:
            return values[0]
        return rebuild(*values) if hasattr(rebuild, "_fields") else rebuild(values)

    @staticmethod
    def _tap(values, callback, materialize: bool):
        positions = [i for i, v in enumerate(values) if isinstance(v, Tensor)]
        if not any(values[i].requires_grad for i in positions):
            return values, []
        tapped = BackwardHookFunction.apply(callback, materialize, *(values[i] for i in positions))
        values = list(values)
        for i, t in zip(positions, tapped, strict=True):
            values[i] = t
        return tuple(values), positions

    def _on_grad_outputs(self, grads):
        full = self._spread(grads, self.output_positions, self.n_outputs)
        for hook in self.pre_hooks:
            changed = hook(self.module, full)
            if changed is not None:
                full = self._checked(changed, full, "grad_outputs")
        self.grad_outputs = full
        if not self.input_positions:
            # Nothing before this module needs a gradient, so the node of the inputs will not run. The hooks
            # are therefore called now, with None as grad_input.
            for hook in self.hooks:
                changed = hook(self.module, (None,) * (self.n_inputs or 0), full)
                if changed is not None and not all(g is None for g in _as_tuple(changed)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should "
                        "always return None or None for all gradients."
                    )
            self.grad_outputs = None
        return tuple(full[i] for i in self.output_positions)

    def _on_grad_inputs(self, grads):
        if self.grad_outputs is None and self.hooks and self.n_outputs:
            # The gradient came to the input without passing the output, for example in a double backward.
            return grads
        full = self._spread(grads, self.input_positions, self.n_inputs)
        for hook in self.hooks:
            changed = hook(self.module, full, self.grad_outputs)
            if changed is not None:
                full = self._checked(changed, full, "grad_inputs")
        self.grad_outputs = None
        return tuple(full[i] for i in self.input_positions)

    @staticmethod
    def _spread(grads, positions, length):
        full = [None] * length
        for i, g in zip(positions, grads, strict=True):
            full[i] = g
        return tuple(full)

    @staticmethod
    def _checked(changed, current, what):
        changed = _as_tuple(changed)
        if len(changed) != len(current):
            raise RuntimeError(
                f"Backward hook returned an invalid number of {what}, "
                f"got {len(changed)}, but expected {len(current)}"
            )
        return changed


class HookSupport:
    """The methods of Module that register hooks, one for each kind of hook."""

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call ``hook(module, args)`` before forward, or ``hook(module, args, kwargs)`` with ``with_kwargs``.

        A result that is not None replaces the arguments. Returns a handle with a ``remove`` method.
        """
        handle = RemovableHandle(self._forward_pre_hooks, extra_dict=self._forward_pre_hooks_with_kwargs)
        self._forward_pre_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call ``hook(module, args, output)`` after forward, or ``hook(module, args, kwargs, output)`` with
        ``with_kwargs``.

        A result that is not None replaces the output. With ``always_call`` the hook also runs when forward
        raises an error. Returns a handle with a ``remove`` method.
        """
        handle = RemovableHandle(
            self._forward_hooks,
            extra_dict=[self._forward_hooks_with_kwargs, self._forward_hooks_always_called],
        )
        self._forward_hooks[handle.id] = hook
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_output)`` before the module's backward. A result replaces grad_output."""
        handle = _add(self._backward_pre_hooks, hook)
        if prepend:
            self._backward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_hook(self, hook, prepend=False):
        """Call ``hook(module, grad_input, grad_output)`` after the module's backward.

        A result that is not None replaces grad_input. A module cannot have this kind of hook and
        :meth:`register_backward_hook` at once.
        """
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = True
        handle = _add(self._backward_hooks, hook)
        if prepend:
            self._backward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_backward_hook(self, hook):
        """Register a hook on the graph node of the output.

        Deprecated: use :meth:`register_full_backward_hook`.
        """
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = False
        return _add(self._backward_hooks, hook)

    def register_state_dict_post_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata)`` after state_dict.

        It may change the dict in place.
        """
        hook._from_public_api = True
        return _add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook):
        """Like the public method, but a result that is not None replaces the state dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was "
                "previously registered via register_state_dict_post_hook"
            )
        return _add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook):
        """Call ``hook(module, prefix, keep_vars)`` before the state dict is made."""
        return _add(self._state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook):
        """Call ``hook(module, state_dict, prefix, local_metadata, strict, missing, unexpected, errors)``
        before loading.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook, with_module=False):
        return _add(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook):
        """Call ``hook(module, incompatible_keys)`` after loading.

        It may change the lists of keys in place.
        """
        return _add(self._load_state_dict_post_hooks, hook)

    def _get_backward_hooks(self):
        """Return the full and the legacy backward hooks that apply to this module, global hooks first."""
        full, legacy = [], []
        if _global_is_full_backward_hook is True:
            full += _global_backward_hooks.values()
        if self._is_full_backward_hook is True:
            full += self._backward_hooks.values()
        if _global_is_full_backward_hook is False:
            legacy += _global_backward_hooks.values()
        if self._is_full_backward_hook is False:
            legacy += self._backward_hooks.values()
        return full, legacy

    def _get_backward_pre_hooks(self):
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]


class _WrappedHook:
    """A load_state_dict pre-hook. It passes ``module`` as first argument, unless ``module`` is None.

    The hook is kept by its module, so it refers to the module weakly: a module without other users is freed at once.
    """

    def __init__(self, hook, module):
        self.hook = hook
        self.with_module = module is not None
        self.module = weakref.ref(module) if self.with_module else None

    def __call__(self, *args, **kwargs):
        if self.with_module:
            module = self.module()
            if module is None:
                raise RuntimeError("You are trying to call the hook of a dead Module!")
            return self.hook(module, *args, **kwargs)
        return self.hook(*args, **kwargs)

    def __getstate__(self):
        state = {"hook": self.hook, "with_module": self.with_module}
        return {**state, "module": self.module()} if self.with_module else state

    def __setstate__(self, state):
        module = state.get("module")
        if state["with_module"] and module is None:
            raise RuntimeError("You are trying to revive the hook of a dead Module!")
        self.__init__(state["hook"], module)


def call_with_hooks(module, args, kwargs):
    """Call ``module`` once, with every hook that applies, in PyTorch's order."""
    called: set[int] = set()
    try:
        return _call(module, args, kwargs, called)
    except Exception:
        _run_always_called(module, args, kwargs, called)
        raise


def _call(module, args, kwargs, called):
    full, legacy = module._get_backward_hooks()
    pre = module._get_backward_pre_hooks()
    args, kwargs = _run_forward_pre(module, args, kwargs)
    tap = None
    if full or pre:
        tap = BackwardPass(module, full, pre)
        args = tap.tap_inputs(args)
    result = module.forward(*args, **kwargs)
    for key, hook, with_kwargs in _forward_hooks_of(module):
        if key in module._forward_hooks_always_called or key in _global_forward_hooks_always_called:
            called.add(key)
        changed = hook(module, args, kwargs, result) if with_kwargs else hook(module, args, result)
        if changed is not None:
            result = changed
    if tap is not None:
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of "
                f"Tensors but received {type(result)}",
                stacklevel=3,
            )
        result = tap.tap_outputs(result)
    if legacy:
        _attach_legacy(module, args, result, legacy)
    return result


def _run_forward_pre(module, args, kwargs):
    hooks = [
        *((hook, False) for hook in _global_forward_pre_hooks.values()),
        *(
            (hook, key in module._forward_pre_hooks_with_kwargs)
            for key, hook in module._forward_pre_hooks.items()
        ),
    ]
    for hook, with_kwargs in hooks:
        if with_kwargs:
            changed = hook(module, args, kwargs)
            if changed is None:
                continue
            if not (isinstance(changed, tuple) and len(changed) == 2):
                raise RuntimeError(
                    "forward pre-hook must return None or a tuple of (new_args, new_kwargs), "
                    f"but got {changed}."
                )
            args, kwargs = changed
        else:
            changed = hook(module, args)
            if changed is not None:
                args = _as_tuple(changed)
    return args, kwargs


def _forward_hooks_of(module):
    return [
        *((k, h, k in _global_forward_hooks_with_kwargs) for k, h in _global_forward_hooks.items()),
        *((k, h, k in module._forward_hooks_with_kwargs) for k, h in module._forward_hooks.items()),
    ]


def _run_always_called(module, args, kwargs, called):
    """After an error, run the always_call hooks that have not run yet, with None as the result."""
    always = {**_global_forward_hooks_always_called, **module._forward_hooks_always_called}
    for key, hook, with_kwargs in _forward_hooks_of(module):
        if key not in always or key in called:
            continue
        try:
            changed = hook(module, args, kwargs, None) if with_kwargs else hook(module, args, None)
        except Exception as error:
            # The caller gets the original error. An error in such a hook becomes a warning, as in PyTorch.
            warnings.warn(
                f"module forward hook with ``always_call=True`` raised an exception that was "
                f"silenced as another error was raised in forward: {error}",
                stacklevel=4,
            )
            continue
        del changed


def _attach_legacy(module, args, result, hooks):
    """Register the legacy hooks on the graph node of the output's first tensor."""
    var = result
    while not isinstance(var, Tensor):
        var = next(v for v in var.values() if isinstance(v, Tensor)) if isinstance(var, dict) else var[0]
    node = var.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(lambda grad_in, grad_out, hook=hook: hook(module, grad_in, grad_out))
    missed = _missed_by_legacy(args, result, node)
    if missed:
        warnings.warn(missed, FutureWarning, stacklevel=4)


def _missed_by_legacy(args, result, node) -> str:
    """Return PyTorch's warning if a legacy hook at ``node`` does not see all gradients of the call, else ""."""
    future = "is deprecated and will be removed in future versions. This hook will be missing"
    advice = "Please use register_full_backward_hook to get the documented behavior."
    for values, does, what in (
        (result, "return a", "grad_output"),
        (args, "take as input a", "grad_input"),
    ):
        if isinstance(values, Tensor) or (
            isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values)
        ):
            continue
        return (
            f"Using non-full backward hooks on a Module that does not {does} single Tensor or a tuple of Tensors "
            f"{future} some of the {what}. {advice}"
        )
    outputs = {t.grad_fn for t in _as_tuple(result) if t.grad_fn is not None}
    if len(outputs) == 1 and node not in outputs:
        return f"Using a non-full backward hook when outputs are nested in python data structure {future} some grad_output."
    if len(outputs) > 1:
        return (
            "Using a non-full backward hook when outputs are generated by different autograd Nodes "
            f"{future} some grad_output. {advice}"
        )
    inputs = {t.grad_fn for t in args if t.grad_fn is not None}
    if {following for following, _ in node.next_functions} != inputs:
        return (
            "Using a non-full backward hook when the forward contains multiple autograd Nodes "
            f"{future} some grad_input. {advice}"
        )
    return ""
