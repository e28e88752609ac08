"""Matrix products and functions that use them: matmul, linear, einsum, tensordot."""

from __future__ import annotations

import math

from .._host.warn import warn_once
from .._values.dtype import cpp_name
from . import _einsum  # noqa: F401
from ._declare import _C, composite, namespaces, op, raw_empty, t
from ._linalg_tools import needs_graph
from .pointwise import conj


def adjoint(x):
    """Return the conjugate transpose of the last two dims."""
    return conj(x).transpose(-2, -1)


def _times(x, factor):
    return x if factor == 1 else x * conj(factor)


# ---- two and three dims
op(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    ms="Mm",
    forms="fmo",
    autocast="lower",
    grad={
        "self": lambda g, mat2: _mm_flags(g, conj(mat2), False, True),
        "mat2": lambda g, self: _mm_flags(conj(self), g, True, False),
    },
    native="gradient",
    float8="tensors",
)


@composite("spmm(Tensor self, Tensor mat2) -> Tensor", forms="f", aliases=("dsmm",))
def spmm(self, mat2):
    """Return the product of two matrices, of which the first is usually sparse. An older name of mm."""
    return t.mm(self, mat2)


# The product of two matrices (or batches of them), each of which can be used transposed.
op(
    "_mm_flags(Tensor self, Tensor mat2, bool transpose_a, bool transpose_b) -> Tensor",
    ms="MatMul",
    forms="f",
    autocast="lower",
    grad={
        "self": lambda g, mat2, transpose_a, transpose_b: (
            _mm_flags(conj(mat2), g, transpose_b, True)
            if transpose_a
            else _mm_flags(g, conj(mat2), False, not transpose_b)
        ),
        "mat2": lambda g, self, transpose_a, transpose_b: (
            _mm_flags(g, conj(self), True, transpose_a)
            if transpose_b
            else _mm_flags(conj(self), g, not transpose_a, False)
        ),
    },
)
op(
    "_bmm_flags(Tensor self, Tensor mat2, bool transpose_a, bool transpose_b) -> Tensor",
    ms="BatchMatMul",
    forms="f",
    autocast="lower",
    grad={
        "self": lambda g, mat2, transpose_a, transpose_b: (
            _bmm_flags(conj(mat2), g, transpose_b, True)
            if transpose_a
            else _bmm_flags(g, conj(mat2), False, not transpose_b)
        ),
        "mat2": lambda g, self, transpose_a, transpose_b: (
            _bmm_flags(g, conj(self), True, transpose_a)
            if transpose_b
            else _bmm_flags(conj(self), g, not transpose_a, False)
        ),
    },
)
_mm_flags, _bmm_flags = t._mm_flags, t._bmm_flags
op(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    ms="BatchMatMulExt",
    forms="fmo",
    autocast="lower",
    grad={
        "self": lambda g, mat2: _bmm_flags(g, conj(mat2), False, True),
        "mat2": lambda g, self: _bmm_flags(conj(self), g, True, False),
    },
    native="gradient",
)
op(
    "mv(Tensor self, Tensor vec) -> Tensor",
    ms="Mv",
    forms="fmo",
    autocast={"accelerator": "lower"},
    grad={"self": lambda g, vec: g.unsqueeze(1) * conj(vec), "vec": lambda g, self: t.mv(adjoint(self), g)},
)
op(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    ms="Dot",
    forms="fmo",
    autocast={"accelerator": "widest"},
    grad={"self": lambda g, tensor: g * conj(tensor), "tensor": lambda g, self: g * conj(self)},
)
op(
    "vdot(Tensor self, Tensor other) -> Tensor",
    ms="Vdot",
    forms="fmo",
    autocast={"accelerator": "widest"},
    grad={"self": lambda g, other: conj(g) * other, "other": lambda g, self: g * self},
)


# ---- beta * input + alpha * product; with beta 0 the input is not read (it may hold anything)
def _zeros_or_scaled(g, beta):
    return t.zeros_like(g) if beta == 0 else _times(g, beta)


def _scaled_first(factors):
    """The deprecated signatures, in which the numbers stand before the tensors that they scale."""
    return tuple(
        f"{head} {factors}" for head in ("beta self", "beta self alpha", "self beta", "self beta alpha")
    )


_ADD = {"self": lambda g, beta: _zeros_or_scaled(g, beta)}
op(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    older=_scaled_first("mat1 mat2"),
    limits={"beta": "compute", "alpha": "compute"},
    ms="Addmm",
    forms="fmio",
    autocast="lower",
    grad={
        **_ADD,
        "mat1": lambda g, mat2, alpha: _times(_mm_flags(g, conj(mat2), False, True), alpha),
        "mat2": lambda g, mat1, alpha: _times(_mm_flags(conj(mat1), g, True, False), alpha),
    },
)
op(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    older=_scaled_first("mat vec"),
    limits={"beta": "element", "alpha": "element"},
    ms="Addmv",
    forms="fmino",
    autocast={"accelerator": "lower"},
    grad={
        **_ADD,
        "mat": lambda g, vec, alpha: _times(g.unsqueeze(1) * conj(vec), alpha),
        "vec": lambda g, mat, alpha: _times(t.mv(adjoint(mat), g), alpha),
    },
)
op(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    older=_scaled_first("batch1 batch2"),
    limits={"beta": "compute", "alpha": "compute"},
    ms="Baddbmm",
    forms="fmio",
    autocast="lower",
    grad={
        **_ADD,
        "batch1": lambda g, batch2, alpha: _times(_bmm_flags(g, conj(batch2), False, True), alpha),
        "batch2": lambda g, batch1, alpha: _times(_bmm_flags(conj(batch1), g, True, False), alpha),
    },
)


op(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    older=_scaled_first("batch1 batch2"),
    limits={"beta": "compute", "alpha": "compute"},
    ms="Addbmm",
    forms="fmo",
    autocast="lower",
    grad={
        **_ADD,
        "batch1": lambda g, batch2, alpha: _times(
            _bmm_flags(g.unsqueeze(0), conj(batch2), False, True), alpha
        ),
        "batch2": lambda g, batch1, alpha: _times(
            _bmm_flags(conj(batch1), g.unsqueeze(0), True, False), alpha
        ),
    },
)


@composite(
    "Tensor.addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    older=_scaled_first("batch1 batch2"),
    forms="i",
    short=False,
)
def addbmm_(self, batch1, batch2, *, beta, alpha):
    """Do addbmm in place.

    It is PyTorch's only in-place operator that may enlarge its tensor to the result's shape.
    """
    result = t.addbmm(self, batch1, batch2, beta=beta, alpha=alpha)
    if self.shape != result.shape:
        self.resize_(result.shape)
    return result


@composite("outer(Tensor self, Tensor vec2) -> Tensor", out_dtype="cast", forms="fmo", aliases=("ger",))
def outer(self, vec2):
    """Return the products of all pairs of elements of two vectors."""
    for name, v in (("self", self), ("vec2", vec2)):
        if v.dim() != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {v.dim()}-D")
    return self.unsqueeze(1) * vec2


@op(
    "_addr_16(Tensor start, Tensor vec1, Tensor vec2, Scalar beta, Scalar alpha) -> Tensor",
    forms="f",
    grad={
        "start": lambda g, beta: g * beta,
        "vec1": lambda g, vec2, alpha: t.mv(g, vec2) * alpha,
        "vec2": lambda g, vec1, alpha: t.mv(g.t(), vec1) * alpha,
    },
)
def _addr_16(start, vec1, vec2, beta, alpha):
    """addr of 16-bit tensors. The factors and every step are rounded to 16 bits, as in PyTorch."""
    alpha, beta = (t.scalar_tensor(x, dtype=vec1.dtype) for x in (alpha, beta))
    product = (vec1 * alpha).unsqueeze(1) * vec2.unsqueeze(0)
    return product if not bool(beta) else start * beta + product


@op(
    "_addr(Tensor start, Tensor vec1, Tensor vec2, Scalar alpha) -> Tensor",
    node="AddrBackward0",
    forms="f",
    grad={
        "start": lambda g: g,
        "vec1": lambda g, vec2, alpha: _times(t.mv(g, vec2), alpha),
        "vec2": lambda g, vec1, alpha: _times(t.mv(g.t(), vec1), alpha),
    },
)
def _addr(start, vec1, vec2, alpha):
    """start + alpha * outer(vec1, vec2) in one pass."""
    return t.addcmul(start, vec1.unsqueeze(1), vec2.unsqueeze(0), value=alpha)


def _times(x, factor):
    return x if factor == 1 else x * factor


def _check_factor(name, factor, dtype):
    """Raise PyTorch's error for a factor whose kind does not fit the dtype of the result."""
    real = dtype.is_floating_point or dtype.is_complex
    if isinstance(factor, bool) and dtype.storage_name != "BoolStorage":
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if not real and isinstance(factor, (float, complex)):
        raise RuntimeError(
            f"For integral input tensors, argument {name} must not be a floating point number."
        )
    t._fill_scalar(
        raw_empty((), None, dtype), factor
    )  # RuntimeError for a number beyond the range of the dtype


@composite(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    out_dtype="cast",
    older=_scaled_first("vec1 vec2"),
    forms="fmio",
    autocast={"accelerator": "lower"},
)
def addr(self, vec1, vec2, *, beta, alpha):
    """Return beta * self + alpha * outer(vec1, vec2)."""
    if vec1.dim() != 1 or vec2.dim() != 1:
        raise RuntimeError(
            f"addr: Expected 1-D argument vec{1 if vec1.dim() != 1 else 2}, but got "
            f"{(vec1 if vec1.dim() != 1 else vec2).dim()}-D"
        )
    result = _C.promote_types(_C.promote_types(vec1.dtype, vec2.dtype), self.dtype)
    for name, factor in (("beta", beta), ("alpha", alpha)):
        _check_factor(name, factor, result)
    size = (vec1.shape[0], vec2.shape[0])
    start = self.expand(size)
    if self.dtype.is_floating_point and self.dtype.itemsize == 2 and self.dtype is vec1.dtype is vec2.dtype:
        return t._addr_16(start, vec1, vec2, beta, alpha)
    if self.dtype.is_floating_point and beta == 1 and self.dtype is vec1.dtype is vec2.dtype:
        return t._addr(start, vec1, vec2, alpha)
    product = t.outer(vec1, vec2)
    if product.dtype.storage_name == "BoolStorage" and self.dtype == product.dtype:
        product = product if alpha else t.zeros_like(product)
        return t.logical_or(start, product) if beta else product
    if alpha != 1:
        product = product * alpha
    if beta == 0:
        return product.to(_C.promote_types(self.dtype, product.dtype))
    return (start if beta == 1 else start * beta) + product


# ---- matmul: any ranks
def _rows(x):
    """Merge all dims but the last. The size is computed, because -1 is ambiguous if the last dim is empty."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def _matmul_grad(g, self, other, needs):
    if self.dim() == 1 and other.dim() == 1:
        return (g * conj(other) if needs[0] else None), (g * conj(self) if needs[1] else None)
    a = self.unsqueeze(0) if self.dim() == 1 else self
    b = other.unsqueeze(1) if other.dim() == 1 else other
    if self.dim() == 1:
        g = g.unsqueeze(-2)
    if other.dim() == 1:
        g = g.unsqueeze(-1)
    grad_a = grad_b = None
    if b.dim() > 2 and math.prod(b.shape[:-2]) == 1 and a.dim() > 2:
        # a single matrix is used for all of a, so it is treated as 2-dimensional, as in PyTorch
        b = b.reshape(b.shape[-2:])
    if needs[0]:
        if a.dim() == 2 and b.dim() > 2:  # one product over the columns of all batches
            columns = [_rows(x.mT) for x in (g, conj(b))]
            grad_a = _mm_flags(*columns, True, False)
        else:
            grad_a = _product(g, conj(b), False, True)
        if self.dim() == 1:
            grad_a = grad_a.squeeze(-2)
    if needs[1]:
        # one product over the rows of all batches, instead of a sum of products
        if b.dim() == 2 and a.dim() > 2:
            grad_b = _mm_flags(_rows(conj(a)), _rows(g), True, False)
        else:
            grad_b = _product(conj(a), g, True, False)
        if other.dim() == 1:
            grad_b = grad_b.squeeze(-1)
        elif b.dim() != other.dim():
            grad_b = grad_b.reshape(other.shape)
    return grad_a, grad_b


def _product(a, b, transpose_a, transpose_b):
    return (_mm_flags if a.dim() == 2 and b.dim() == 2 else _bmm_flags)(a, b, transpose_a, transpose_b)


op(
    "matmul(Tensor self, Tensor other) -> Tensor",
    ms="MatMulExt",
    forms="fmo",
    autocast="lower",
    aliases=("linalg.matmul",),
    dunder="__matmul__",
    grad={("self", "other"): _matmul_grad},
    float8="tensors",
    node="UnsafeViewBackward0",
    nodes={
        "self 1d, other 1d": "DotBackward0",
        "self 2d, other 1d": "MvBackward0",
        "self 1d, other 2d": "SqueezeBackward4",
        "self 2d, other 2d": "MmBackward0",
    },
)


@composite("Tensor.__rmatmul__(Tensor self, Tensor other) -> Tensor", forms="m")
def rmatmul(self, other):
    """Return other @ self."""
    return t.matmul(other, self)


# ---- linear
def _linear_weight_grad(g, input, weight):
    x = _rows(input) if input.dim() != 2 else input
    if weight.dim() == 1:
        return t.mv(adjoint(x), g.reshape(-1))
    return _mm_flags(_rows(g) if g.dim() != 2 else g, conj(x), True, False)


op(
    "nn.functional.linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    ms="Dense",
    forms="fo",
    autocast="lower",
    grad={
        "input": lambda g, weight: (
            t.matmul(g, conj(weight)) if weight.dim() == 2 else g.unsqueeze(-1) * conj(weight)
        ),
        "weight": _linear_weight_grad,
        "bias": lambda g: g,
    },
    native="gradient",
    node="UnsafeViewBackward0",
    nodes={
        "input 1d, weight 1d": "DotBackward0",
        "input 2d, weight 1d": "MvBackward0",
        "input 2d, bias given": "AddmmBackward0",
        "input 2d": "MmBackward0",
        "bias given": "ViewBackward0",
        "input 1d": "SqueezeBackward4",
    },
)


_BILINEAR_BLOCKS = 16  # so many parts of the product are computed at most: each is a few calls of kernels
_BILINEAR_BLOCK = 2**17  # values of an intermediate result that are kept in any case


def _bilinear_product(x1, x2, weight):
    """Return y[r, o] = x1[r] @ weight[o] @ x2[r].

    The product of ``x1`` and ``weight`` has a matrix for each row. Autograd needs all of them. Without it, they are
    computed for some rows after the other, so that they do not need many times the memory of the result.
    """
    outs, n1, n2 = weight.shape
    flat = weight.permute(1, 0, 2).reshape(n1, outs * n2)

    def product(x1, x2):
        return t.bmm(t.matmul(x1, flat).reshape(-1, outs, n2), x2.unsqueeze(2)).squeeze(2)

    rows = x1.shape[0]
    block = max(_BILINEAR_BLOCK // max(1, outs * n2), -(-rows // _BILINEAR_BLOCKS), 1)
    if block >= rows or needs_graph(x1, x2, weight):
        return product(x1, x2)
    return t.cat([product(x1[k : k + block], x2[k : k + block]) for k in range(0, rows, block)])


def _added(parts):
    total = None
    for part in parts:
        total = part if total is None else total + part
    return total


# Gradients of 16-bit tensors must be rounded as in PyTorch. They are therefore computed for one output
# feature after the other, and the product of two factors is rounded first.
@op(
    "_bilinear(Tensor x1, Tensor x2, Tensor weight) -> Tensor",
    forms="f",
    grad={
        "x1": lambda g, x2, weight: _added(
            t.bmm(g[:, k, None, None] * weight[k], x2.unsqueeze(2)).squeeze(2) for k in range(weight.shape[0])
        ),
        "x2": lambda g, x1, weight: _added(
            t.mm(x1, weight[k]) * g[:, k, None] for k in range(weight.shape[0])
        ),
        "weight": lambda g, x1, x2: t.stack([t.mm((x1 * g[:, k, None]).t(), x2) for k in range(g.shape[1])]),
    },
)
def _bilinear(x1, x2, weight):
    return _bilinear_product(x1, x2, weight)


@composite(
    "nn.functional.bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    forms="f",
    aliases=("bilinear",),
    autocast={"cpu": "as given", "accelerator": "widest"},
)
def bilinear(input1, input2, weight, bias):
    """Return y[..., o] = input1 @ weight[o] @ input2 + bias[o]."""
    given = {"input1": input1, "input2": input2, "weight": weight}
    given |= {} if bias is None else {"bias": bias}
    if any(x.dtype is not input1.dtype for x in given.values()):
        got = ", ".join(f"{name}: {cpp_name(x.dtype)}" for name, x in given.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {got}")
    for i, x in ((1, input1), (2, input2)):
        if x.shape[-1] != weight.shape[i]:
            raise RuntimeError(
                f"bilinear(): input{i} size does not match weight size: got {x.shape[-1]} but expected {weight.shape[i]}"
            )
    lead = input1.shape[:-1]
    outs, n1, n2 = weight.shape
    x1, x2 = _rows(input1), _rows(input2)
    if input1.dtype.itemsize == 2 and input1.dtype == input2.dtype == weight.dtype:
        y = t._bilinear(x1, x2, weight)
    else:
        y = _bilinear_product(x1, x2, weight)
    y = y.reshape(*lead, outs)
    return y if bias is None else y + bias


# ---- inner products of any rank
@composite("inner(Tensor self, Tensor other) -> Tensor", forms="fmo", copied_to_out=True)
def inner(self, other):
    """Return sums of products over the last dim of both tensors."""
    if self.dim() == 0 or other.dim() == 0:
        return self * other
    if self.shape[-1] != other.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(self.shape)} and {list(other.shape)}"
        )
    return t.tensordot(self, other, ([-1], [-1]))


@composite(
    "tensordot(Tensor a, Tensor b, any dims=2) -> Tensor",
    forms="fo",
    autocast={"cpu": "as given", "accelerator": "widest"},
    copied_to_out=True,
)
def tensordot(a, b, dims):
    """Contract dims of a with dims of b.

    ``dims`` is an int n (the last n of a, the first n of b) or a pair of lists.
    """
    if a.dtype is not b.dtype:
        raise RuntimeError("both inputs should have same dtype")
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    else:
        dims = dims.tolist() if hasattr(dims, "tolist") else dims
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    if len(dims_a) != len(dims_b):
        raise RuntimeError("both dimension lists should have same length")
    for da, db in zip(dims_a, dims_b, strict=True):
        if a.shape[da] != b.shape[db] and 1 not in (a.shape[da], b.shape[db]):
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {a.shape[da]} in dim {da} and second "
                f"has size {b.shape[db]} in dim {db}"
            )
    # a dim of size 1 is broadcast, so the other operand can be summed over its dim first
    for da, db in zip(dims_a, dims_b, strict=True):
        if a.shape[da] == 1 and b.shape[db] != 1:
            b = b.sum(db, keepdim=True, dtype=b.dtype)
        elif b.shape[db] == 1 and a.shape[da] != 1:
            a = a.sum(da, keepdim=True, dtype=a.dtype)
    dims_a, dims_b = [d % a.dim() for d in dims_a], [d % b.dim() for d in dims_b]
    free_a = [d for d in range(a.dim()) if d not in dims_a]
    free_b = [d for d in range(b.dim()) if d not in dims_b]
    inner_size = math.prod(a.shape[d] for d in dims_a)
    shape = [a.shape[d] for d in free_a] + [b.shape[d] for d in free_b]
    left = a.permute([*free_a, *dims_a]).reshape(math.prod(shape[: len(free_a)]), inner_size)
    right = b.permute([*dims_b, *free_b]).reshape(inner_size, math.prod(shape[len(free_a) :]))
    return t.mm(left, right).reshape(shape)


# ---- chains
def _chain_order(sizes):
    """Return for every sub-chain where to split it for the fewest multiplications.

    Matrix i has the shape (sizes[i], sizes[i + 1]).
    """
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i][j], split[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def _chain(matrices):
    split = _chain_order([m.shape[0] for m in matrices] + [matrices[-1].shape[1]])

    def product(i, j):
        return matrices[i] if i == j else t.mm(product(i, split[i][j]), product(split[i][j] + 1, j))

    return product(0, len(matrices) - 1)


@composite(
    "linalg.multi_dot(Tensor[] tensors) -> Tensor",
    forms="fo",
    autocast={"accelerator": "lower"},
)
def multi_dot(tensors):
    """Multiply a chain of matrices in the cheapest order. The first and the last may be vectors."""
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    matrices = list(tensors)
    for i in (0, -1):
        if not 1 <= matrices[i].dim() <= 2:
            raise RuntimeError(
                f"multi_dot(): the {'first' if i == 0 else 'last'} tensor must be 1D or 2D but got {matrices[i].dim()}D"
            )
    for i, m in enumerate(matrices[1:-1], 1):
        if m.dim() != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {m.dim()}D")
    shape = ([] if matrices[0].dim() == 1 else [matrices[0].shape[0]]) + (
        [] if matrices[-1].dim() == 1 else [matrices[-1].shape[1]]
    )
    if matrices[0].dim() == 1:
        matrices[0] = matrices[0].unsqueeze(0)
    if matrices[-1].dim() == 1:
        matrices[-1] = matrices[-1].unsqueeze(1)
    for i, (a, b) in enumerate(zip(matrices, matrices[1:], strict=False)):
        if a.dtype != b.dtype:
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {a.dtype} and tensor {i + 1} {b.dtype}"
            )
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied"
            )
    return _chain(matrices).reshape(shape)


def chain_matmul(*matrices, out=None):
    """Multiply 2-dimensional matrices in the cheapest order. Deprecated: use linalg.multi_dot."""
    warn_once(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot "
        "instead, which takes a list."
    )
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    if len(matrices) == 1:
        return t.clone(matrices[0]) if out is None else out.resize_(matrices[0].shape).copy_(matrices[0])
    return t.linalg_multi_dot(list(matrices)) if out is None else t.linalg_multi_dot(list(matrices), out=out)


namespaces["torch"]["chain_matmul"] = chain_matmul
