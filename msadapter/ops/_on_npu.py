"""Bodies for tensors of an NPU, of operators that MindSpore does not have there (``npu=`` in a declaration).

They consist of operators that it has there. A body returns NotImplemented for a call that it does not take. The host then
computes the call, or raises PyTorch's error for it.
"""

from __future__ import annotations

import math

from .._values.dtype import ALL
from ._declare import raw, t

_BITS = {2: "int16", 4: "int32", 8: "int64"}  # bytes of a floating point number -> the integer of this size


def _is_number(x) -> bool:
    return isinstance(x, (bool, int, float))


def _is_integer(x) -> bool:
    return not x.is_floating_point() and x.dtype is not ALL["bool"]


def _in_float32(function):
    """Wrap a body, so that 16-bit numbers are computed in float32 and rounded once. Others are left to the host."""

    def body(self, *args, **kwargs):
        if not self.is_floating_point() or self.dtype.itemsize > 4:
            return NotImplemented
        if self.dtype.itemsize != 2:
            return function(self, *args, **kwargs)
        wide = [x.float() if hasattr(x, "is_floating_point") else x for x in args]
        found = function(self.float(), *wide, **kwargs)
        return found if found is NotImplemented else found.to(self.dtype)

    return body


# ---- signs and predicates
def _is_nan(x):
    return x != x


def isnan(self):
    return _is_nan(self) if self.is_floating_point() else t.zeros_like(self, dtype=ALL["bool"])


def isposinf(self):
    return self == math.inf if self.is_floating_point() else t.zeros_like(self, dtype=ALL["bool"])


def signbit(self):
    """The sign is the highest bit, also that of zero and of NaN."""
    if self.dtype is ALL["bool"]:
        return t.zeros_like(self)
    if not self.is_floating_point():
        return self < 0
    return self.contiguous().view(ALL[_BITS[self.dtype.itemsize]]) < 0


def sgn(self):
    takes = self.is_floating_point() or self.dtype in (ALL["int16"], ALL["int32"], ALL["int64"])
    return t.sign(self) if takes else NotImplemented


def copysign(self, other):
    if _is_number(self):
        return NotImplemented
    size = self.abs()
    if _is_number(other):
        return -size if math.copysign(1.0, other) < 0 else size
    return t.where(signbit(other), -size, size)


def angle(self):
    if not self.is_floating_point():
        return NotImplemented
    return t.where(_is_nan(self), self, (self < 0).to(self.dtype) * math.pi)


def heaviside(self, values):
    if self.dtype != values.dtype:
        return NotImplemented
    return t.where(self == 0, values, (self > 0).to(self.dtype))


# ---- pairs of numbers
def fmax(self, other):
    return _without_nan(t.maximum, self, other)


def fmin(self, other):
    return _without_nan(t.minimum, self, other)


def _without_nan(extreme, a, b):
    found = extreme(a, b)
    if not a.is_floating_point():
        return found
    return t.where(_is_nan(a), b, t.where(_is_nan(b), a, found))


@_in_float32
def hypot(self, other):
    a, b = self.abs(), other.abs()
    large, small = t.maximum(a, b), t.minimum(a, b)
    ratio = small / t.where(large == 0, 1.0, large)
    return t.where((a == math.inf) | (b == math.inf), math.inf, large * (1 + ratio * ratio).sqrt())


def lcm(self, other):
    if not _is_integer(self):
        return NotImplemented
    common = t.gcd(self, other)
    none = common == 0
    wide = (
        ALL["int32"] if self.dtype.itemsize < 4 else self.dtype
    )  # PyTorch rounds to the small type at the end
    product = (t.floor_divide(self, t.where(none, 1, common)).to(wide) * other.to(wide)).abs()
    return t.where(none, 0, product).to(self.dtype)


def bitwise_right_shift(self, other):
    """Divide by a power of two and round down. The power is split, because 2**63 does not fit into 64 bits."""
    if _is_number(self) or not _is_integer(self):
        return NotImplemented
    bits = self.dtype.itemsize * 8 - (self.dtype is not ALL["uint8"])
    shift = t.full_like(self, other, dtype=ALL["int64"]) if _is_number(other) else other.long()
    shift = t.where((shift < 0) | (shift > bits), bits, shift)
    first = t.floor_divide(shift, 2)
    found = self.long()
    for part in (first, shift - first):
        found = t.floor_divide(found, t.bitwise_left_shift(t.ones_like(part), part))
    return found.to(self.dtype)


def nextafter(self, other):
    """Numbers of one sign are ordered as their bits are."""
    if self.dtype.itemsize < 4 or not self.is_floating_point():
        return NotImplemented
    integer = ALL[_BITS[self.dtype.itemsize]]
    x, y = (part.contiguous() for part in t.broadcast_tensors(self, other))
    moved = (x.view(integer) + t.where((y > x) == (x > 0), 1, -1).to(integer)).view(self.dtype)
    smallest = t.ones_like(x, dtype=integer).view(self.dtype)
    moved = t.where(x == 0, t.where(y > 0, smallest, -smallest), moved)
    return t.where(_is_nan(x) | _is_nan(y), x + y, t.where(x == y, y, moved))


def xlog1py(self, other):
    if _is_number(other):
        return NotImplemented if other <= -1 else t.where(self == 0, 0, self * math.log1p(other))
    product = self * t.log1p(other)
    if _is_number(self):
        return t.where(_is_nan(other), other, 0) if self == 0 else product
    return t.where((self == 0) & ~_is_nan(other), 0, product)


# ---- functions of one number
@_in_float32
def entr(self):
    nothing = t.where(self == 0, 0.0, t.where(_is_nan(self), self, -math.inf))
    return t.where(self > 0, -self * self.log(), nothing)


@_in_float32
def ndtr(self):
    return t.erfc(self * -math.sqrt(0.5)) * 0.5


def logit(self, eps):
    if not self.is_floating_point():
        return NotImplemented
    x = self if eps is None else self.clamp(eps, 1 - eps)
    return (x / (1 - x)).log()


@_in_float32
def logit_backward(grad, self, eps):
    slope = grad / (self * (1 - self))
    low = 0.0 if eps is None else eps
    return t.where((self < low) | (self > 1 - low), math.nan if eps is None else 0.0, slope)


@_in_float32
def scaled_elu(self, alpha, scale, input_scale):
    return t.where(self > 0, self * scale, t.expm1(self * input_scale) * (alpha * scale))


@_in_float32
def scaled_elu_backward(grad, x, alpha, is_result, scale, input_scale):
    bend = alpha * scale
    below = x + bend if is_result else t.exp(x * input_scale) * bend
    return grad * t.where(x > 0, scale, below * input_scale)


# ---- along a dim
def _scan(x, dim: int, combine):
    """Combine each element with all that come before it along a dim, over twice the distance in each step."""
    size, reach = x.shape[dim], 1
    while reach < size:
        joined = combine(x.narrow(dim, reach, size - reach), x.narrow(dim, 0, size - reach))
        x = t.cat([x.narrow(dim, 0, reach), joined], dim)
        reach *= 2
    return x


def _has_dim(self, dim: int) -> bool:
    return self.numel() > 0 and -self.ndim <= dim < self.ndim


def cumprod(self, dim, *, dtype):
    if not _has_dim(self, dim):
        return NotImplemented
    dtype = dtype or (self.dtype if self.is_floating_point() else ALL["int64"])
    wide = ALL["float32"] if dtype.is_floating_point and dtype.itemsize == 2 else dtype
    return _scan(self.to(wide), dim, lambda a, b: a * b).to(dtype)


def _logaddexp(a, b):
    large = t.maximum(a, b)
    return t.where(t.isinf(large), large, large + t.log1p(t.exp(-(a - b).abs())))


@_in_float32
def logcumsumexp(self, dim):
    return _scan(self, dim, _logaddexp) if _has_dim(self, dim) else NotImplemented


def _takes_sort(self) -> bool:
    kinds = ("float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8")
    return self.numel() > 0 and self.dtype in [ALL[kind] for kind in kinds]


def mode(self, dim, keepdim):
    """Sort, and take the end of the first of the longest runs of equal numbers."""
    if not (_takes_sort(self) and _has_dim(self, dim)):
        return NotImplemented
    ordered, order = t.sort(self.movedim(dim, -1), stable=True, dim=-1)
    size = ordered.shape[-1]
    place = t.arange(size, device=self.device).expand(ordered.shape)
    begins = ordered.narrow(-1, 1, size - 1) != ordered.narrow(-1, 0, size - 1)
    begins = t.cat([t.ones_like(ordered.narrow(-1, 0, 1), dtype=ALL["bool"]), begins], -1)
    start = t.cummax(t.where(begins, place, 0), -1)[0]
    best = t.argmax(place - start, -1, True)
    found = (t.gather(x, -1, best).movedim(-1, dim) for x in (ordered, order))
    return tuple(x if keepdim else x.squeeze(dim) for x in found)


def _lower_middle(ordered):
    """The position of the lower middle of the numbers along the last dim, where NaN stand at the end."""
    count = (ordered == ordered).sum(-1, True)
    return t.floor_divide(count - 1, 2).clamp(min=0)


def nanmedian_all(self):
    if not self.is_floating_point():
        return t._median_all(self)
    if not self.numel():
        return NotImplemented
    ordered = t.sort(self.flatten(), dim=-1)[0]
    return t.gather(ordered, -1, _lower_middle(ordered)).view(())


def nanmedian_dim(self, dim, keepdim):
    if not (_takes_sort(self) and _has_dim(self, dim)):
        return NotImplemented
    if not self.is_floating_point():
        return t._median_dim(self, dim, keepdim)
    ordered, order = t.sort(self.movedim(dim, -1), stable=True, dim=-1)
    middle = _lower_middle(ordered)
    found = (t.gather(x, -1, middle).movedim(-1, dim) for x in (ordered, order))
    return tuple(x if keepdim else x.squeeze(dim) for x in found)


def isin(elements, test_elements, invert):
    if not (_takes_sort(elements) and test_elements.numel()):
        return NotImplemented
    values, tested = elements.flatten(), test_elements.flatten()
    if values.is_floating_point() and values.dtype.itemsize == 2:
        values, tested = values.float(), tested.float()
    ordered = t.sort(tested, dim=-1)[0]
    place = t.searchsorted(ordered, values).clamp(max=tested.numel() - 1)
    found = (t.index_select(ordered, 0, place) == values).view(elements.shape)
    return ~found if invert else found


# ---- by index
def index_copy(self, dim, index, source):
    if not (_has_dim(self, dim) and self.dtype == source.dtype and index.ndim == 1):
        return NotImplemented
    wanted = list(self.shape)
    wanted[dim] = index.numel()
    if list(source.shape) != wanted or index.dtype is not ALL["int64"]:
        return NotImplemented
    return raw.InplaceIndexCopy(raw.Clone(self), dim, index, source)


def put(self, index, source, accumulate):
    size = self.numel()
    fits = size and index.dtype is ALL["int64"] and index.numel() == source.numel() > 0
    if not fits or self.dtype != source.dtype:
        return NotImplemented
    place = t.where(index < 0, index + size, index).flatten()
    write = t.scatter_add if accumulate else t._scatter
    return write(self.flatten(), 0, place, source.flatten()).view(self.shape)


def _takes_scatter(self, dim, index, src) -> bool:
    if not (_has_dim(self, dim) and self.ndim == index.ndim == src.ndim and index.numel()):
        return False
    dim %= self.ndim
    inside = all(n <= m for d, (n, m) in enumerate(zip(index.shape, self.shape, strict=True)) if d != dim)
    return inside and index.shape == src.shape and index.dtype is ALL["int64"] and self.dtype == src.dtype


def scatter_reduce(self, dim, index, src, reduce, *, include_self):
    """Sums and means. The other ways to reduce are left to the host."""
    if reduce not in ("sum", "mean") or not _takes_scatter(self, dim, index, src):
        return NotImplemented
    if self.dtype is ALL["bool"]:
        return NotImplemented
    wide = ALL["float32"] if self.is_floating_point() and self.dtype.itemsize == 2 else self.dtype

    def summed(base, values):
        return t.scatter_add(
            base if include_self else t._scatter_value(base, dim, index, 0), dim, index, values
        )

    total = summed(self.to(wide), src.to(wide))
    if reduce == "mean":
        count = summed(t.ones_like(total), t.ones_like(src, dtype=wide)).clamp(min=1)
        total = total / count if total.is_floating_point() else t.floor_divide(total, count)
    return total.to(self.dtype)


def index_reduce(self, dim, index, source, reduce, *, include_self):
    """Means, as those of scatter_reduce. The other ways to reduce are left to the host."""
    if reduce != "mean" or not _has_dim(self, dim) or index.ndim != 1 or source.ndim != self.ndim:
        return NotImplemented
    if source.shape[dim] != index.numel():
        return NotImplemented
    place = index.view([-1 if d == dim % self.ndim else 1 for d in range(self.ndim)]).expand(source.shape)
    return scatter_reduce(self, dim, place.contiguous(), source, reduce, include_self=include_self)


# ---- linear algebra
def solve_triangular(A, B, *, upper, left, unitriangular):
    """A system from the right, X A = B, is solved as A^T X^T = B^T."""
    square = A.ndim >= 2 and A.shape[-1] == A.shape[-2] and A.shape[:-2] == B.shape[:-2] and A.ndim == B.ndim
    if not square or A.dtype != B.dtype or not A.numel() or not B.numel():
        return NotImplemented
    if B.shape[-2 if left else -1] != A.shape[-1]:
        return NotImplemented
    if left:
        return raw.TriangularSolve(B, A, upper, False, unitriangular)[0]
    return raw.TriangularSolve(B.mT.contiguous(), A, upper, True, unitriangular)[0].mT


def embedding_renorm(self, indices, max_norm, norm_type):
    """Scale down, in place, the rows at `indices` that are longer than `max_norm`."""
    rows = self.detach()
    touched = t.zeros(rows.shape[0], 1, dtype=ALL["bool"], device=rows.device)
    touched = t.index_fill(touched, 0, indices.flatten(), True)
    norms = t.linalg_vector_norm(rows, norm_type, [1], True)
    rows.mul_(t.where(touched & (norms > max_norm), max_norm / (norms + 1e-7), 1.0))
