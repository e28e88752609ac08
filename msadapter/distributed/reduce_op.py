"""The reduction operations."""

from enum import IntEnum


class _RedOpType(IntEnum):
    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8
    UNUSED = 9


class ReduceOp:
    """A reduction: ReduceOp.SUM and the others; PREMUL_SUM carries a factor (see _make_nccl_premul_sum)."""

    RedOpType = _RedOpType

    def __init__(self, op=_RedOpType.SUM, factor=None):
        self.op = _RedOpType(getattr(op, "op", op))
        self.factor = factor

    @property
    def name(self) -> str:
        """The name, such as "SUM"."""
        return self.op.name

    @property
    def value(self) -> int:
        """The number of the kind."""
        return int(self.op)

    def __eq__(self, other):
        return (
            int(self.op) == int(getattr(other, "op", other)) if isinstance(other, (ReduceOp, int)) else False
        )

    def __hash__(self):
        return hash(self.op)

    def __int__(self):
        return int(self.op)

    def __repr__(self):
        return f"<RedOpType.{self.op.name}: {int(self.op)}>"

    def __reduce__(self):
        return ReduceOp, (int(self.op), self.factor)


for _kind in _RedOpType:
    setattr(ReduceOp, _kind.name, ReduceOp(_kind))


def _make_nccl_premul_sum(factor) -> ReduceOp:
    """A sum of values that are first multiplied by `factor` (a number or a tensor)."""
    return ReduceOp(_RedOpType.PREMUL_SUM, factor)


def supports_complex(reduceOp: ReduceOp) -> bool:  # noqa: N803  PyTorch's name
    """Whether a reduction is defined for complex numbers, which have no order and no bits."""
    return reduceOp not in (
        ReduceOp.MAX,
        ReduceOp.MIN,
        ReduceOp.PRODUCT,
        ReduceOp.BAND,
        ReduceOp.BOR,
        ReduceOp.BXOR,
    )


class reduce_op:
    """The deprecated name for the values of ReduceOp."""

    SUM, PRODUCT, MIN, MAX = ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX
