"""Gradients of a module's parameters for each sample of a batch."""

import functools

from ...func import functional_call
from ...tensor import Tensor
from ...utils import _pytree
from ..modules.module import Module
from ._expanded_weights import ExpandedWeight

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(module, *, batch_size=None, loss_reduction="sum", batch_first=True):
    """Return a function that calls ``module``, and whose backward pass fills ``grad_sample`` of the trainable parameters.

    Args:
        module: a module whose parameters are used by the operators that take an ExpandedWeight.
        batch_size: the number of samples. None takes it from the tensors among the arguments, which must agree.
        loss_reduction: "mean" if the loss is the mean over the batch. Its gradients are then scaled, so that they are those of
            the samples' own losses, as with "sum".
        batch_first: whether the first dimension is the batch; otherwise it is the second one.
    """
    _check(module, batch_size, loss_reduction)

    @functools.wraps(module.forward)
    def wrapper(*args, **kwargs):
        size = _batch_size(args, kwargs, batch_first) if batch_size is None else batch_size
        weights = {
            name: ExpandedWeight(value, size, loss_reduction) if value.requires_grad else value
            for name, value in module.named_parameters()
        }
        return functional_call(module, weights, args, kwargs)

    return wrapper


def _check(module, batch_size, loss_reduction):
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}")
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(f"Batch size passed must be None or an integer, got {type(batch_size).__name__}")
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    for weight in module.parameters():
        if getattr(weight, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for multiple "
                f"calls without clearing gradients. Please clear out the grad_sample parameter of {weight} or "
                "post an issue to pytorch/pytorch to prioritize correct behavior"
            )


def _batch_size(args, kwargs, batch_first):
    """Return the number of samples that all tensors among the arguments have."""
    found = None
    for value in _pytree.arg_tree_leaves(*args, **kwargs):
        if not isinstance(value, Tensor):
            continue
        size = value.shape[0 if batch_first else 1]
        if found is not None and found != size:
            raise RuntimeError(
                "When computing batch size, found at least one input with batch size "
                f"{found} and one with batch size {size}. Please specify it "
                "explicitly using the batch size kwarg in call_for_per_sample_grads"
            )
        found = size
    if found is None:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be pytree-able "
            "and so ExpandedWeights cannot compute the batch size from the inputs. Please specify "
            "it explicitly"
        )
    return found
