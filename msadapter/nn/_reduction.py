"""The ``reduction`` argument of losses, and the older ``size_average`` and ``reduce`` arguments."""

import warnings

_CODES = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction):
    """Return the number of a reduction: none 0, mean 1, sum 2. Any other name raises ValueError."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2
        )
    if reduction not in _CODES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _CODES[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True):
    """Translate the deprecated arguments ``size_average`` and ``reduce`` into the name of a reduction."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    name = ("mean" if size_average else "sum") if reduce else "none"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{name}' instead.",
            stacklevel=2,
        )
    return name


def legacy_get_enum(size_average, reduce, emit_warning=True):
    """Return the number of the reduction that :func:`legacy_get_string` names."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
