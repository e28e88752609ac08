"""Hooks on tensors and on graph nodes."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Mapping

from .._host import extensions
from .._host.native import load

_C = load()


class RemovableHandle:
    """Removes one hook from its dictionary, by `remove()` or at the end of a `with` block.

    hooks_dict: the dictionary that contains the hook under `handle.id`. extra_dict: further dictionaries to remove it from.
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1
        extra = [extra_dict] if isinstance(extra_dict, dict) else (extra_dict or [])
        self.extra_dict_ref = tuple(weakref.ref(d) for d in extra)

    def remove(self) -> None:
        """Remove the hook. A second call does nothing."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None and self.id in hooks:
                del hooks[self.id]

    def __getstate__(self):
        return (self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref))

    def __setstate__(self, state):
        hooks, self.id = state[0], state[1]
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
        extra = state[2] if len(state) > 2 else ()
        self.extra_dict_ref = tuple(weakref.ref(OrderedDict() if d is None else d) for d in extra)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.remove()


RemovableHandle.__module__ = "torch.utils.hooks"


def _add(hooks: dict, function) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = function
    return handle


def register_tensor_hook(tensor, hook) -> RemovableHandle:
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node, index = _C.gradient_edge(tensor)
    return _add(node._hooks("tensor_pre", index), hook)


class _BackwardHooks:
    """The attribute ``_backward_hooks``: the hooks of a tensor by the ids of their handles, or None if it has none."""

    def __get__(self, tensor, owner=None):
        if tensor is None:
            return self
        if not tensor.requires_grad or "_backward_hooks" in tensor.__dict__:
            return tensor.__dict__.get("_backward_hooks")
        node, index = _C.gradient_edge(tensor)
        return node._hooks("tensor_pre", index) or None

    def __set__(self, tensor, hooks):
        if tensor.requires_grad and isinstance(hooks, Mapping):
            for hook in hooks.values():
                register_tensor_hook(tensor, hook)
        else:  # kept, as PyTorch does, but there is no gradient that it could be called with
            tensor.__dict__["_backward_hooks"] = hooks

    def __delete__(self, tensor):
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")


def register_post_accumulate(tensor, hook) -> RemovableHandle:
    if not tensor.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not tensor.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return _add(_C.grad_accumulator(tensor)._hooks("post_accumulate"), hook)


def retain_grad(tensor) -> None:
    refuse = extensions.refuse_in_transform.value
    if refuse is not None:
        refuse("retain_grad")
    if not tensor.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if tensor.is_leaf or tensor.retains_grad:
        return
    reference = weakref.ref(tensor)

    def keep(grad):
        owner = reference()
        if owner is not None:
            have = owner.__dict__.get("_retained_grad")
            owner.__dict__["_retained_grad"] = grad.clone() if have is None else have + grad

    node, index = _C.gradient_edge(tensor)
    node._retain(index, keep)
    tensor.__dict__["_retains"] = True


def _node_register_hook(node, hook) -> RemovableHandle:
    """Call hook(grad_inputs, grad_outputs) after the node has run. It returns None or new grad_inputs."""
    return _add(node._hooks("post"), hook)


def _node_register_prehook(node, hook) -> RemovableHandle:
    """Call hook(grad_outputs) before the node runs. It returns None or new grad_outputs."""
    return _add(node._hooks("pre"), hook)


def _node_getattr(node, name):
    """Return a value that the node keeps for its backward, or an attribute of an autograd.Function's context."""
    for prefix in ("_saved_", "_raw_saved_"):
        if name.startswith(prefix):
            value = _C.node_saved(node, name[len(prefix) :], prefix == "_raw_saved_")
            if value is not NotImplemented:
                return value
    context = None if name.startswith("__") else _C.node_context(node)
    if context is not None:
        if name in ("saved_tensors", "saved_variables"):
            return _C.function_saved(node)
        return getattr(context, name)
    raise AttributeError(f"'{type(node).__name__}' object has no attribute '{name}'")


def install(tensor_class) -> None:
    """Add the hook methods to nodes and to the Tensor class."""
    tensor_class.register_hook = register_tensor_hook
    tensor_class._backward_hooks = _BackwardHooks()
    tensor_class.register_post_accumulate_grad_hook = register_post_accumulate
    tensor_class.retain_grad = retain_grad
    _C.Node.register_hook = _node_register_hook
    _C.Node.register_prehook = _node_register_prehook
    _C.Node.__getattr__ = _node_getattr
    _C.Node._register_hook_dict = lambda self, tensor: None
    _C.Node.__repr__ = lambda self: f"<{type(self).__name__} object at {hex(id(self))}>"
