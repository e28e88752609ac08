"""Modules as functions of their parameters."""

from __future__ import annotations

from .. import ops
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.utils.stateless import _functional_call

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(
    module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False
):
    """Call ``module(*args, **kwargs)`` with the given tensors in place of its parameters and buffers.

    Args:
        parameter_and_buffer_dicts: a dict from names to tensors, or several whose names do not overlap.
        args: the arguments; a single value that is not a tuple is the only argument.
        tie_weights: names that share a tensor in the module share the given one.
        strict: the names must be exactly those of the module.
    """
    if isinstance(parameter_and_buffer_dicts, dict):
        given = parameter_and_buffer_dicts
    elif isinstance(parameter_and_buffer_dicts, (tuple, list)):
        dicts = parameter_and_buffer_dicts
        if not all(isinstance(d, dict) for d in dicts):
            raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
        names = [name for d in dicts for name in d]
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise ValueError(
                f"{sorted(repeated)} appeared in multiple dictionaries; behavior of functional call is ambiguous"
            )
        given = {name: value for d in dicts for name, value in d.items()}
    else:
        raise ValueError(
            "Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got "
            f"{type(parameter_and_buffer_dicts)}"
        )
    return _functional_call(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models):
    """Return (parameters, buffers) of several modules of one kind.

    Both are dicts, and their tensors have a new first dimension of size len(models).
    """
    models = of_one_kind(models, "stack_module_state")
    return _stacked([dict(m.named_parameters()) for m in models]), _stacked(
        [dict(m.named_buffers()) for m in models]
    )


def of_one_kind(models, name: str) -> list:
    """Return the models of an ensemble as a list.

    Raises:
        RuntimeError: there is none, or they are in different modes or of different classes. The message begins with ``name``.
    """
    models = list(models)
    if not models:
        raise RuntimeError(f"{name}: Expected at least one model, got 0.")
    if len({m.training for m in models}) > 1:
        raise RuntimeError(f"{name}: Expected all models to have the same training/eval mode.")
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError(f"{name}: Expected all models to be of the same class.")
    return models


def _stacked(states: list[dict]) -> dict:
    return {name: _stack([s[name] for s in states]) for name in states[0]}


def _stack(tensors):
    needs = {t.requires_grad for t in tensors}
    if len(needs) > 1:
        raise RuntimeError("Expected all parameters with a name to have the same requires_grad")
    if all(t.is_leaf for t in tensors):
        return ops.stack([t.detach() for t in tensors]).requires_grad_(needs.pop())
    return ops.stack(tensors)


def replace_all_batch_norm_modules_(root):
    """Remove the running statistics of every batch normalization, so that a call changes nothing in place."""
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
