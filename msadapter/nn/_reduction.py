"""The ``reduction`` argument of losses, in its present and its old form."""

import warnings

_CODES = {"none": 0, "mean": 1, "elementwise_mean": 1, "sum": 2}


def get_enum(reduction):
    """The number of a reduction: none 0, mean 1, sum 2; ValueError for anything else."""
    if reduction == "elementwise_mean":
        warnings.warn(
            "reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2
        )
    if reduction not in _CODES:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return _CODES[reduction]


def legacy_get_string(size_average, reduce, emit_warning=True):
    """The reduction that the old pair ``size_average``, ``reduce`` means."""
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
    """Number of :func:`legacy_get_string`."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
