"""Blocks: the numbers of an interpreted kernel, with the operators and methods that Triton gives them.

A block is a tensor that no instruction changes: `x += y` in a kernel gives x another value, and leaves every other name of the
old one alone. torch's tensors, which change in place, could not stand for it.
"""

import operator

from .. import Tensor, as_tensor
from .._values.dtype import ALL


def tensor(value) -> Tensor:
    """The tensor of a block, or of a number."""
    return value._tensor if isinstance(value, Block) else as_tensor(value)


def number(value: int):
    """A block without dimensions, of 32 bits as Triton's numbers are, or of 64 if it needs more."""
    return Block(as_tensor(value, dtype=ALL["int32" if -(2**31) <= value < 2**31 else "int64"]))


def plain(value):
    """An operand as torch takes it: a number stays one, so that it does not widen a block's type."""
    return value._tensor if isinstance(value, Block) else value


class Block:
    """A tensor with the operators and methods of Triton's blocks."""

    __slots__ = ("_tensor",)

    def __init__(self, value: Tensor):
        self._tensor = value

    @property
    def dtype(self):
        """torch's type of the elements."""
        return self._tensor.dtype

    @property
    def shape(self) -> tuple:
        """The sizes of the dimensions."""
        return tuple(self._tensor.shape)

    @property
    def T(self) -> "Block":  # noqa: N802  (Triton's name)
        """The transposed block."""
        return self.trans()

    def __getitem__(self, places) -> "Block":
        """The block with further dimensions, where `places` has None."""
        return Block(self._tensor[places])

    def __bool__(self) -> bool:
        return bool(self._tensor)

    def __index__(self) -> int:
        return operator.index(self._tensor.item())

    def __int__(self) -> int:
        return int(self._tensor)

    def __float__(self) -> float:
        return float(self._tensor)

    def __repr__(self) -> str:
        return f"Block({self._tensor!r})"

    __hash__ = None  # == compares the elements

    def to(self, dtype, bitcast: bool = False) -> "Block":
        """The elements as another type; with bitcast, their bits read as one of the same size."""
        return Block(self._tensor.view(dtype) if bitcast else self._tensor.to(dtype))

    def expand_dims(self, axis) -> "Block":
        """The block with a dimension of size 1 at each of these places of the result."""
        out = self._tensor
        for place in sorted(axis if isinstance(axis, (tuple, list)) else (axis,)):
            out = out.unsqueeze(place)
        return Block(out)

    def broadcast_to(self, *shape) -> "Block":
        """The block repeated to a shape, given as numbers or as one tuple."""
        return Block(self._tensor.expand(_shape(shape)))

    def reshape(self, *shape) -> "Block":
        """The elements in their order as another shape, given as numbers or as one tuple."""
        return Block(self._tensor.reshape(_shape(shape)))

    def trans(self) -> "Block":
        """The block with its last two dimensions exchanged."""
        return Block(self._tensor.transpose(-2, -1))


def _shape(given: tuple) -> tuple:
    sizes = given[0] if len(given) == 1 and isinstance(given[0], (tuple, list)) else given
    return tuple(map(operator.index, sizes))


def _divided(x, y):
    """The quotient of integers, rounded toward zero as a processor divides."""
    return as_tensor(x).div(y, rounding_mode="trunc")


def _rest(x, y):
    """What such a division leaves, with the sign of x."""
    return as_tensor(x).fmod(y)


_OPERATORS = "add sub mul truediv and_ or_ xor lshift rshift"
_BINARY = {
    **{name: getattr(operator, name) for name in _OPERATORS.split()},
    "floordiv": _divided,
    "mod": _rest,
}
_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")


def _unary(function):
    return lambda self: Block(function(self._tensor))


def _binary(function, reflected: bool):
    def method(self, other):
        if not isinstance(other, (Block, int, float)):
            return NotImplemented
        pair = (plain(other), self._tensor) if reflected else (self._tensor, plain(other))
        return Block(function(*pair))

    return method


for _name, _function in _BINARY.items():
    _short = _name.rstrip("_")
    setattr(Block, f"__{_short}__", _binary(_function, False))
    setattr(Block, f"__r{_short}__", _binary(_function, True))
for _name in _COMPARED:
    setattr(Block, f"__{_name}__", _binary(getattr(operator, _name), False))
for _name in ("neg", "invert"):
    setattr(Block, f"__{_name}__", _unary(getattr(operator, _name)))
