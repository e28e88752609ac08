"""torch._check and its like: a condition, and the error that its failure raises."""

from __future__ import annotations

from .tensor import Tensor

_DEFAULT = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement"
    " request to PyTorch.)"
)


def _check_with(error_type, cond, message) -> None:
    """``error_type`` with what ``message()`` returns, unless the condition holds; ``message`` may be None."""
    if isinstance(cond, Tensor):
        raise TypeError(
            "cond must be a bool, but got a Tensor. For tensor conditions, use torch._check_tensor_all() to assert"
            " that all elements are true."
        )
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(_DEFAULT if message is None else str(message()))


def _check(cond, message=None) -> None:
    """RuntimeError unless the condition holds."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None) -> None:
    """IndexError unless the condition holds."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None) -> None:
    """ValueError unless the condition holds."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None) -> None:
    """TypeError unless the condition holds."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None) -> None:
    """NotImplementedError unless the condition holds."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None) -> None:
    """RuntimeError unless the number is a length, and at most ``max`` where that is given."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type, cond, message=None) -> None:
    """``error_type`` unless every element of the bool tensor is true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if not cond.dtype.is_bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond, message=None) -> None:
    """RuntimeError unless every element of the bool tensor is true."""
    _check_tensor_all_with(RuntimeError, cond, message)
