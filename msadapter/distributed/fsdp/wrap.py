"""Policies that select the submodules to wrap, and the functions that apply them."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod

from ...nn import Module, ModuleDict, ModuleList, MultiheadAttention

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]


# ---- policies as objects
class _Policy(ABC):
    """Decides for every module of a tree whether it is wrapped, and with which arguments."""

    @abstractmethod
    def _run_policy(self, root_module: Module, ignored_modules: set, root_kwargs: dict) -> dict:
        """The modules to wrap, as {module: arguments}."""


class ModuleWrapPolicy(_Policy):
    """Modules of given classes."""

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        classes = tuple(self._module_classes)
        return {
            m: dict(root_kwargs)
            for m in root_module.modules()
            if m not in ignored_modules and isinstance(m, classes)
        }

    def __call__(self, module, recurse, *args, **kwargs):
        return _module_wrap_policy(module, recurse, nonwrapped_numel=-1, module_classes=self._module_classes)

    def __repr__(self):
        return f"{super().__repr__()}({self._module_classes})"


class CustomPolicy(_Policy):
    """Wraps by a function that returns False, True, or arguments that replace those of the root."""

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module, ignored_modules, root_kwargs):
        found = {}
        for module in root_module.modules():
            if module in ignored_modules:
                continue
            answer = self._lambda_fn(module)
            if not isinstance(answer, (dict, bool)):
                raise ValueError(
                    f"The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned {answer}"
                )
            if answer is not False:
                found[module] = dict(root_kwargs) | (answer if isinstance(answer, dict) else {})
        return found


# ---- policies as functions: (module, recurse, nonwrapped_numel) -> whether to look inside, or to wrap
def always_wrap_policy(*args, **kwargs) -> bool:
    """Every module."""
    return True


def _module_wrap_policy(module, recurse: bool, nonwrapped_numel: int, module_classes) -> bool:
    """Modules of given classes."""
    return True if recurse else isinstance(module, tuple(module_classes))


def transformer_auto_wrap_policy(module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls) -> bool:
    """The layers of a transformer, by their classes."""
    return _module_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls)


def _wrap_module_cls_individually(module, module_classes, recurse: bool, *args, **kwargs) -> bool:
    """Modules of given classes."""
    return True if recurse else isinstance(module, tuple(module_classes))


def lambda_auto_wrap_policy(module, recurse: bool, nonwrapped_numel: int, lambda_fn) -> bool:
    """Wraps the modules for which a function returns true."""
    return True if recurse else lambda_fn(module)


def _or_policy(module, recurse: bool, nonwrapped_numel: int, policies) -> bool:
    """Wraps the modules that any of the policies selects."""
    return any(
        policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies
    )


def size_based_auto_wrap_policy(
    module,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules=None,
    exclude_wrap_modules=None,
) -> bool:
    """Wraps modules that have at least min_num_params parameters outside of wrapped submodules."""
    leaves = (
        size_based_auto_wrap_policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    )
    never = (
        size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES
        if exclude_wrap_modules is None
        else exclude_wrap_modules
    )
    large = nonwrapped_numel >= min_num_params
    return large and not isinstance(module, tuple(leaves) if recurse else tuple(never))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}


# ---- wrapping by name
class _ConfigAutoWrap:
    """The block of `enable_wrap`."""

    in_autowrap_context = False
    wrapper_cls = None
    kwargs: dict = {}

    def __init__(self, **kwargs):
        self._given = kwargs

    def __enter__(self):
        if _ConfigAutoWrap.in_autowrap_context:
            raise NotImplementedError(
                "You are already within an autowrap context and we currently do not supported nested autowrap."
            )
        if "wrapper_cls" not in self._given:
            raise AssertionError("Expected to pass in wrapper_cls arg into _ConfigAutoWrap.")
        given = dict(self._given)
        _ConfigAutoWrap.in_autowrap_context = True
        _ConfigAutoWrap.wrapper_cls, _ConfigAutoWrap.kwargs = given.pop("wrapper_cls"), given

    def __exit__(self, *error):
        _ConfigAutoWrap.in_autowrap_context, _ConfigAutoWrap.wrapper_cls, _ConfigAutoWrap.kwargs = (
            False,
            None,
            {},
        )


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """A block in which `wrap` wraps modules with a class and its arguments."""
    with _ConfigAutoWrap(wrapper_cls=wrapper_cls, **wrapper_kwargs):
        yield


def wrap(module: Module, **wrap_overrides) -> Module:
    """The module, wrapped inside a block of `enable_wrap`."""
    if not _ConfigAutoWrap.in_autowrap_context:
        return module
    return _wrap(module, _ConfigAutoWrap.wrapper_cls, **(_ConfigAutoWrap.kwargs | wrap_overrides))


def _wrap(module, wrapper_cls, **kwargs):
    return wrapper_cls(module, **(kwargs | getattr(module, "_wrap_overrides", {})))


# ---- the walks
def _post_order_apply(root_module: Module, fn) -> None:
    """Replaces each module of a tree by fn(module) unless that is None, children first."""
    seen = {root_module}

    def visit(module, name, parent):
        for child_name, child in module.named_children():
            if child not in seen:
                seen.add(child)
                visit(child, child_name, module)
        made = fn(module)
        if made is None:
            return
        if not isinstance(made, Module):
            raise AssertionError(f"Non-root modules should only be replaced with modules, got {made}")
        if parent is None:
            raise AssertionError(
                f"Non-root modules should have their parent module set but got None for {module}"
            )
        setattr(parent, name, made)

    visit(root_module, "", None)


def _construct_wrap_fn(root_module: Module, target_module_to_kwargs: dict, fsdp_fn):
    """The function for `_post_order_apply` that wraps the selected modules except the root."""

    def wrapped(module):
        if module in target_module_to_kwargs and module is not root_module:
            return fsdp_fn(module, **target_module_to_kwargs[module])
        return None

    return wrapped


def _run_mixed_precision_override_policy(
    root_module, module_classes, ignored_modules, root_kwargs, target_module_to_kwargs
) -> dict:
    """Adds the modules of given classes, without mixed precision."""
    classes = tuple(module_classes)
    for module in root_module.modules():
        if module not in ignored_modules and isinstance(module, classes):
            kwargs = target_module_to_kwargs.setdefault(module, dict(root_kwargs))
            kwargs["mixed_precision"] = None
    return target_module_to_kwargs


def _recursive_wrap(
    module,
    auto_wrap_policy,
    wrapper_cls,
    ignored_modules,
    ignored_params,
    only_wrap_children: bool = False,
    **kwargs,
):
    """Wraps by a policy function, children first. Returns (module or its wrapper, number of wrapped parameters)."""
    if auto_wrap_policy is None:
        raise AssertionError("Must specify auto_wrap_policy.")
    if wrapper_cls is None:
        raise AssertionError("Must specify wrapper_cls")
    for _, child in module.named_modules():
        if child not in ignored_modules and isinstance(wrapper_cls, type) and isinstance(child, wrapper_cls):
            raise AssertionError(f"{child} is already wrapped")
    numel = sum(p.numel() for p in module.parameters() if p not in ignored_params)
    if not auto_wrap_policy(module=module, recurse=True, nonwrapped_numel=numel):
        return module, 0
    total = 0
    for name, child in module.named_children():
        if child not in ignored_modules:
            made, count = _recursive_wrap(
                child, auto_wrap_policy, wrapper_cls, ignored_modules, ignored_params, **kwargs
            )
            setattr(module, name, made)
            total += count
    rest = numel - total
    if not only_wrap_children and auto_wrap_policy(module=module, recurse=False, nonwrapped_numel=rest):
        return _wrap(module, wrapper_cls, **kwargs), numel
    return module, total
