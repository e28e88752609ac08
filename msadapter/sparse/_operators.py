"""The operators of sparse tensors. All others raise NotImplementedError, like those of PyTorch.

Operators of one tensor follow from the fact ``keeps_zeros`` of their declarations. The others have code of their own here.
"""

from __future__ import annotations

from .._errors import unsupported
from .._host.native import load
from ..autograd._over_values import declare_copies
from ..ops._declare import declarations, t
from ..ops._geometry import wrap_dim
from ..ops.internal import check_castable
from ..tensor import Tensor
from ..tensor._rare_methods import not_for
from ._base import SparseTensor, operator
from ._compressed import CompressedTensor
from ._coo import _INT, coo, gathered, is_coo, is_dense, keys

_C = load()


def _plain(x):
    """Return whether x is a number or a 0-dimensional dense tensor, by which values are multiplied or
    divided.
    """
    return not isinstance(x, Tensor) or (is_dense(x) and x.ndim == 0)


def _written(name: str, function):
    """Declare ``name_``, which writes the result of ``function`` to its first operand."""

    def inplace(self, *args, **kwargs):
        if self.is_leaf and self.requires_grad and _C.is_grad_enabled():
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        result = function(self, *args, **kwargs)
        check_castable(result.dtype, self.dtype)
        return self._take(result.to(self.dtype))

    operator(name)(inplace)


def _unary(declaration, name: str):
    function = getattr(t, name)

    def run(self, *args, **kwargs):
        # Repeated indices stay where the operator is linear; otherwise they are added up first.
        self = self.coalesce() if is_coo(self) and not declaration.facts.linear else self
        return self._with(function(self._v, *args, **kwargs))

    def written(self, *args, **kwargs):
        if is_coo(self) and not declaration.facts.linear and not self.is_coalesced():
            raise RuntimeError(f"{name}_ requires coalesced input")
        return run(self, *args, **kwargs)

    operator(name)(run)
    _written(f"{name}_", written)


for _declaration in declarations.values():
    if _declaration.facts.keeps_zeros:
        for _name in {_n.rpartition(".")[2] for _n in (_declaration.schema.name, *_declaration.aliases)}:
            _unary(_declaration, _name)


@operator("conj", "conj_physical")
def _conj(self):
    return self._with(t.conj(self._v))


@operator("clone")
def _clone(self, *, memory_format=None):
    return self.clone()


@operator("to_dense", "_to_dense")
def _to_dense(self, dtype=None, masked_grad=None):
    return self.to_dense(dtype)


declare_copies(operator)


def _common(a, b):
    """Return the dtype of the sum of the two."""
    return _C.promote_types(a.dtype, b.dtype)


# ---- sums
def _merged(a, b):
    """Return the sum of two coordinate tensors. It is coalesced if both are, else it may have the entries of both."""
    coalesced = a.is_coalesced() and b.is_coalesced()
    if a._v.is_contiguous() and b._v.is_contiguous() and t.equal(a._i, b._i):
        return coo(a._i, a._v + b._v, tuple(a.shape), coalesced)
    indices, values = t.cat([a._i, b._i], 1), t.cat([a._v, b._v])
    both = coo(indices, values, tuple(a.shape), False)
    return both.coalesce() if coalesced else both


@operator("add")
def _add(self, other, *, alpha=1):
    """Add tensors. sparse + sparse is sparse and dense + sparse dense; sparse + dense raises an error."""
    if isinstance(self, CompressedTensor) and isinstance(other, CompressedTensor):
        return _add(self._coo(), other._coo(), alpha=alpha)._to(self._layout_name)
    if isinstance(self, SparseTensor) and not isinstance(other, SparseTensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if self.shape != other.shape and not (is_dense(self) and self.ndim):
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(self.shape)} != {list(other.shape)}"
        )
    if is_dense(self):
        return _into_dense(self, other, alpha)
    dtype = _common(self._v, other._v)
    scaled = other._v if alpha == 1 else other._v * alpha
    return _merged(self.to(dtype), other._with(scaled).to(dtype))


def _into_dense(dense, other, alpha):
    if dense.shape != other.shape:
        return dense + other.to_dense() * alpha
    found = other if is_coo(other) else other._coo()
    values = found._v if alpha == 1 else found._v * alpha
    dtype = _common(dense, values)
    return t.index_put(dense.to(dtype), list(found._i), values.to(dtype), accumulate=True)


@operator("add_")
def _add_in_place(self, other, *, alpha=1):
    if isinstance(self, SparseTensor):
        return self._take(_add(self, other, alpha=alpha))
    if self.shape != other.shape:
        return self.copy_(_add(self, other, alpha=alpha))
    found = other if is_coo(other) else other._coo()
    values = found._v if alpha == 1 else found._v * alpha
    return self.index_put_(tuple(found._i), values.to(self.dtype), accumulate=True)


@operator("sub", "subtract")
def _sub(self, other, *, alpha=1):
    return _add(self, other, alpha=-alpha)


@operator("sub_", "subtract_")
def _sub_in_place(self, other, *, alpha=1):
    return _add_in_place(self, other, alpha=-alpha)


# ---- products with numbers, and element by element
@operator("mul", "multiply")
def _mul(self, other):
    if not isinstance(self, SparseTensor):
        self, other = other, self
    if _plain(other):
        return self._with(self._v * other)
    if isinstance(self, CompressedTensor):
        found = other._coo() if isinstance(other, CompressedTensor) else other
        return _mul(self._coo(), found)._to(self._layout_name)
    if is_dense(other):
        return self._with(self._v * other.expand(self.shape)[tuple(self._i)])
    if self.shape != other.shape:
        raise RuntimeError(
            "The size of tensor a must match the size of tensor b: sparse tensors do not broadcast"
        )
    sorted_, self, other = self._sorted and other._sorted, self.coalesce(), other.coalesce()
    values, there = other._looked_up(keys(self._i, self._sparse_size()))
    kept = t.nonzero(there).reshape(-1)
    both = t.index_select(self._v, 0, kept) * t.index_select(values, 0, kept)
    return coo(t.index_select(self._i, 1, kept), both, tuple(self.shape), True)._coalesced_(sorted_)


def _divided(name: str):
    def run(self, other, **kwargs):
        if not isinstance(self, SparseTensor):
            raise not_for(other, name)
        if not _plain(other):
            raise RuntimeError(
                "Sparse division requires a scalar or zero-dim dense tensor divisor "
                f"(got shape {list(other.shape)} for divisor)"
            )
        self = (
            self.coalesce()
            if is_coo(self) and (kwargs.get("rounding_mode") or name == "floor_divide")
            else self
        )
        return self._with(getattr(t, name)(self._v, other, **kwargs))

    operator(name)(run)
    _written(f"{name}_", run)


for _name in ("div", "divide", "true_divide", "floor_divide"):
    _divided(_name)
_written("mul_", _mul)


@operator("pow")
def _pow(self, exponent):
    if not isinstance(self, SparseTensor) or not _plain(exponent):
        raise not_for(self if isinstance(self, SparseTensor) else exponent, "pow")
    self = self.coalesce() if is_coo(self) else self
    return self._with(self._v**exponent)


_written("zero_", lambda self: _zeros_like(self))


@operator("any")
def _any(self):
    return self._v.any()


@operator("copy_")
def _copy(self, source, non_blocking=False):
    if is_dense(self) or is_dense(source):
        raise RuntimeError(
            "copy_() between dense and sparse Tensors is not implemented! Found self type = "
            f"{self.type()} and src type = {source.type()}"
        )
    return self._take(source.to(self.dtype))


@operator("zeros_like", "empty_like")
def _zeros_like(
    self, *, dtype=None, device=None, requires_grad=False, memory_format=None, layout=None, **options
):
    if layout is not None and layout._name == "strided":
        return t.zeros(
            list(self.shape),
            dtype=dtype or self.dtype,
            device=device or self.device,
            requires_grad=requires_grad,
        )
    if memory_format is not None:
        raise RuntimeError("memory format option is only supported by strided tensors")
    if not is_coo(self):
        return self._with(t.zeros_like(self._v, dtype=dtype))
    made = coo(self._i[:, :0], self._v.detach()[:0].clone(), tuple(self.shape), True).to(dtype or self.dtype)
    return made.requires_grad_(requires_grad)


# ---- reductions
@operator("sum")
def _sum(self, dim=None, keepdim=False, *, dtype=None):
    values = self._v if dtype is None else self._v.to(dtype)
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return values.sum()
    if not is_coo(self):
        raise not_for(self, "sum.dim_IntList")
    n, sparse = self.ndim, self.sparse_dim()
    dims = sorted({wrap_dim(d, n) for d in ((dim,) if isinstance(dim, int) else dim)})
    inner = [d - sparse + 1 for d in dims if d >= sparse]
    values = values.sum(inner, keepdim=keepdim) if inner else values
    kept = [d for d in range(sparse) if d not in dims]
    size = [1 if d in dims else s for d, s in enumerate(self.shape) if keepdim or d not in dims]
    if not kept:
        found = values.sum(0)
        return found.reshape(size) if keepdim else found
    indices = t.stack(
        [t.zeros_like(self._i[d]) if d in dims else self._i[d] for d in range(sparse) if keepdim or d in kept]
    )
    return coo(indices, values, tuple(size), False).coalesce()._coalesced_(not keepdim)


@operator("norm")
def _norm(self, p="fro", dim=None, keepdim=False, dtype=None):
    if dim is not None:
        raise not_for(self, "norm.ScalarOpt_dim")
    return t.norm(self.coalesce()._v if is_coo(self) else self._v, p, dtype=dtype)


# ---- shapes
@operator("transpose", "transpose_", "swapaxes", "swapdims")
def _transpose(self, dim0, dim1):
    order = list(range(self.ndim))
    dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return _permute(self, order)


@operator("t", "numpy_T", "adjoint")
def _t(self):
    if self.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
    return self if self.ndim < 2 else _transpose(self, 0, 1)


@operator("permute")
def _permute(self, *dims):
    dims = dims[0] if len(dims) == 1 and not isinstance(dims[0], int) else dims
    order = [wrap_dim(d, self.ndim) for d in dims]
    if order == list(range(self.ndim)):
        return self
    if isinstance(self, CompressedTensor):
        return self._transposed()
    sparse = self.sparse_dim()
    if sorted(order[:sparse]) != list(range(sparse)):
        raise RuntimeError("transpose: transposed dimensions must be either both sparse or both dense")
    indices = t.index_select(self._i, 0, t.tensor(order[:sparse])) if sparse else self._i
    values = self._v.permute([0, *(d - sparse + 1 for d in order[sparse:])])
    return coo(
        indices,
        values,
        tuple(self.shape[d] for d in order),
        order[:sparse] == list(range(sparse)) and self._sorted,
    )


@operator("unsqueeze")
def _unsqueeze(self, dim):
    dim = wrap_dim(dim, self.ndim + 1)
    size = list(self.shape)
    size.insert(dim, 1)
    sparse = self.sparse_dim()
    if dim > sparse:
        return coo(self._i, self._v.unsqueeze(dim - sparse + 1), tuple(size), self._sorted)
    zeros = t.zeros([1, self._nnz()], dtype=_INT, device=self.device)
    return coo(t.cat([self._i[:dim], zeros, self._i[dim:]]), self._v, tuple(size), self._sorted)


@operator("select", "_slice_one")
def _select(self, dim, index):
    if isinstance(self, CompressedTensor):
        return _select(self._coo(), dim, index)
    dim = wrap_dim(dim, self.ndim)
    n = self.shape[dim]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    index, sparse = index % n, self.sparse_dim()
    size = tuple(s for d, s in enumerate(self.shape) if d != dim)
    if dim >= sparse:
        return coo(self._i, self._v.select(dim - sparse + 1, index), size, self._sorted)
    kept = t.nonzero(self._i[dim] == index).reshape(-1)
    values = t.index_select(self._v, 0, kept)
    if sparse == 1:
        return values.sum(0)
    rows = [d for d in range(sparse) if d != dim]
    return coo(t.index_select(self._i[rows], 1, kept), values, size, self._sorted)


@operator("index_select")
def _index_select(self, dim, index):
    dim, sparse = wrap_dim(dim, self.ndim), self.sparse_dim()
    size = list(self.shape)
    size[dim] = index.numel()
    if dim >= sparse:
        return coo(self._i, t.index_select(self._v, dim - sparse + 1, index), tuple(size), self._sorted)
    hits = t.nonzero(index.reshape(-1, 1) % self.shape[dim] == self._i[dim].reshape(1, -1))
    rows = t.index_select(self._i, 1, hits[:, 1])
    rows[dim] = hits[:, 0]
    return coo(rows, t.index_select(self._v, 0, hits[:, 1]), tuple(size), False)


@operator("narrow_copy", "narrow")
def _narrow(self, dim, start, length):
    dim, sparse = wrap_dim(dim, self.ndim), self.sparse_dim()
    size = list(self.shape)
    if start < 0 or length < 0 or start + length > size[dim]:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size[dim]}).")
    size[dim] = length
    if dim >= sparse:
        return coo(self._i, self._v.narrow(dim - sparse + 1, start, length), tuple(size), self._sorted)
    inside = (self._i[dim] >= start) & (self._i[dim] < start + length)
    kept = t.nonzero(inside).reshape(-1)
    rows = t.index_select(self._i, 1, kept)
    rows[dim] = rows[dim] - start
    return coo(rows, t.index_select(self._v, 0, kept), tuple(size), self._sorted)


@operator("cat", "concat", "concatenate")
def _cat(tensors, dim=0):
    for i, x in enumerate(tensors):
        if not is_coo(x):
            raise RuntimeError(f"Concatenating sparse tensors, but a dense tensor was found at position {i}.")
    first = tensors[0]
    dim, sparse = wrap_dim(dim, first.ndim), first.sparse_dim()
    size = list(first.shape)
    for i, x in enumerate(tensors):
        if x.ndim != first.ndim or any(n != size[d] for d, n in enumerate(x.shape) if d != dim):
            raise RuntimeError(
                f"All tensors must have the same shape: {size} (except in the concatenating dimension), but found shape: "
                f"{list(x.shape)} at position {i}."
            )
        if x.sparse_dim() != sparse:
            raise RuntimeError(
                f"All tensors must have the same sparse_dim and dense_dim: {sparse}, {first.dense_dim()}, but tensor at "
                f"position {i} has {x.sparse_dim()}, {x.dense_dim()}."
            )
    size[dim] = sum(x.shape[dim] for x in tensors)
    if dim >= sparse:
        raise unsupported("torch.cat", "sparse tensors along a dense dimension are not supported")
    parts, at = [], 0
    for x in tensors:
        rows = x._i.clone()
        rows[dim] = rows[dim] + at
        parts.append(rows)
        at += x.shape[dim]
    return coo(t.cat(parts, 1), t.cat([x._v for x in tensors]), tuple(size), False)


@operator("stack")
def _stack(tensors, dim=0):
    return _cat([_unsqueeze(x, dim) for x in tensors], dim)


@operator("reshape")
def _reshape(self, *shape):
    raise RuntimeError("reshape is not implemented for sparse tensors")


@operator("expand")
def _expand(self, *shape, implicit=False):
    raise RuntimeError("expand is unsupported for Sparse tensors")


# ---- products of matrices
def _coordinates(x):
    return x._coo() if isinstance(x, CompressedTensor) else x


def _check_mm(a, b) -> None:
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError(f"mm: Expected 2D matrices, but got {a.ndim}D and {b.ndim}D")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")


def _sparse_dense(a, b):
    """Multiply (n, m) coordinates by (m, k) dense: add value * row of b to the row of the value's index."""
    rows = t.index_select(b, 0, a._i[1]) * a._v.unsqueeze(-1)
    return gathered(rows, a._i[0], a.shape[0])


def _sparse_sparse(a, b):
    """Multiply two coordinate matrices.

    Each value of a is multiplied by all values of b in the row that equals the value's column.
    """
    a, b = a.coalesce(), b.coalesce()
    starts = t.searchsorted(b._i[0].contiguous(), t.arange(b.shape[0] + 1))
    first, count = starts[a._i[1]], starts[a._i[1] + 1] - starts[a._i[1]]
    left = t.repeat_interleave(t.arange(a._nnz()), count)
    before = t.cumsum(count, 0) - count
    right = t.arange(len(left)) - before[left] + first[left]
    indices = t.stack([a._i[0][left], b._i[1][right]])
    values = t.index_select(a._v, 0, left) * t.index_select(b._v, 0, right)
    return coo(indices, values, (a.shape[0], b.shape[1]), False).coalesce()


@operator("mm", "_sparse_mm", "spmm")
def mm(self, mat2):
    """Return the product of two matrices, of which one is sparse.

    The product of two sparse ones is sparse.
    """
    _check_mm(self, mat2)
    layout = self._layout_name if isinstance(self, CompressedTensor) else None
    a, b = _coordinates(self), _coordinates(mat2)
    if is_coo(a) and is_coo(b):
        found = _sparse_sparse(a, b)
        return found if layout is None else found._to(layout)
    if is_coo(a):
        return _sparse_dense(a, b)
    return _sparse_dense(_t(b), a.t()).t()


@operator("mv")
def _mv(self, vec):
    return mm(self, vec.unsqueeze(-1)).squeeze(-1)


@operator("matmul", "__rmatmul__")
def _matmul(self, other):
    if other.ndim == 1 and is_dense(other):
        return _mv(self, other)
    if self.ndim == 1 and is_dense(self):
        return mm(self.unsqueeze(0), other).squeeze(0)
    return _bmm(self, other) if self.ndim == 3 else mm(self, other)


@operator("bmm")
def _bmm(self, mat2):
    if not is_coo(self) or not is_dense(mat2) or self.ndim != 3:
        raise not_for(mat2 if isinstance(mat2, SparseTensor) else self, "bmm")
    return t.stack([mm(_select(self, 0, i), mat2[i]) for i in range(self.shape[0])])


@operator("addmm", "_sparse_addmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    """Return beta * self + alpha * (mat1 @ mat2)."""
    product = mm(mat1, mat2)
    if isinstance(product, SparseTensor) != isinstance(self, SparseTensor):
        raise RuntimeError("addmm: the product and what it is added to must both be sparse or both be dense")
    scaled = product * alpha if alpha != 1 else product
    return (self * beta if beta != 1 else self) + scaled


@operator("smm")
def smm(self, mat):
    """Return the product of a sparse and a dense matrix as a sparse tensor that stores all elements."""
    found = mm(self, mat)
    n, k = found.shape
    rows = t.stack([t.arange(n).repeat_interleave(k), t.arange(k).repeat(n)])
    return coo(rows, found.reshape(-1), (n, k), False)


@operator("linear")
def _linear(input, weight, bias=None):
    found = _matmul(input, _t(weight) if isinstance(weight, SparseTensor) else weight.t())
    return found if bias is None else found + bias


# ---- softmax over what is there
def softmax(input, dim, *, dtype=None, log: bool = False):
    """softmax of the values along ``dim``. Elements that are not stored count as minus infinity."""
    self = input.coalesce() if dtype is None else input.to(dtype).coalesce()
    dim, sparse = wrap_dim(dim, self.ndim), self.sparse_dim()
    if dim >= sparse:
        return self._with((t.log_softmax if log else t.softmax)(self._v, dim - sparse + 1))
    others = [d for d in range(sparse) if d != dim]
    numbers = keys(self._i[others], [self.shape[d] for d in others]) if others else t.zeros_like(self._i[dim])
    group = t.unique(numbers, return_inverse=True)[1]
    count = int(group.max()) + 1 if len(group) else 0
    lowest = t.full([count, *self._v.shape[1:]], float("-inf"), dtype=self.dtype)
    top = t.index_reduce(lowest, 0, group, self._v.detach(), "amax")
    shifted = self._v - t.index_select(top, 0, group)
    powers = t.exp(shifted)
    sums = t.index_select(gathered(powers, group, count), 0, group)
    return self._with(shifted - t.log(sums) if log else powers / sums)
