"""The attribute ``grad`` of a tensor."""

from __future__ import annotations

import warnings

from .._values.base import _C, Base
from ..ops._declare import t


def _scalar_name(dtype) -> str:
    return dtype.scalar_name


def read(self):
    """Return the gradient of a tensor, or None."""
    found = _C.get_grad(self)
    if found is not None:
        return found if "_retained_grad" not in self.__dict__ else _with_sparse(self, found)
    kept = self.__dict__.get("_retained_grad")
    if kept is None and not self.is_leaf and not self.retains_grad:
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
            "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf "
            "Tensor, use .retain_grad() on the non-leaf Tensor.",
            UserWarning,
            stacklevel=2,
        )
    return kept


def write(self, value):
    """Set the gradient of a tensor.

    Raises:
        TypeError: ``value`` is not a tensor.
        RuntimeError: ``value`` is the tensor itself, or has another shape or dtype.
    """
    if value is not None:
        if not isinstance(value, Base):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size '{list(self.shape)}'. "
                "Please ensure that the gradient and the tensor are the same size"
            )
        if value.dtype is not self.dtype:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{_scalar_name(value.dtype).lower()}' to a tensor with grad_dtype "
                f"'{_scalar_name(self.dtype)}'. "
                "The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype)"
            )
    self.__dict__.pop("_retained_grad", None)
    dense = value is None or not value.is_sparse
    if not _C.set_grad(self, value if dense else None) or not dense:
        self.__dict__["_retained_grad"] = value


def delete(self):
    """Set the gradient to None."""
    write(self, None)


def _with_sparse(self, found):
    """Return the sum of the dense gradient and of a sparse gradient from an earlier backward."""
    kept = self.__dict__.pop("_retained_grad")
    if kept is not None and kept.is_sparse:
        _C.set_grad(self, t.add(found, kept).detach())
    return _C.get_grad(self)
