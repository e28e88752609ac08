"""Module, the base class of all layers and models."""

from __future__ import annotations

import functools
import sys
import types
import warnings
from collections import OrderedDict

from ... import __future__ as _conversion
from ... import ops
from ..._values.device import device as Device
from ..._values.dtype import dtype as DType
from ...autograd import no_grad
from ...tensor import Tensor
from ...utils import swap_tensors
from ..parameter import Parameter
from . import _hooks
from ._hooks import (  # noqa: F401  torch.nn.modules.module has these names too
    HookSupport,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    _has_any_global_hook,
    _WrappedHook,
    call_with_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._members import MemberSupport
from ._state import _EXTRA_STATE_KEY_SUFFIX, StateSupport, _IncompatibleKeys  # noqa: F401

__all__ = [
    "Module",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

_compile_announced = False


def _addindent(text, spaces):
    """Indent every line of ``text`` except the first."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(" " * spaces + line for line in rest)])


def _forward_unimplemented(self, *input):
    """Raises NotImplementedError. Subclasses override it with their computation."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def _can_share(tensor, changed):
    """Return whether ``tensor`` can take the data of ``changed``.

    A meta and a real tensor cannot share data.
    """
    if type(changed) is Tensor or isinstance(changed, Parameter):
        return tensor.is_meta == changed.is_meta
    return type(changed) is type(tensor)


class Module(MemberSupport, HookSupport, StateSupport):
    """Base class of all layers and models: a tree of parameters, buffers and submodules, with hooks.

    A subclass calls ``super().__init__()`` first, then assigns Parameters and Modules as attributes, and
    defines ``forward``.
    """

    dump_patches = False
    _version = 1
    training: bool
    call_super_init = False
    _compiled_call_impl = None
    forward = _forward_unimplemented

    def __init__(self, *args, **kwargs):
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument "
                    f"'{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but "
                    f"{len(args) + 1} were given"
                )
        # __setattr__ looks for registries that do not exist yet, so the attributes go into __dict__ directly.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ---- calling ------------------------------------------------------------------------------
    def _call_impl(self, *args, **kwargs):
        if (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _global_forward_hooks
            or _global_forward_pre_hooks
            or _global_backward_hooks
            or _global_backward_pre_hooks
        ):
            return call_with_hooks(self, args, kwargs)
        return self.forward(*args, **kwargs)

    __call__ = _call_impl
    _wrapped_call_impl = _call_impl

    def compile(self, *args, **kwargs):
        """Does nothing: the module still runs eagerly. The method exists so that PyTorch programs run."""
        global _compile_announced
        if not _compile_announced:
            _compile_announced = True
            warnings.warn("Module.compile: modules run eagerly, compilation is a pass-through", stacklevel=2)

    # ---- conversion ---------------------------------------------------------------------------
    def _apply(self, fn, recurse=True):
        """Replace every parameter, gradient and buffer x by ``fn(x)``.

        The Parameter objects stay the same.
        """
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                self._apply_to_parameter(name, param, fn)
        for name, buf in self._buffers.items():
            if buf is not None:
                self._buffers[name] = fn(buf)
        return self

    def _apply_to_parameter(self, name, param, fn):
        with no_grad():
            changed = fn(param)
        if _conversion.get_swap_module_params_on_conversion():
            self._swap_parameter(name, param, changed, fn)
            return
        share = not _conversion.get_overwrite_module_params_on_conversion()
        if share and _can_share(param, changed):
            param.data = changed
            kept = param
        else:
            kept = Parameter(changed, param.requires_grad)
            self._parameters[name] = kept
        grad = param.grad
        if grad is None:
            return
        with no_grad():
            changed = fn(grad)
        if kept is param and _can_share(grad, changed):
            grad.data = changed
        else:
            kept.grad = changed.requires_grad_(grad.requires_grad)

    def _swap_parameter(self, name, param, changed, fn):
        """Exchange the contents of a parameter and its gradient for what ``fn`` makes of them."""
        grad = param.grad
        try:
            if grad is not None:
                param.grad = None  # a gradient must not be shared while its tensor changes
            if not isinstance(changed, Parameter):
                changed = Parameter(changed, param.requires_grad)
            swap_tensors(param, changed)
        except Exception as error:
            param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {self._get_name()}.{name}") from error
        if grad is not None:
            with no_grad():
                param.grad = fn(grad).requires_grad_(grad.requires_grad)

    def apply(self, fn):
        """Call ``fn`` on every submodule, children first, and then on this module. Returns self."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args, **kwargs):
        """Move and cast the module in place: ``to(device, dtype, non_blocking)``, ``to(dtype)``,
        ``to(tensor)``.

        Only floating point and complex tensors are cast. Returns self.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if dtype is not None and dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature under active development whose design may change, and some modules might not "
                "work as expected when using complex tensors as parameters or buffers.",
                stacklevel=2,
            )

        def convert(t):
            castable = t.is_floating_point() or t.is_complex()
            target = dtype if castable else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(device, target, non_blocking, memory_format=memory_format)
            return t.to(device, target, non_blocking)

        return self._apply(convert)

    def to_empty(self, *, device, recurse=True):
        """Move the module to ``device`` without copying values. The new tensors are uninitialised."""
        return self._apply(lambda t: ops.empty_like(t, device=device), recurse=recurse)

    def cpu(self):
        """Move the module to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """Move the module to the accelerator."""
        return self._apply(lambda t: t.cuda(device))

    def npu(self, device=None):
        """Move the module to the accelerator."""
        return self._apply(lambda t: t.npu(device))

    def type(self, dst_type):
        """Cast every parameter and buffer to ``dst_type``."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Cast floating point tensors to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Cast floating point tensors to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Cast floating point tensors to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Cast floating point tensors to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def share_memory(self):
        """Move the storage of every parameter and buffer into shared memory."""
        return self._apply(lambda t: t.share_memory_())

    # ---- modes --------------------------------------------------------------------------------
    def train(self, mode=True):
        """Set this module and its submodules to training mode. Returns self."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Set this module and its submodules to evaluation mode. Returns self."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Set ``requires_grad`` of every parameter. Returns self."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Remove the gradients of all parameters, or set them to zero."""
        if getattr(self, "_is_replica", False):
            warnings.warn(
                "Calling .zero_grad() from a module created with nn.DataParallel() has no effect.",
                stacklevel=2,
            )
        for param in self.parameters():
            if param.grad is None:
                continue
            if set_to_none:
                param.grad = None
                continue
            if param.grad.grad_fn is not None:
                param.grad.detach_()
            else:
                param.grad.requires_grad_(False)
            param.grad.zero_()

    # ---- state for pickle, text ---------------------------------------------------------------
    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """Return the text that ``repr`` prints between the parentheses of this module."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): " + _addindent(repr(module), 2) for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({lines[0]})"
        body = lines + children
        if not body:
            return self._get_name() + "()"
        return self._get_name() + "(\n  " + "\n  ".join(body) + "\n)"

    def _replicate_for_data_parallel(self):
        replica = type(self).__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = replica._buffers.copy()
        replica._modules = replica._modules.copy()
        replica._is_replica = True
        return replica


def _no_form_of_to(*args) -> TypeError:
    told = ", ".join(type(a).__name__ for a in args)
    return TypeError(
        f"to() received an invalid combination of arguments - got ({told}), but expected one of: "
        "(torch.device, torch.dtype, bool, bool), (torch.dtype, bool, bool), (Tensor, bool, bool)"
    )


@functools.singledispatch
def _to_target(value):
    """Return the (device, dtype) that the first argument of ``to`` means."""
    raise _no_form_of_to(value)


_to_target.register(str, lambda value: (Device(value), None))
_to_target.register(int, lambda value: (Device(value), None))
_to_target.register(Device, lambda value: (value, None))
_to_target.register(DType, lambda value: (None, value))
_to_target.register(type(None), lambda value: (None, None))
_to_target.register(Tensor, lambda value: (value.device, value.dtype))


def _parse_to(
    *args,
    device=None,
    dtype=None,
    other=None,
    non_blocking=False,
    copy=False,
    tensor=None,
    memory_format=None,
):
    """Return (device, dtype, non_blocking, memory format) for any of the three forms of ``Module.to``."""
    if copy:
        raise RuntimeError(".to() does not accept copy argument")
    first = args[0] if args else (tensor if tensor is not None else other)
    rest = list(args[1:])
    if first is not None:
        target_device, target_dtype = _to_target(first)
        device = target_device if target_device is not None else device
        dtype = target_dtype if target_dtype is not None else dtype
    if (
        args
        and rest
        and not isinstance(args[0], (DType, Tensor))
        and not isinstance(rest[0], (DType, type(None)))
    ):
        raise _no_form_of_to(*args)
    if rest and (rest[0] is None or isinstance(rest[0], DType)):
        dtype = rest.pop(0) or dtype
    if rest:
        non_blocking = rest.pop(0)
    if device is not None and not isinstance(device, Device):
        device = Device(device)
    if dtype is not None and not isinstance(dtype, DType):
        raise TypeError(f"to(): argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
    return device, dtype, bool(non_blocking), memory_format


class _WithGlobalHooks(types.ModuleType):
    """The class of this module. The registries of global hooks that are set here are those of ``_hooks``.

    PyTorch keeps them in this module, and programs reset them by assigning new ones.
    """

    def __getattr__(self, name):
        if name == "_global_is_full_backward_hook":
            return _hooks._global_is_full_backward_hook
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __setattr__(self, name, value):
        if name.startswith("_global_"):
            setattr(_hooks, name, value)
        if name != "_global_is_full_backward_hook":
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _WithGlobalHooks
