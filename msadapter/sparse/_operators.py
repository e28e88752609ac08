"""The operators of sparse tensors. All others raise NotImplementedError, like those of PyTorch.

Operators of one tensor follow from the fact ``keeps_zeros`` of their declarations. The others have code of their own here.
"""

from __future__ import annotations

from .._host.native import load
from ..autograd._over_values import declare_copies
from ..ops._declare import declarations, t
from ..ops._geometry import wrap_dim
from ..ops.internal import check_castable
from ..tensor import Tensor
from ..tensor._rare_methods import not_for
from ._base import SparseTensor, operator
from ._checks import title
from ._compressed import CompressedTensor, compressed, from_coo, transposed_sparse_dims
from ._conversion import zeros_as
from ._coo import _INT, coo, is_coo, is_dense, keys

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
    return self.clone(memory_format=memory_format)


@operator("to_dense", "_to_dense")
def _to_dense(self, dtype=None, masked_grad=None):
    return self.to_dense(dtype, masked_grad=masked_grad)


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
        return _add_compressed(self, other, alpha)
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


def _add_compressed(self, other, alpha):
    same = self.shape == other.shape and self._layout_name == other._layout_name
    if same and t.equal(self._outer, other._outer) and t.equal(self._inner, other._inner):
        return self._with(t.add(self._v, other._v, alpha=alpha))
    return in_layout_of(_add(self._coo(), other._coo(), alpha=alpha), self)


def in_layout_of(found, other):
    """Convert coordinates to the layout of a compressed tensor, with its blocks and the dtype of its indices."""
    block = other._block() if other._blocked() else None
    return from_coo(found.coalesce(), other._layout_name, block, other._outer.dtype)


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
        return in_layout_of(_mul(self._coo(), found), self)
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


def _dense_like(self, dtype, device, requires_grad):
    return t.zeros(
        list(self.shape), dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )


@operator("zeros_like")
def _zeros_like(
    self, *, dtype=None, device=None, requires_grad=False, memory_format=None, layout=None, **options
):
    name = self._layout_name if layout is None else layout._name
    if name == "strided":
        return _dense_like(self, dtype, device, requires_grad)
    if memory_format is not None:
        raise RuntimeError("memory format option is only supported by strided tensors")
    return zeros_as(self, name, dtype, device, requires_grad)


@operator("empty_like")
def _empty_like(
    self, *, dtype=None, device=None, requires_grad=False, memory_format=None, layout=None, **options
):
    """Return coordinates that store nothing, or a compressed tensor with the same positions and values of any kind."""
    name = self._layout_name if layout is None else layout._name
    if name == "strided" or is_coo(self):
        return _zeros_like(
            self,
            dtype=dtype,
            device=device,
            requires_grad=requires_grad,
            memory_format=memory_format,
            layout=layout,
        )
    if name != self._layout_name:
        raise RuntimeError(
            f"empty_like with different sparse layout is not supported (self is {title(self._layout_name)} but you requested "
            f"{title(name)})"
        )
    return _over_values("empty_like", self, dtype, device, requires_grad)


def _over_values(name: str, self, dtype, device, requires_grad, *numbers, **options):
    """Return a compressed tensor with the same positions, whose values the operator makes from those of this one."""
    values = getattr(t, name)(self._v.detach(), *numbers, dtype=dtype, device=device, **options)
    made = compressed(self._layout_name, self._outer.clone(), self._inner.clone(), values, tuple(self.shape))
    return made.requires_grad_(requires_grad)


def _like(name: str) -> None:
    @operator(name)
    def run(
        self,
        *numbers,
        dtype=None,
        device=None,
        requires_grad=False,
        memory_format=None,
        layout=None,
        **options,
    ):
        if layout is not None and layout._name == "strided" and is_coo(self):
            made = _dense_like(self, dtype, device, False)
            return getattr(t, name)(
                made, *numbers, memory_format=memory_format, requires_grad=requires_grad, **options
            )
        if (
            not isinstance(self, CompressedTensor)
            or (layout or self.layout) is not self.layout
            or memory_format
        ):
            raise not_for(self, name)
        return _over_values(name, self, dtype, device, requires_grad, *numbers, **options)


for _name in ("full_like", "ones_like", "randn_like"):
    _like(_name)


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
    if keepdim:
        raise RuntimeError("norm_sparse currently does not support keepdim=True")
    return t.norm(self.coalesce()._v if is_coo(self) else self._v, p, dtype=dtype)


# ---- shapes
@operator("transpose", "transpose_", "swapaxes", "swapdims")
def _transpose(self, dim0, dim1):
    order = list(range(self.ndim))
    dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    order[dim0], order[dim1] = order[dim1], order[dim0]
    return _permute(self, order)


@operator("t", "numpy_T", "adjoint")
def transposed(self):
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
        return transposed_sparse_dims(self, order)
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
def select(self, dim, index):
    dim = wrap_dim(dim, self.ndim)
    n = self.shape[dim]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(self.shape)} at dimension {dim}"
        )
    if isinstance(self, CompressedTensor):
        of_batch = dim < len(self._batch())
        return self._of_batch(dim, index % n) if of_batch else select(self._coo(), dim, index)
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
        return _cat_dense(tensors, dim - sparse + 1, tuple(size))
    parts, at = [], 0
    for x in tensors:
        rows = x._i.clone()
        rows[dim] = rows[dim] + at
        parts.append(rows)
        at += x.shape[dim]
    return coo(t.cat(parts, 1), t.cat([x._v for x in tensors]), tuple(size), False)


def _cat_dense(tensors, dim: int, size):
    """Concatenate along the dim ``dim`` of the values. The entries of one tensor are zero in the part of the others."""
    parts, before, whole = [], 0, sum(x._v.shape[dim] for x in tensors)
    for x in tensors:
        around = list(x._v.shape)
        pieces = []
        for length in (before, whole - before - x._v.shape[dim]):
            around[dim] = length
            pieces.append(t.zeros(around, dtype=x.dtype, device=x.device))
        parts.append(t.cat([pieces[0], x._v, pieces[1]], dim))
        before += x._v.shape[dim]
    return coo(t.cat([x._i for x in tensors], 1), t.cat(parts), size, False)


@operator("stack")
def _stack(tensors, dim=0):
    return _cat([_unsqueeze(x, dim) for x in tensors], dim)


@operator("reshape")
def _reshape(self, *shape):
    raise RuntimeError("reshape is not implemented for sparse tensors")


@operator("expand")
def _expand(self, *shape, implicit=False):
    raise RuntimeError("expand is unsupported for Sparse tensors")
