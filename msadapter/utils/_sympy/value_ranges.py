"""torch.utils._sympy.value_ranges: bounds of symbolic shapes."""

from ..._symbolic import _Symbolic


class ValueRanges(_Symbolic):
    """Class of the bounds of a symbolic number; has no instances."""
