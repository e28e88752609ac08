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
    for n in ("strided", "sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc", "jagged")
}
FORMATS = {
    n: memory_format(n) for n in ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")
}
FORMATS["legacy_contiguous_format"] = FORMATS["contiguous_format"]
