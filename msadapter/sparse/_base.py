"""The base class of sparse tensors. Their indices and values are ordinary tensors.

A sparse tensor is a Python subclass of a meta tensor with its shape. An operator that does not know sparse
tensors therefore raises an error and cannot compute something wrong. The values are an ordinary tensor in the
graph, so the gradient of a sparse tensor is that of its values, and results of table operators on the values
are differentiable.
"""

from __future__ import annotations

import copy

from .._host.native import load
from .._values.dtype import ALL
from .._values.layout import LAYOUTS
from ..autograd import backward
from ..ops._declare import t
from ..tensor import Size, Tensor
from ..tensor._rare_methods import not_for
from ._printing import sparse_str

_C = load()
STRIDED = LAYOUTS["strided"]
MAKERS: dict = {}  # layout name -> function(*parts, size, ...) that checks its parts; filled by _construct.py
CONVERTERS: dict = {}  # layout name -> function(coalesced COO tensor, name, blocksize); filled by _compressed.py
OPERATORS: dict = {}  # table operator -> function(sparse class, ...), for torch.add, Tensor.add, ...


def operator(*names: str):
    """Decorate a function that implements the operators of these names for sparse tensors."""

    def declare(function):
        for name in names:
            OPERATORS[name] = function
        return function

    return declare


def int64(values):
    """Convert a list or a tensor to an int64 index tensor."""
    given = values if isinstance(values, Tensor) else t.tensor(values, dtype=ALL["int64"])
    if given.dtype.is_floating_point or given.dtype.is_complex:
        given = given.to(ALL["int64"])
    return given.detach()


class SparseTensor(Tensor):
    """Base class of the sparse layouts.

    Programs create them with torch.sparse_coo_tensor and similar functions.
    """

    _layout_name = ""

    def __new__(cls, *args, **kwargs):
        raise TypeError("sparse tensors are made by torch.sparse_coo_tensor and its kin")

    @classmethod
    def _shaped(cls, size, values):
        """Return a tensor of the class with this shape. The caller sets its indices and values."""
        seed = _C.raw_empty((1,), None, values.dtype)
        made = _C.raw_view(_C.to_meta(seed), tuple(size), (0,) * len(size), 0, values.dtype)
        made.__class__ = cls
        made.__dict__.update(_v=values, _extent=Size(size))
        return made

    # ---- what the layouts answer
    def _with(self, values, size=None):
        """Return a tensor with the same indices and other values."""
        raise NotImplementedError(f"{type(self).__name__}._with: a layout must say it")

    def _parts(self) -> list:
        """Return (name, tensor) pairs of the indices and values, for repr and for files."""
        raise NotImplementedError(f"{type(self).__name__}._parts: a layout must say it")

    # ---- description
    shape = property(lambda self: self._extent)
    ndim = property(lambda self: len(self._extent))
    layout = property(lambda self: LAYOUTS[self._layout_name])
    device = property(lambda self: self._v.device)
    is_sparse = property(lambda self: self._layout_name == "sparse_coo")
    is_sparse_csr = property(lambda self: self._layout_name == "sparse_csr")
    is_meta = property(lambda self: False)
    is_cpu = property(lambda self: self._v.is_cpu)
    is_cuda = property(lambda self: self._v.is_cuda)
    is_npu = property(lambda self: self._v.is_npu)

    @property
    def nbytes(self):
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the nbytes of the "
            "indices and values.  If you want the size of the  equivalent dense tensor, multiply numel() by element_size()"
        )

    def is_contiguous(self, memory_format=None) -> bool:
        return False

    def get_device(self) -> int:
        return self._v.get_device()

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

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def item(self):
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.to_dense().item()

    def type(self, dtype=None, non_blocking=False, **kwargs):
        if dtype is None:
            prefix = "torch.sparse" if self.is_cpu else f"torch.{self.device.type}.sparse"
            return f"{prefix}.{self.dtype.storage_name.removesuffix('Storage')}Tensor"
        return super().type(dtype)

    def __repr__(self, *, tensor_contents=None):
        return ("Parameter containing:\n" if self._is_param else "") + sparse_str(self)

    # ---- gradients: those of the values
    requires_grad = property(lambda self: self._v.requires_grad, lambda self, flag: self.requires_grad_(flag))
    grad_fn = property(lambda self: self._v.grad_fn)
    is_leaf = property(lambda self: self._v.is_leaf)
    retains_grad = property(lambda self: self._v.retains_grad)

    def requires_grad_(self, requires_grad=True):
        self._v.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        found = self._v.grad
        return None if found is None else self._with(found)

    @grad.setter
    def grad(self, value):
        self._v.grad = None if value is None else value._aligned(self)

    @grad.deleter
    def grad(self):
        self._v.grad = None

    def _aligned(self, other):
        """Return the values in the order of the indices of ``other``, which has the same positions."""
        return self._v

    def retain_grad(self) -> None:
        self._v.retain_grad()

    def register_hook(self, hook):
        def wrapped(g):
            found = hook(self._with(g))
            return None if found is None else found._aligned(self)

        return self._v.register_hook(wrapped)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Like backward of a dense tensor. Of ``gradient``, the positions of this tensor are used."""
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def detach(self):
        return self._with(self._v.detach())

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

    def detach_(self):
        self._v.detach_()
        return self

    # ---- copies
    def to(self, *args, **kwargs):
        found = self._v.to(*args, **kwargs)
        return self if found is self._v else self._with(found)

    def clone(self, *, memory_format=None):
        return self._with(self._v.clone())

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            return super().__deepcopy__(memo)  # raises the proper error
        if id(self) not in memo:
            made = self._with(copy.deepcopy(self._v, memo))
            memo[id(self)] = made
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        state = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
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
            found = next(a for a in _flat((args, kwargs or {})) if isinstance(a, SparseTensor))
            raise not_for(found, name)
        return handler(*args, **(kwargs or {}))


def values_pass(tensors, grads, inputs):
    """Convert outputs, gradients and inputs of a backward pass to the values of sparse tensors.

    A gradient keeps the positions that its output has. Also returns a function that converts the results to sparse tensors.
    """
    made = []
    for output, gradient in zip(tensors, grads, strict=True):
        if not isinstance(output, SparseTensor):
            made.append(gradient)
        elif gradient is None:
            if output.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            made.append(t.ones_like(output._v.detach()))
        else:
            made.append(_positions_of(gradient, output))

    def results(found):
        return tuple(
            x._with(g) if isinstance(x, SparseTensor) and g is not None else g
            for x, g in zip(inputs, found, strict=True)
        )

    return [_values_of(x) for x in tensors], made, [_values_of(x) for x in inputs], results


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


def _values_of(x):
    return x._v if isinstance(x, SparseTensor) else x


def _positions_of(gradient, output):
    """Return the values of a gradient, which is sparse or dense, at the positions of a sparse output."""
    if not isinstance(gradient, Tensor) or gradient.shape != output.shape:
        raise RuntimeError(
            f"the gradient of a sparse tensor of shape {output.shape} must be a tensor of this shape"
        )
    if not isinstance(gradient, SparseTensor):
        gradient = gradient.sparse_mask(output)
    return gradient._aligned(output)


SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"
SparseTensor.__module__ = "torch"


def _flat(value):
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _flat(one)
    else:
        yield value


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
