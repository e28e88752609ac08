"""torch.utils._sympy.numbers: infinite integers of symbolic shapes."""

from ..._symbolic import _Symbolic


class IntInfinity(_Symbolic):
    """Class of the bound of an unbounded symbolic integer; has no instances."""
