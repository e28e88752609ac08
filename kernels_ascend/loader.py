"""MindSpeed's op builders give our operators: its rules at run time, which wait for its modules."""

from __future__ import annotations

from patches import runtime_rules
from patches.runtime import install_patches


def install() -> None:
    """Have the rules wait for MindSpeed's modules. Calling it again changes nothing.

    Raises:
        PatchError: the modules are imported already.
    """
    install_patches(runtime_rules("mindspeed"))
