"""Operations of interpreted kernels on blocks: what triton.language has beside memory, loops and the places of programs.

Like Triton's, they take numbers in the place of blocks, and keep the type of the elements where nothing else is said.
"""

import builtins
import enum

from .. import Tensor as _Tensor
from .. import broadcast_to as _broadcast_to
from .. import clamp as _clamp
from .. import cumsum as _cumsum
from .. import fmax as _fmax
from .. import fmin as _fmin
from .. import full as _full
from .. import matmul as _matmul
from .. import maximum as _maximum
from .. import minimum as _minimum
from .. import sum as _sum
from .. import where as _where
from .._errors import unsupported
from .._values.dtype import ALL
from .block import Block, plain, tensor


def cdiv(x, y):
    """x / y, rounded up."""
    return (x + (y - 1)) // y


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << builtins.max(int(n) - 1, 0).bit_length()


def where(condition, x, y) -> Block:
    """x where the condition holds, and y elsewhere."""
    return Block(_where(tensor(condition), plain(x), plain(y)))


class PropagateNan(enum.Enum):
    """Whether a comparison with a NaN gives the NaN (ALL) or the other operand (NONE)."""

    NONE = 0
    ALL = 0xFFFF


def minimum(x, y, propagate_nan=PropagateNan.NONE) -> Block:
    """The smaller one of each pair. Of a NaN and a number it is the number, unless propagate_nan says otherwise."""
    smaller = _minimum if propagate_nan is PropagateNan.ALL else _fmin
    return Block(smaller(tensor(x), tensor(y)))


def maximum(x, y, propagate_nan=PropagateNan.NONE) -> Block:
    """The larger one of each pair. Of a NaN and a number it is the number, unless propagate_nan says otherwise."""
    larger = _maximum if propagate_nan is PropagateNan.ALL else _fmax
    return Block(larger(tensor(x), tensor(y)))


def clamp(x, min, max, propagate_nan=PropagateNan.NONE) -> Block:
    """x, but at least min and at most max. In the place of a NaN stands min, unless propagate_nan says that the NaN stays."""
    if propagate_nan is PropagateNan.ALL:
        return Block(_clamp(tensor(x), plain(min), plain(max)))
    return minimum(maximum(x, min), max)


def _pointwise(name: str, what: str):
    def function(x) -> Block:
        return Block(getattr(tensor(x), name)())

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{what} of each element."
    return function


abs = _pointwise("abs", "The absolute value")
ceil = _pointwise("ceil", "The next integer that is not less than it,")
cos = _pointwise("cos", "The cosine")
erf = _pointwise("erf", "The error function")
exp = _pointwise("exp", "The exponential")
exp2 = _pointwise("exp2", "The power of two")
floor = _pointwise("floor", "The next integer that is not greater than it,")
log = _pointwise("log", "The natural logarithm")
log2 = _pointwise("log2", "The logarithm to the base two")
rsqrt = _pointwise("rsqrt", "The reciprocal of the square root")
sigmoid = _pointwise("sigmoid", "The logistic function")
sin = _pointwise("sin", "The sine")
sqrt = _pointwise("sqrt", "The square root")


def dot(
    input: Block,
    other: Block,
    acc=None,
    input_precision=None,
    allow_tf32=None,
    max_num_imprecise_acc=None,
    out_dtype=None,
) -> Block:
    """The product of two matrices, computed and returned in 32 bits, or in `out_dtype`; `acc` is added to it.

    The precisions that a caller allows to be lower than 32 bits are not made use of.
    """
    small = input.dtype is ALL["int8"] or input.dtype is ALL["uint8"]
    kind = ALL["int32" if small else "float32"]
    out = _matmul(input.to(kind)._tensor, other.to(kind)._tensor)
    out = out if acc is None else out + tensor(acc)
    return Block(out if out_dtype is None else out.to(out_dtype))


def cumsum(input: Block, axis: int = 0, reverse: bool = False) -> Block:
    """The sums of the elements up to each, along an axis, or with reverse from each to the end. The type stays."""
    whole = input._tensor.flip(axis) if reverse else input._tensor
    sums = _cumsum(whole, axis).to(input.dtype)
    return Block(sums.flip(axis) if reverse else sums)


def sum(input: Block, axis: int | None = None, keep_dims: bool = False) -> Block:
    """The sum of a block, along an axis or of all elements. Integers of less than 32 bits are added in 32 bits."""
    kind = input.dtype
    small = not kind.is_floating_point and kind.itemsize < 4
    wide = ALL["int32" if kind.is_signed or kind is ALL["bool"] else "uint32"] if small else kind
    return Block(_sum(input._tensor, _axes(input, axis), keepdim=keep_dims).to(wide))


def _extreme(name: str, what: str, outside: float):
    """Return the reduction of Triton that finds the largest or the smallest element. `outside` is beyond every number."""
    find = getattr(_Tensor, f"a{name}")

    def function(
        input: Block,
        axis: int | None = None,
        return_indices=False,
        return_indices_tie_break_left=True,
        keep_dims=False,
    ) -> Block:
        if return_indices:
            raise unsupported(f"triton.language.{name}", "return_indices is not supported")
        elements, axes = input._tensor, _axes(input, axis)
        if not elements.is_floating_point():
            return Block(find(elements, axes, keepdim=keep_dims))
        missing = elements.isnan()
        found = find(elements.masked_fill(missing, outside), axes, keepdim=keep_dims)
        return Block(found.masked_fill(missing.all(axes, keepdim=keep_dims), float("nan")))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The {what} element of a block, along an axis or of all. A NaN is passed over, if there is a number.

    return_indices: not supported. Without it, return_indices_tie_break_left has no meaning.
    """
    return function


max = _extreme("max", "largest", float("-inf"))
min = _extreme("min", "smallest", float("inf"))


def _axes(input: Block, axis: int | None) -> tuple:
    return tuple(range(len(input.shape))) if axis is None else (axis,)


def full(shape, value, dtype) -> Block:
    """A block of one value."""
    if isinstance(value, Block):
        return Block(_broadcast_to(value._tensor.to(dtype), tuple(shape)))
    return Block(_full(tuple(shape), value, dtype=dtype))


def zeros(shape, dtype) -> Block:
    """A block of zeros."""
    return full(shape, 0, dtype)


def zeros_like(input: Block) -> Block:
    """A block of zeros, of the shape and type of another."""
    return zeros(input.shape, input.dtype)


def expand_dims(input: Block, axis) -> Block:
    """As the method of blocks."""
    return input.expand_dims(axis)


def broadcast_to(input, *shape) -> Block:
    """As the method of blocks."""
    return Block(tensor(input)).broadcast_to(*shape)


def reshape(input: Block, *shape, can_reorder: bool = False) -> Block:
    """As the method of blocks. Triton may reorder the elements if it is allowed to, which is not done here."""
    return input.reshape(*shape)


def trans(input: Block) -> Block:
    """As the method of blocks."""
    return input.trans()


def multiple_of(input, values):
    """The input: `values` tells Triton's compiler what divides it."""
    return input


def max_contiguous(input, values):
    """The input: `values` tells Triton's compiler how many elements follow each other."""
    return input
