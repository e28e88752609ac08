"""torch.distributed.algorithms.join: training where the processes have uneven numbers of inputs."""

from __future__ import annotations

from ..process_group import resolve

__all__ = ["Join", "JoinHook", "Joinable"]


class JoinHook:
    """What a process does in place of its own steps once it has no inputs left."""

    def main_hook(self) -> None:
        """Called at every step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when all have joined."""


class Joinable:
    """Base of what can take part: gives a `join_hook`, a `join_device` and a `join_process_group`."""

    def join_hook(self, **kwargs) -> JoinHook:
        """The hook of this object."""
        raise NotImplementedError(f"{type(self).__name__} has no join_hook")


class Join:
    """Context in which early finishers follow the others' collectives. With one process there is nobody to follow.

    Raises:
        NotImplementedError: enabled with several processes.
    """

    def __init__(self, joinables, enable: bool = True, throw_on_early_termination: bool = False, **kwargs):
        joinables = list(joinables)
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self.joinables = joinables
        group = resolve(getattr(joinables[0], "join_process_group", None)) if enable else None
        if group is not None and group.size() > 1:
            raise NotImplementedError(
                "torch.distributed.algorithms.join.Join: several processes are not supported (docs/coverage.md)"
            )

    def __enter__(self):
        return self

    def __exit__(self, *error) -> None:
        return None

    @staticmethod
    def notify_join_context(joinable) -> None:
        """Said by a joinable at each step; nobody listens with one process."""
