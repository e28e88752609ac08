"""torch.autograd.Function: operations with a gradient that the user defines."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from .. import ops
from .._errors import unsupported
from .._host import extensions
from .._host.native import load
from .._values.base import as_leaf as _as_leaf
from .._values.layout import LAYOUTS
from ..tensor import Tensor
from ._jvp import apply_jvp, tangents_of
from ._tangents import disabled

_C = load()


class FunctionCtx:
    """The context object ``ctx`` that forward and backward of a Function share."""

    _node = None
    _outputs = None  # weak references to the outputs, once the graph node exists
    # Of the saved tensors that are leaves: position and weak reference. Of the sparse ones, whose values the node saves: position
    # and detached tensor.
    _leaves: Sequence[tuple[int, weakref.ref]] = ()
    _sparse: Mapping[int, Tensor] = MappingProxyType({})
    _to_save = ()
    _dirty = ()
    _non_differentiable = ()
    _in_jvp = False  # whether jvp runs now, which gets what save_for_forward was given
    saved_for_forward = ()
    _materialize = True
    _materialize_non_diff_grads = True  # also for outputs that are not differentiable
    needs_input_grad = ()

    def save_for_backward(self, *tensors):
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type {type(t).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors):
        self.saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors):
        self._non_differentiable = tensors

    def mark_shared_storage(self, *pairs):
        raise ValueError(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked."
        )

    def set_materialize_grads(self, value: bool):
        self._materialize = value

    @property
    def saved_tensors(self):
        if self._in_jvp:
            return self.saved_for_forward
        if self._node is not None:
            return self._saved_by(self._node)
        if self._outputs is None:
            return tuple(self._to_save)
        # Outside of the backward, for example in a hook that recomputes, the node is found through a living
        # output.
        for reference in self._outputs:
            output = reference()
            node = None if output is None else output.grad_fn
            if node is not None and _C.node_context(node) is self:
                return self._saved_by(node)
        raise RuntimeError(
            f"{type(self).__name__}: saved_tensors outside of backward needs an output that lives"
        )

    @property
    def saved_variables(self):
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors

    def _saved_by(self, node):
        """Return the tensors that the node saved.

        Saved leaves are returned as the same Python objects, because programs set attributes on them.
        """
        found = list(_C.function_saved(node))
        for i, sparse in self._sparse.items():
            found[i] = sparse._with(found[i])
        for i, reference in self._leaves:
            own, saved = reference(), found[i]
            if (
                own is not None
                and saved.data_ptr() == own.data_ptr()
                and saved.shape == own.shape
                and saved.dtype is own.dtype
            ):
                found[i] = own
        return tuple(found)


BackwardCFunction = FunctionCtx


class _SingleLevelFunction:
    pass


class _NodeClass:
    """The class of the graph nodes of a Function, as an attribute of the Function's class."""

    def __get__(self, instance, owner):
        return _C.node_class(owner.__name__ + "Backward")


class Function(FunctionCtx):
    """Base class of operations that a user defines.

    Subclasses define the static methods ``forward`` and ``backward`` (or ``vjp``) and are called through
    ``apply``.
    """

    generate_vmap_rule = False
    _backward_cls = _NodeClass()

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        apply_batched = extensions.batched_function.value
        if apply_batched is not None:
            batched = apply_batched(cls, args, kwargs)
            if batched is not NotImplemented:
                return batched
        separate = cls.setup_context is not Function.setup_context
        if separate:  # setup_context gets the default values of forward too
            bound = _signature_of(cls).bind(*args, **kwargs)  # type: ignore[arg-type]  # instances define __hash__, the class is hashable
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        elif kwargs:
            args, kwargs = _ordered(cls, args, kwargs), {}
        tensors = [a for a in args if isinstance(a, Tensor)]
        refused = extensions.refused_by_function.value
        if refused is not None and any(isinstance(a, refused) for a in tensors):
            raise unsupported(
                "torch.autograd.Function",
                f"{cls.__name__} on a DTensor is not supported, call it on to_local()",
            )
        recording = _C.is_grad_enabled() and any(t.requires_grad for t in tensors)
        ctx = _context_class(cls)()  # type: ignore[arg-type]  # instances define __hash__, the class is hashable
        ctx.needs_input_grad = tuple(isinstance(a, Tensor) and a.requires_grad for a in args)
        edges = _C.function_edges(args) if recording else None
        tangents = tangents_of(args)
        mode = _C.is_grad_enabled()
        _C.set_grad_enabled(False)
        try:
            with disabled():
                if separate:
                    output = cls.forward(*args, **kwargs)
                    cls.setup_context(ctx, args, output)
                else:
                    output = cls.forward(ctx, *args)
        finally:
            _C.set_grad_enabled(mode)
        results = _finish(cls, ctx, args, tensors, output, edges)
        applied = extensions.applied_function.value
        if applied is not None:
            applied(results)
        listed = results if isinstance(results, tuple) else (results,)
        for level, given in tangents:
            apply_jvp(cls, ctx, level, args, given, listed)
        return results


@functools.cache
def _signature_of(cls) -> inspect.Signature:
    return inspect.signature(cls.forward)


def _ordered(cls, args: tuple, kwargs: dict) -> tuple:
    """Return the inputs of ``forward(ctx, ...)`` in order, those that were given by name too. Defaults are not filled in.

    TypeError for a name that forward does not have, for an input that was given twice, and for one that is missing before another.
    """
    parameters = list(_signature_of(cls).parameters.values())[1:]
    names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    for name in kwargs:
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if name in names[: len(args)]:
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    wanted = names[len(args) : max(map(names.index, kwargs)) + 1]
    for name in wanted:
        if name not in kwargs:
            raise TypeError(f"forward() missing required argument: '{name}' (position {names.index(name)})")
    return (*args, *(kwargs[name] for name in wanted))


@functools.cache
def _context_class(cls):
    """Return the class of context objects. It derives from the Function, but instances can be created."""
    return type(
        cls.__name__ + "Backward",
        (cls,),
        {"__init__": lambda self: None, "_forward_cls": cls, "__module__": cls.__module__},
    )


def _unrecorded(out, is_input: bool, is_dirty: bool):
    """Return an output of ``apply`` when no graph is recorded.

    The output must not require grad, and must not be the same object as an input.
    """
    if not isinstance(out, Tensor):
        return out
    if out.requires_grad:
        if is_input:
            return _C.detach(out)
        return out if out._is_view() else out.detach_()
    if is_input and not is_dirty:
        if type(out).__torch_function__.__func__ is not Tensor.__torch_function__.__func__:
            return out.view_as(out)  # a subclass makes the other object itself
        alias = _C.detach(out)
        _C.mark_view(alias, out, 3)
        return alias
    if out._is_view() and not is_dirty:
        _C.mark_view(out, out._base, 3)  # a view that forward has made
    return out


def is_sparse(tensor: Tensor) -> bool:
    """Return whether a tensor has one of the sparse layouts."""
    return tensor.layout is not LAYOUTS["strided"]


def _finish(cls, ctx, args, tensors, output, edges):
    single = not isinstance(output, tuple)
    outputs = [output] if single else list(output)
    dirty = {id(t) for t in ctx._dirty}
    inputs = {id(t) for t in tensors}
    if dirty - inputs:
        warnings.warn(
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
            "passed to ctx.mark_dirty().",
            stacklevel=3,
        )
    for t in ctx._dirty:
        _C.bump_version(t)
    if not dirty <= {id(o) for o in outputs}:
        raise RuntimeError(
            "Some elements marked as dirty during the forward method were not returned as output. The inputs that are modified "
            "inplace must all be outputs of the Function."
        )
    if edges is None:
        ctx._to_save = ()  # there will be no backward that reads them
        outputs = [_unrecorded(o, id(o) in inputs, id(o) in dirty) for o in outputs]
        return outputs[0] if single else tuple(outputs)
    non_differentiable = {id(t) for t in ctx._non_differentiable}
    differentiable = [isinstance(o, Tensor) and id(o) not in non_differentiable for o in outputs]
    if sum(isinstance(o, Tensor) for o in outputs) > 1 and any(t._is_view() for t in ctx._dirty):
        raise RuntimeError(
            "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return more "
            "than one Tensor. This is not supported by the current autograd engine. You should either make sure the input is "
            "not a view (using .clone() for example) or make your Function only return one Tensor (potentially splitting it "
            "into two Functions: one doing the inplace that returns a single Tensor and a second one that does the other "
            "operations). You can ask on the forum https://discuss.pytorch.org/ if you need help to do this change."
        )
    for i, o in enumerate(outputs):
        if not isinstance(o, Tensor):
            continue
        if id(o) in dirty:
            if o.is_leaf and o.requires_grad:
                raise RuntimeError(
                    "a leaf Variable that requires grad has been used in an in-place operation."
                )
            _C.inplace_check(o)
        elif id(o) not in inputs and o._is_view() and o.is_leaf:
            # a view made in forward stays a view, and this Function becomes its history
            _C.mark_view(o, o._base, 3)
        elif id(o) in inputs:
            # a returned input must become another tensor, with a history of its own
            outputs[i] = _C.detach(o)
            _C.mark_view(outputs[i], o, 3)
    tracked = [o if kept else None for o, kept in zip(outputs, differentiable, strict=True)]
    meta = [(o.shape, o.dtype, o.device) if isinstance(o, Tensor) else None for o in outputs]
    if not ctx._materialize_non_diff_grads:
        meta = [m if t is not None else None for m, t in zip(meta, tracked, strict=True)]
    ctx._output_meta = meta
    to_save = list(ctx._to_save)
    ctx._to_save = ()
    ctx._sparse = {i: t.detach() for i, t in enumerate(to_save) if isinstance(t, Tensor) and is_sparse(t)}
    for i in ctx._sparse:
        to_save[i] = to_save[i]._v
    _C.make_function_node(
        cls.__name__ + "Backward",
        ctx,
        functools.partial(_run_backward, cls, [isinstance(a, Tensor) for a in args]),
        args,
        tracked,
        to_save,
        list(ctx._dirty),
        edges,
    )
    ctx._outputs = [weakref.ref(t) for t in tracked if t is not None]
    ctx._leaves = [
        (i, weakref.ref(t))
        for i, t in enumerate(to_save)
        if t is not None and t.is_leaf and i not in ctx._sparse
    ]
    return outputs[0] if single else tuple(outputs)


def _run_backward(cls, are_tensors, ctx, node, grads):
    ctx._node, count = node, len(are_tensors)
    try:
        if ctx._materialize:
            grads = tuple(
                ops.zeros(m[0], dtype=m[1], device=m[2]) if g is None and m is not None else g
                for g, m in zip(grads, ctx._output_meta, strict=True)
            )
        if cls.backward is not Function.backward and cls.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement "
                "one of them."
            )
        backward = cls.backward if cls.backward is not Function.backward else cls.vjp
        result = backward(ctx, *grads)
    finally:
        ctx._node = None
    if not isinstance(result, tuple):
        result = (result,)
    if all(r is None for r in result[count:]):
        result = result[:count]
    if len(result) != count:
        raise RuntimeError(
            f"function {cls.__name__}Backward returned an incorrect number of gradients (expected {count}, got {len(result)})"
        )
    for i, r in enumerate(result):
        if r is not None and not are_tensors[i]:
            raise RuntimeError(
                f"function {cls.__name__}Backward returned a gradient different than None at position {i + 1}, but the "
                "corresponding forward input was not a Variable"
            )
        if r is not None and not isinstance(r, Tensor):
            raise RuntimeError(f"expected Variable or None (got {type(r).__name__})")
    return result


class InplaceFunction(Function):
    pass


class NestedIOFunction(Function):
    pass


def once_differentiable(function):
    """Decorate a backward that cannot be differentiated. A second derivative then raises RuntimeError."""

    @functools.wraps(function)
    def wrapper(ctx, *args):
        recording = _C.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in args)
        mode = _C.is_grad_enabled()
        _C.set_grad_enabled(False)
        try:
            outputs = function(ctx, *args)
        finally:
            _C.set_grad_enabled(mode)
        if not recording:
            return outputs
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        refuse = DelayedError(
            "trying to differentiate twice a function that was marked with @once_differentiable", len(listed)
        )
        return refuse(*[_as_leaf(o.detach()) if isinstance(o, Tensor) else o for o in listed])

    return wrapper


class DelayedError:
    """DelayedError(message, count)(*tensors) returns the tensors. Their backward raises RuntimeError(message)."""

    def __init__(self, message: str, count: int):
        self.message = message  # the count of tensors is that of the call

    def __call__(self, *tensors):
        made = tuple(_C.detach(x) if isinstance(x, Tensor) else x for x in tensors)
        if _C.is_grad_enabled() and any(isinstance(x, Tensor) and x.requires_grad for x in tensors):
            tracked = [x if isinstance(x, Tensor) else None for x in made]
            edges = _C.function_edges(tensors)
            _C.make_function_node("Error", self, self._refuse, tensors, tracked, (), (), edges)
        return made[0] if len(made) == 1 else made

    @staticmethod
    def _refuse(error, node, grads):
        raise RuntimeError(error.message)
