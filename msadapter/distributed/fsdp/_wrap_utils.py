"""Applies a wrapping policy to a module, with checks before."""

from __future__ import annotations

import warnings

from .wrap import (
    _construct_wrap_fn,
    _Policy,
    _post_order_apply,
    _recursive_wrap,
    _run_mixed_precision_override_policy,
)


def _auto_wrap(root_module, policy, ignored_modules, ignored_params, root_kwargs: dict, fsdp_fn) -> None:
    """Wraps, in place, the submodules that a policy selects."""
    root_kwargs = {k: v for k, v in root_kwargs.items() if k != "auto_wrap_policy"}
    if not isinstance(policy, _Policy):
        _recursive_wrap(
            root_module,
            policy,
            fsdp_fn,
            ignored_modules,
            ignored_params,
            only_wrap_children=True,
            **root_kwargs,
        )
        return
    chosen = policy._run_policy(root_module, ignored_modules, root_kwargs)
    mixed = root_kwargs.get("mixed_precision")
    if mixed is not None:
        classes = getattr(mixed, "_module_classes_to_ignore", ())
        chosen = _run_mixed_precision_override_policy(
            root_module, classes, ignored_modules, root_kwargs, chosen
        )
        _warn_on_overridden_mixed_precision(_override_module_mixed_precision(root_module, classes))
    _validate_frozen_params(
        root_module, set(chosen), ignored_params, root_kwargs.get("use_orig_params", False)
    )
    _post_order_apply(root_module, _construct_wrap_fn(root_module, chosen, fsdp_fn))


def _override_module_mixed_precision(root, module_classes_to_override, wrap_override_dict=None) -> set:
    """Marks modules of the given classes to be wrapped without mixed precision. Returns their classes."""
    override = {"mixed_precision": None} if wrap_override_dict is None else wrap_override_dict
    classes, found = tuple(set(module_classes_to_override)), set()
    for module in root.modules():
        if isinstance(module, classes):
            module._wrap_overrides = override
            found.add(type(module))
    return found


def _warn_on_overridden_mixed_precision(overridden_module_classes) -> None:
    """Warns which classes are wrapped without mixed precision."""
    if overridden_module_classes:
        warnings.warn(
            "Both mixed precision and an auto_wrap_policy were specified to FSDP, where the wrapped module has submodules of "
            "type:\n"
            f"{overridden_module_classes}\nThese modules will be wrapped as separate FSDP instances with mixed precision disabled.",
            stacklevel=2,
        )


def _validate_frozen_params(root_module, modules_to_wrap, ignored_params, use_orig_params: bool) -> None:
    """Checks for frozen parameters, because a flat parameter cannot be frozen in part.

    Raises ValueError, or warns with use_orig_params.
    """
    done: set = set()
    for name, module in reversed(list(root_module.named_modules())):
        if module not in modules_to_wrap:
            continue
        own = [(n, p) for n, p in module.named_parameters() if p not in ignored_params and p not in done]
        done.update(p for _, p in own)
        frozen = [n for n, p in own if not p.requires_grad]
        if not frozen or len(frozen) == len(own):
            continue
        text = f"{name} has both parameters with requires_grad=True and False."
        if not use_orig_params:
            raise ValueError(
                f"{text} FSDP does not support wrapping such modules when use_orig_params=False. Frozen: {frozen}"
            )
        warnings.warn(
            f"{text} We do not recommend wrapping such modules since the gradient memory usage will be higher than "
            f"expected. Frozen: {frozen}",
            stacklevel=2,
        )
