"""The settings that bind each rank to the cores beside its device. They can be made; a launcher refuses them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["AffinityMode", "NumaOptions"]


class AffinityMode(str, Enum):
    """The cores of a rank: of the NUMA node or the socket of its device, a part of the node's, or one core complex."""

    NODE = "node"
    SOCKET = "socket"
    EXCLUSIVE = "exclusive"
    CORE_COMPLEX = "core-complex"


@dataclass(frozen=True)
class NumaOptions:
    """The cores of the ranks, and whether a job goes on if it cannot have them."""

    affinity_mode: AffinityMode
    should_fall_back_if_binding_fails: bool = False
