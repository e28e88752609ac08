"""torch.layout and torch.memory_format."""

from __future__ import annotations


class layout:
    """How the elements of a tensor are stored, such as torch.strided. There is one object for each layout."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


class memory_format(layout):
    """The order of dims in memory, such as torch.channels_last. There is one object for each format."""


layout.__module__ = memory_format.__module__ = "torch"
LAYOUTS = {
    n: layout(n)
    for n in (
        "strided",
        "sparse_coo",
        "sparse_csr",
        "sparse_csc",
        "sparse_bsr",
        "sparse_bsc",
        "jagged",
        "_mkldnn",
    )
}
FORMATS = {
    n: memory_format(n) for n in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
}
FORMATS["legacy_contiguous_format"] = FORMATS["contiguous_format"]

CHANNELS_LAST = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


def permuted_strides(size, order) -> list[int]:
    """Return the strides of a dense tensor whose dims lie in memory in this order, the last one innermost."""
    strides, step = [0] * len(size), 1
    for d in reversed(order):
        strides[d] = step
        step *= max(size[d], 1)
    return strides


def format_strides(size, name: str) -> list[int] | None:
    """Return the strides that a memory format asks for, or None for the contiguous format."""
    order = CHANNELS_LAST.get(name)
    if order is None:
        return None
    if len(size) != len(order):
        raise RuntimeError(f"required rank {len(order)} tensor to use {name} format")
    strides, step = [0] * len(size), 1
    for d in reversed(order):
        strides[d] = step
        step *= size[d]  # unlike in the contiguous format, the strides beyond a dim without elements are 0
    return strides


def suggested_format(sizes, strides) -> memory_format:
    """Return the memory format that strides stand for, by PyTorch's rule for strides that fit several formats."""
    name = {4: "channels_last", 5: "channels_last_3d"}.get(len(sizes))
    if name is None or strides[1] == 0:
        return FORMATS["contiguous_format"]
    least = 0
    for d in reversed(CHANNELS_LAST[name]):
        if sizes[d] == 0 or strides[d] < least or (d == 0 and least == strides[1]):
            return FORMATS["contiguous_format"]
        least = strides[d] * max(sizes[d], 1)
    return FORMATS[name]
