"""The groups of processes that MindSpeed-RL makes for the engine."""

from .parallel_state import GroupCoordinator

__all__ = ["GroupCoordinator"]
