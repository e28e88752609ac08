"""The replacement for load() of MindSpeed's operator builders."""

from __future__ import annotations

from typing import Any


def load_ours(original: Any) -> Any:
    """A load() that returns the extension of kernels_ascend with the builder's name."""

    def load(self: Any, verbose: bool = True) -> Any:
        """The functions of this builder's extension from kernels_ascend."""
        from kernels_ascend import mindspeed

        return mindspeed.load(self.name)

    load.__wrapped__ = original  # type: ignore[attr-defined]
    return load
