"""What all calls with an ExpandedWeight need: the checks of their arguments, and where gradients are put."""

from .... import ops
from ....tensor import Tensor
from .expanded_weights_impl import ExpandedWeight

__all__ = [
    "forward_helper",
    "is_batch_first",
    "maybe_scale_by_batch_size",
    "set_grad_sample_if_exists",
    "standard_kwargs",
    "sum_over_all_but_batch_and_last_n",
    "unpack_expanded_weight_or_tensor",
]


def is_batch_first(expanded_args_and_kwargs):
    """Return whether the batch is the first dimension, as the weights among the arguments say. None without such weights."""
    said = {arg.batch_first for arg in expanded_args_and_kwargs if isinstance(arg, ExpandedWeight)}
    if len(said) > 1:
        raise RuntimeError("Got conflicting batch_first arguments in the same layer")
    return said.pop() if said else None


def standard_kwargs(kwarg_names, expanded_args):
    """Split arguments into those given by position, and a dict of the last ones under these names."""
    positional = len(expanded_args) - len(kwarg_names)
    return expanded_args[:positional], dict(zip(kwarg_names, expanded_args[positional:], strict=True))


def forward_helper(func, expanded_args, expanded_kwargs):
    """Check the arguments and call ``func`` with the original weights. The input is the first argument."""
    check_call(func, expanded_args, expanded_kwargs)
    plain = {name: original(value) for name, value in expanded_kwargs.items()}
    return func(*[original(value) for value in expanded_args], **plain)


def original(value):
    """Return the weight that an ExpandedWeight stands for, and any other value itself."""
    return value.orig_weight if isinstance(value, ExpandedWeight) else value


def check_call(func, args, kwargs):
    """RuntimeError for an input without a batch, and for weights that were made for another batch or reduction."""
    input = args[0]
    name = func.__name__
    if isinstance(input, ExpandedWeight):
        raise RuntimeError(
            "Expanded Weights do not support inputs that are also ExpandedWeights. "
            f"Input must be a Tensor, got {type(input).__name__} in function {name}"
        )
    if not isinstance(input, Tensor):
        raise RuntimeError(
            "Expanded Weights requires a Tensor as the first input to get the batch dimension, "
            f"got {type(input).__name__} in function {name}"
        )
    if input.dim() == 0:
        raise RuntimeError(
            f"Expanded Weights requires a batch dimension but got an input of size 0 in function {name}"
        )
    if input.shape[0] == 0:
        raise RuntimeError(
            f"0 is not a valid batch size for Expanded Weights but got input tensor of {input} in function {name}"
        )
    weights = [value for value in [*args, *kwargs.values()] if isinstance(value, ExpandedWeight)]
    _check_batch_sizes(input, weights)
    reductions = list(dict.fromkeys(weight.loss_reduction for weight in weights))
    if len(reductions) > 1:
        raise RuntimeError(
            "Expected ExpandedWeights to all have the same loss_reduction argument but got one"
            f"with {reductions[0]} and one with {reductions[1]}"
        )


def _check_batch_sizes(input, weights):
    for weight in weights:
        size = input.shape[0 if weight.batch_first else 1]
        fits = size <= weight.batch_size if weight.allow_smaller_batches else size == weight.batch_size
        if not fits:
            raise RuntimeError(
                "Expected ExpandedWeights to have batch size matching input but got "
                f"input batch size of {size} with ExpandedWeight of batch size {weight.batch_size}"
            )


def maybe_scale_by_batch_size(grad_sample, expanded_weight):
    """Return gradients of a loss that sums over the batch, although the loss was the mean over it."""
    if expanded_weight.loss_reduction == "mean":
        return grad_sample * expanded_weight.batch_size
    return grad_sample


def set_grad_sample_if_exists(maybe_expanded_weight, per_sample_grad_fn):
    """Add what ``per_sample_grad_fn(weight)`` returns to ``weight.grad_sample``, if the value is an ExpandedWeight."""
    weight = unpack_expanded_weight_or_tensor(maybe_expanded_weight)
    if not isinstance(maybe_expanded_weight, ExpandedWeight):
        return
    new = maybe_scale_by_batch_size(per_sample_grad_fn(weight), maybe_expanded_weight)
    missing = maybe_expanded_weight.batch_size - new.shape[0]
    if missing > 0:  # samples that the call did not have got nothing from it
        new = ops.cat([new, new.new_zeros(missing, *new.shape[1:])])
    before = getattr(weight, "grad_sample", None)
    weight.grad_sample = new if before is None else before + new


def unpack_expanded_weight_or_tensor(maybe_expanded_weight, func=lambda x: x):
    """Return ``func`` of the weight or of the tensor, and None for anything else.

    Raises:
        RuntimeError: a tensor requires a gradient, and is not an ExpandedWeight.
    """
    if isinstance(maybe_expanded_weight, ExpandedWeight):
        return func(maybe_expanded_weight.orig_weight)
    if not isinstance(maybe_expanded_weight, Tensor):
        return None
    if maybe_expanded_weight.requires_grad:
        raise RuntimeError(
            "ExpandedWeights currently does not support a mixture of ExpandedWeight parameters "
            "and normal Parameters. Please file and issue with pytorch/pytorch"
        )
    return func(maybe_expanded_weight)


def sum_over_all_but_batch_and_last_n(tensor, n_dims):
    """Sum over the dimensions between the first one and the last ``n_dims``."""
    between = list(range(1, tensor.dim() - n_dims))
    return tensor.sum(dim=between) if between else tensor
