"""torch.utils._sympy.numbers: infinite integers of symbolic shapes."""

from ..._symbolic import _Symbolic


class IntInfinity(_Symbolic):
    """The bound of an unbounded symbolic integer. There are no instances."""
