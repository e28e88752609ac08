"""torch._check and similar functions: raise an error if a condition is false."""

from __future__ import annotations

from .tensor import Tensor

_DEFAULT = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement"
    " request to PyTorch.)"
)


def _check_with(error_type, cond, message) -> None:
    """Raise ``error_type`` with the text ``message()`` if the condition is false. ``message`` may be None."""
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


def _debug_has_internal_overlap(input: Tensor) -> int:
    """Return 0 if no two elements share memory, 1 if some do, and 2 if strides alone do not tell."""
    dims = sorted(
        (stride, size) for stride, size in zip(input.stride(), input.shape, strict=True) if size != 1
    )
    expected = 1
    for stride, size in dims:
        if stride == 0:
            return 1
        if stride != expected:
            return 2
        expected *= size
    return 0


def _check(cond, message=None) -> None:
    """Raise RuntimeError if the condition is false."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None) -> None:
    """Raise IndexError if the condition is false."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None) -> None:
    """Raise ValueError if the condition is false."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None) -> None:
    """Raise TypeError if the condition is false."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None) -> None:
    """Raise NotImplementedError if the condition is false."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None) -> None:
    """Raise RuntimeError unless 0 <= i (and i <= ``max``, if ``max`` is given)."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error_type, cond, message=None) -> None:
    """Raise ``error_type`` unless all elements of the bool tensor are true."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if not cond.dtype.is_bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all().item()), message)


def _check_tensor_all(cond, message=None) -> None:
    """Raise RuntimeError unless all elements of the bool tensor are true."""
    _check_tensor_all_with(RuntimeError, cond, message)
