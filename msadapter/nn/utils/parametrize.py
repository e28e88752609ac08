"""Parametrisations: modules that compute a parameter or buffer from other tensors.

A module with parametrisations gets a class of its own, with properties that compute the tensors. The original
tensors and the parametrisations are in ``module.parametrizations[name]``, a ParametrizationList.
"""

from __future__ import annotations

import copyreg
from contextlib import contextmanager, suppress
from copy import deepcopy

from ...autograd import no_grad
from ...tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_cache_enabled = 0
_cache: dict = {}


@contextmanager
def cached():
    """Compute each parametrised tensor only once inside this block."""
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register_parameter_or_buffer(module, name, value):
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _maybe_set(dest, src):
    dest.data = src.data


class ParametrizationList(ModuleList):
    """The parametrisations of one tensor, in the order of application, and its original tensors.

    Attributes: ``original``, or ``original0``, ``original1``, ... if ``right_inverse`` returns several
    tensors.
    """

    def __init__(self, modules, original, unsafe=False):
        modules = list(modules)
        if not modules:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with no_grad():
            new = self._to_originals(original)
        if not isinstance(new, Tensor) and not isinstance(new, (list, tuple)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._keep_single(original, new)
        else:
            self._keep_several(original, new)
        if not unsafe:
            self._check_round_trip(shape, dtype)

    def _to_originals(self, value):
        for module in reversed(list(self)):
            if hasattr(module, "right_inverse"):
                # A right_inverse that raises NotImplementedError counts as missing.
                with suppress(NotImplementedError):
                    value = module.right_inverse(value)
        return value

    def _keep_single(self, original, new):
        if original.dtype != new.dtype:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                f"original.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}"
            )
        if original.device != new.device:
            raise ValueError(
                "When `right_inverse` outputs one tensor, it may not change the device.\n"
                f"original.device: {original.device}\nright_inverse(original).device: {new.device}"
            )
        _maybe_set(original, new)
        _register_parameter_or_buffer(self, "original", original)

    def _keep_several(self, original, new):
        for i, value in enumerate(new):
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {i} of the sequence with type {type(value).__name__}."
                )
            if isinstance(original, Parameter):
                value = Parameter(value, original.requires_grad)
            value.requires_grad_(original.requires_grad)
            _register_parameter_or_buffer(self, f"original{i}", value)

    def _check_round_trip(self, shape, dtype):
        value = self()
        if not isinstance(value, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
        if value.dtype != dtype:
            raise ValueError(
                "Registering a parametrization may not change the dtype of the tensor, unless `unsafe` "
                f"flag is enabled.\nunparametrized dtype: {dtype}\nparametrized dtype: {value.dtype}"
            )
        if value.shape != shape:
            raise ValueError(
                "Registering a parametrization may not change the shape of the tensor, unless `unsafe` "
                f"flag is enabled.\nunparametrized shape: {shape}\nparametrized shape: {value.shape}"
            )

    def right_inverse(self, value):
        """Set the originals so that the parametrised tensor becomes ``value``.

        Every step needs a right_inverse.
        """
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(
                        f"parametrization {type(module).__name__} does not implement right_inverse."
                    )
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        "The tensor returned by `right_inverse` has dtype "
                        f"{value.dtype} while `original` has dtype {self.original.dtype}"
                    )
                _maybe_set(self.original, value)
                return
            if not isinstance(value, (list, tuple)):
                raise ValueError(
                    f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}."
                )
            if len(value) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(value)}."
                )
            for i, tensor in enumerate(value):
                _maybe_set(getattr(self, f"original{i}"), tensor)

    def forward(self):
        first, *rest = self
        value = (
            first(self.original)
            if self.is_tensor
            else first(*(getattr(self, f"original{i}") for i in range(self.ntensors)))
        )
        for module in rest:
            value = module(value)
        return value


def _inject_new_class(module):
    """Give ``module`` a class of its own, so that properties can be set on it."""
    cls = type(module)

    def default_deepcopy(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__dict__ = deepcopy(dict(self.__dict__), memo)
        for slot in copyreg._slotnames(type(self)):
            if hasattr(self, slot):
                setattr(replica, slot, deepcopy(getattr(self, slot), memo))
        return replica

    def getstate(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    members = {"__getstate__": getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = default_deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module, name):
    """Add a property that computes ``name`` when it is read, and sets the originals when it is assigned."""

    def get(self):
        if not _cache_enabled:
            return self.parametrizations[name]()
        key = (id(self), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def put(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Let ``parametrization`` compute ``module.tensor_name`` from the original tensor. Returns the module.

    A second parametrisation of the same name is applied after the first. ``unsafe`` allows it to change the
    dtype or shape.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        _append(module, tensor_name, parametrization, unsafe)
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        wrapped = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = wrapped
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def _append(module, tensor_name, parametrization, unsafe):
    """Add a parametrisation after the existing ones of ``tensor_name``."""
    chain = module.parametrizations[tensor_name]
    if unsafe:
        chain.append(parametrization)
        chain.unsafe = True
        return
    value = getattr(module, tensor_name)
    result = parametrization(value)
    if not isinstance(result, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
    given = f"module.{tensor_name}"
    _check_same(
        value,
        result,
        "Registering a parametrization may not change the {what} of the tensor",
        given,
        f"parametrization({given}).",
    )
    if hasattr(parametrization, "right_inverse"):
        implemented = True
        try:
            original = parametrization.right_inverse(result)
        except NotImplementedError:
            implemented = False
        if implemented:
            if not isinstance(original, Tensor):
                raise ValueError(
                    f"parametrization.right_inverse must return a tensor. Got: {type(original).__name__}"
                )
            rule = (
                f"The tensor returned by parametrization.right_inverse must have the same {{what}} as {given}"
            )
            _check_same(value, original, rule, given, "returned ")
    chain.append(parametrization)


def _check_same(value, other, rule: str, given: str, computed: str) -> None:
    """ValueError with PyTorch's words unless two tensors have the same dtype and shape."""
    for what in ("dtype", "shape"):
        if getattr(other, what) != getattr(value, what):
            raise ValueError(
                f"{rule.format(what=what)}, unless the `unsafe` flag is enabled.\n"
                f"{given}.{what}: {getattr(value, what)}\n{computed}{what}: {getattr(other, what)}"
            )


def is_parametrized(module, tensor_name=None):
    """Return whether ``module`` has parametrisations (of ``tensor_name``, if given)."""
    chains = getattr(module, "parametrizations", None)
    if not isinstance(chains, ModuleDict):
        return False
    return tensor_name in chains if tensor_name is not None else len(chains) > 0


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Remove all parametrisations of ``tensor_name``. Returns the module.

    The tensor keeps its present value, or gets its original value with ``leave_parametrized=False``.
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    chain = module.parametrizations[tensor_name]
    original = chain.original if chain.is_tensor else None
    if leave_parametrized:
        with no_grad():
            value = getattr(module, tensor_name)
        if original is None:
            trained = any(p.requires_grad for p in chain.parameters(recurse=False))
            original = Parameter(value) if trained or list(chain.parameters(recurse=False)) else value
        else:
            _maybe_set(original, value)
    elif original is None:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
            "terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """Return the class that ``module`` had before it was parametrised."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Copy the parametrisations (of ``tensor_name``) of ``from_module`` to ``to_module``; return the latter."""
    if not is_parametrized(from_module):
        return to_module
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        if not is_parametrized(from_module, name):
            continue
        chain = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in chain:
            register_parametrization(to_module, name, parametrization)
        for original, value in chain.named_parameters(recurse=False):
            setattr(to_module.parametrizations[name], original, value)
    return to_module
