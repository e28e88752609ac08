"""torch.utils._sympy.value_ranges: bounds of symbolic shapes."""

from ..._symbolic import _Symbolic


class ValueRanges(_Symbolic):
    """The bounds of a symbolic number. There are no instances."""
