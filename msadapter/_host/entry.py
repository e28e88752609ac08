"""The functions that programs call as ``msadapter.install()`` and ``msadapter.complete_mindspore()``."""

from __future__ import annotations

from .. import alias
from .native import load_operators


def install() -> None:
    """Make ``import torch`` and imports of its submodules return this package, in this process.

    Raises RuntimeError if the real PyTorch is already imported.
    """
    alias.install()


def complete_mindspore() -> None:
    """Make MindSpore's own operators use the CPU kernels of this package, so that ``mindspore.mint`` has them.

    The kernels are compiled at the first use.
    """
    load_operators()
