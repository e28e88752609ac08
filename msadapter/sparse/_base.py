"""The base class of sparse tensors. Their indices and values are ordinary tensors.

The meta tensor beneath a sparse tensor has its shape. Results of table operators on the values are differentiable.
"""

from __future__ import annotations

import copy
import weakref
from typing import NamedTuple

from .._errors import unsupported
from .._host.native import load
from .._values.dtype import ALL
from .._values.layout import LAYOUTS
from ..autograd._over_values import OverValues, arguments, declare
from ..ops._declare import t
from ..ops.internal import check_castable
from ..tensor import Size, Tensor
from ..tensor._pickling import user_attributes
from ..tensor._rare_methods import layout_title, not_for
from ._printing import sparse_str

_C = load()
STRIDED = LAYOUTS["strided"]
MAKERS: dict = {}  # layout name -> function(*parts, size, ...) that checks its parts; filled by _construct.py
OPERATORS: dict = {}  # table operator -> function(sparse class, ...), for torch.add, Tensor.add, ...


operator = declare(OPERATORS)


def int64(values):
    """Convert a list or a tensor to an int64 index tensor."""
    given = values if isinstance(values, Tensor) else t.tensor(values, dtype=ALL["int64"])
    if given.dtype.is_floating_point or given.dtype.is_complex:
        given = given.to(ALL["int64"])
    return given.detach()


class _Kept(NamedTuple):
    """The gradient of a sparse tensor: as the program has it, and as the graph does.

    Attributes: gradient: the sparse tensor. values: the gradient of the values, and its version when the two were equal. before: a
    copy of the values at that time, or None if the two share their memory.
    """

    gradient: SparseTensor
    values: Tensor
    version: int
    before: Tensor | None


class SparseTensor(OverValues):
    """Base class of the sparse layouts.

    Programs create them with torch.sparse_coo_tensor and similar functions.
    """

    def __new__(cls, *args, **kwargs):
        raise TypeError("sparse tensors are made by torch.sparse_coo_tensor and its kin")

    @classmethod
    def _shaped(cls, size, values):
        """Return a tensor of the class with this shape. The caller sets its indices and values."""
        return cls._over(values, tuple(size), _v=values, _extent=Size(size))

    # ---- what the layouts answer
    def _with(self, values, size=None):
        """Return a tensor with the same indices and other values."""
        raise NotImplementedError(f"{type(self).__name__}._with: a layout must say it")

    def _parts(self) -> list:
        """Return (name, tensor) pairs of the indices and values, for repr and for files."""
        raise NotImplementedError(f"{type(self).__name__}._parts: a layout must say it")

    # ---- description
    shape = property(lambda self: self._extent)
    is_sparse = property(lambda self: self._layout_name == "sparse_coo")
    is_sparse_csr = property(lambda self: self._layout_name == "sparse_csr")
    is_meta = property(lambda self: False)

    @property
    def nbytes(self):
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of the "
            "indices and values.  If you want the size of the  equivalent dense tensor, multiply numel() by element_size()"
        )

    def is_contiguous(self, memory_format=None) -> bool:
        return False

    def _nnz(self) -> int:
        return self._v.shape[0]

    def data_ptr(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    tolist = data_ptr

    def untyped_storage(self):
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")

    storage = _typed_storage = untyped_storage

    def numpy(self, *, force=False):
        raise TypeError("can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.")

    def item(self):
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.to_dense().item()

    def type(self, dtype=None, non_blocking=False):
        if dtype is None:
            prefix = "torch.sparse" if self.is_cpu else f"torch.{self.device.type}.sparse"
            return f"{prefix}.{self.dtype.scalar_name}Tensor"
        return super().type(dtype)

    def __repr__(self, *, tensor_contents=None):
        return ("Parameter containing:\n" if self._is_param else "") + sparse_str(self)

    # ---- gradients
    def _aligned(self, other):
        """Return the values in the order of the indices of ``other``, which has the same positions."""
        return self._v

    def _values_of_gradient(self, gradient):
        return gradient._aligned(self)

    def _start_of_pass(self, gradient):
        """Return the values at the positions of this tensor of a gradient that is sparse or dense."""
        if not isinstance(gradient, Tensor) or gradient.shape != self.shape:
            raise RuntimeError(
                f"the gradient of a sparse tensor of shape {self.shape} must be a tensor of this shape"
            )
        return (
            gradient._aligned(self) if isinstance(gradient, SparseTensor) else gradient.sparse_mask(self)._v
        )

    @property
    def grad(self):
        values = self._v.grad
        if values is None:
            self.__dict__.pop("_kept", None)
            return None
        kept = self.__dict__.get("_kept")
        if kept is None or (kept.before is None and kept.values is not values):
            return self._keep(self._as_gradient(values), values)
        if kept.before is None or (kept.values is values and kept.version == values._version):
            return kept.gradient
        # A backward pass has added the difference.
        sum_ = kept.gradient + self._as_gradient(values - kept.before)
        if sum_.requires_grad:
            return self._keep(sum_, values)
        del self.__dict__["_kept"]  # so that _take does not set the gradient
        return self._keep(kept.gradient._take(sum_), values)

    @grad.setter
    def grad(self, value):
        OverValues.grad.fset(self, value)  # type: ignore[attr-defined]
        if value is None:
            self.__dict__.pop("_kept", None)
        else:
            self._keep(value, self._v.grad)

    @grad.deleter
    def grad(self):
        self.grad = None

    def _keep(self, gradient, values):
        """Keep the sparse tensor that is this tensor's gradient, so that a program sees what it writes to it. Returns the tensor.

        ``values`` is the gradient of this tensor's values, to which a backward pass adds. If it is not the memory of the sparse
        tensor, what a pass has added is the difference from a copy.
        """
        before = None if gradient._v.data_ptr() == values.data_ptr() else values.detach().clone()
        self.__dict__["_kept"] = _Kept(gradient, values, values._version, before)
        gradient.__dict__["_gradient_of"] = weakref.ref(self)
        return gradient

    def _written(self):
        """Pass on what an in-place operator has stored in this tensor, if it is the .grad of another. Returns the tensor."""
        owner = self.__dict__.get("_gradient_of", lambda: None)()
        if owner is not None and (kept := owner.__dict__.get("_kept")) is not None and kept.gradient is self:
            owner.grad = self
        return self

    @property
    def data(self):
        return self.detach()

    @data.setter
    def data(self, other):
        wanted = self.requires_grad
        Tensor.data.fset(self, other)  # type: ignore[attr-defined]  # a property
        self._take(other.detach())
        self.__dict__["_extent"] = other._extent
        self._v.requires_grad_(wanted)

    # ---- copies
    def clone(self, *, memory_format=None):
        _check_no_format(memory_format)
        return self._with(self._v.clone())

    def __deepcopy__(self, memo):
        known = id(self) in memo
        made = super().__deepcopy__(memo)
        # The gradient may have positions that this tensor does not have.
        if not known and self.grad is not None:
            made.grad = copy.deepcopy(self.grad, memo)
        return made

    def __reduce_ex__(self, protocol):
        state = user_attributes(self)
        parts = [part.detach() for _, part in self._parts()]
        coalesced = self.is_coalesced() if self.is_sparse else False
        return rebuild, (self._layout_name, parts, tuple(self.shape), coalesced, self.requires_grad, state)

    # ---- subscripts
    def __iter__(self):
        return iter([self.select(0, i) for i in range(self.shape[0])])

    def __getitem__(self, index):
        found = self
        dim = 0
        for one in index if isinstance(index, tuple) else (index,):
            if isinstance(one, slice) and one == slice(None):
                dim += 1
            elif isinstance(one, int) and not isinstance(one, bool):
                n = found.shape[dim]
                if not -n <= one < n:
                    raise IndexError(f"index {one} is out of bounds for dimension {dim} with size {n}")
                found = found.select(dim, one)
            else:
                raise not_for(self, "as_strided")
        return found

    def __setitem__(self, index, value):
        raise TypeError("Cannot assign to a sparse tensor")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = function.__name__.rpartition(".")[2]
        handler = OPERATORS.get(name)
        if handler is None:
            found = next(a for a in arguments((args, kwargs or {})) if isinstance(a, SparseTensor))
            raise not_for(found, name)
        kwargs = dict(kwargs or {})
        out = kwargs.pop("out", None)
        if out is None:
            return handler(*args, **kwargs)
        _check_unrecorded(name, (args, out))
        return stored_in(out, handler(*args, **kwargs))


def _check_no_format(memory_format) -> None:
    """RuntimeError if a copy of a sparse tensor is asked for in a memory format."""
    if memory_format is not None:
        name = "".join(word.title() for word in memory_format._name.removesuffix("_format").split("_"))
        raise RuntimeError(f"unsupported memory format option {name}")


def check_masked_gradient(tensor, masked_grad) -> None:
    """NotImplementedError if a gradient of ``to_dense`` is asked for at positions that are not stored."""
    if masked_grad is False and tensor.requires_grad and _C.is_grad_enabled():
        raise unsupported(
            "torch.Tensor.to_dense",
            "masked_grad=False is not supported for a sparse tensor that requires grad",
        )


def _check_unrecorded(name: str, tensors) -> None:
    """RuntimeError if a call with out= would be recorded, as for dense tensors."""
    if _C.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in arguments(tensors)):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
            "requires grad."
        )


def stored_in(out, found):
    """Give a result to the tensor ``out`` of the same layout, in its dtype, and return this tensor.

    Raises:
        RuntimeError: the layouts differ, or the dtype of ``out`` does not hold the result.
    """
    if out.layout is not found.layout:
        raise RuntimeError(
            f"Expected out tensor to have layout {layout_title(found)}, but got {layout_title(out)} instead"
        )
    check_castable(found.dtype, out.dtype)
    if not isinstance(out, SparseTensor):
        return out.resize_(found.shape).copy_(found)
    out.__dict__["_extent"] = found._extent
    return out._take(found.to(out.dtype))


def give_to_leaves(tensors, grads, create_graph: bool):
    """Add sparse gradients to .grad of the dense leaves that a backward pass begins with. Returns the other pairs.

    As in PyTorch, .grad stays the same object unless a graph is recorded. Elsewhere the engine needs dense gradients.
    """
    kept = []
    for output, gradient in zip(tensors, grads, strict=True):
        mixed = isinstance(gradient, SparseTensor) and isinstance(output, Tensor) and output.layout is STRIDED
        if not mixed or not output.requires_grad or gradient.shape != output.shape:
            kept.append((output, gradient))
        elif not output.is_leaf:
            kept.append((output, gradient.to_dense()))
        elif output.grad is None:
            output.grad = gradient.clone() if create_graph else gradient.detach()
        elif create_graph:
            output.grad = output.grad + gradient
        else:
            output.grad.add_(gradient.detach() if output.grad.is_sparse else gradient.to_dense().detach())
    return tuple(o for o, _ in kept), tuple(g for _, g in kept)


SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"
SparseTensor.__module__ = "torch"


def check_inside(indices, size) -> None:
    """RuntimeError unless every index (sparse dims, nnz) lies within the size."""
    if not indices.numel():
        return
    for dim, (low, high) in enumerate(
        zip(indices.min(1)[0].tolist(), indices.max(1)[0].tolist(), strict=True)
    ):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {dim}")
        if high >= size[dim]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {high}"
            )


def rebuild(layout: str, parts, size, coalesced: bool, requires_grad: bool, state: dict):
    """Return the tensor that __reduce_ex__ described.

    The indices are checked, because they come from a file.
    """
    options = {"is_coalesced": coalesced} if layout == "sparse_coo" else {"layout": LAYOUTS[layout]}
    made = MAKERS[layout](*parts, size, check_invariants=True, **options)
    made.__dict__.update(state)
    return made.requires_grad_() if requires_grad else made
