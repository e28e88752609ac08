"""torch.distributed.tensor.debug: counts the collectives of a block."""

from __future__ import annotations

import collections

from ... import collectives

_NAMES = (
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "all_to_all",
    "broadcast",
)


class CommDebugMode:
    """A block that counts its collectives by their names in torch.distributed."""

    def __init__(self):
        self.comm_counts: collections.Counter = collections.Counter()

    def __enter__(self):
        self.comm_counts.clear()
        self._held = {name: getattr(collectives, name) for name in _NAMES}
        for name, function in self._held.items():
            setattr(collectives, name, self._counting(name, function))
        return self

    def _counting(self, name, function):
        def counted(*args, **kwargs):
            self.comm_counts[name] += 1
            return function(*args, **kwargs)

        return counted

    def __exit__(self, *error):
        for name, function in self._held.items():
            setattr(collectives, name, function)

    def get_comm_counts(self) -> dict:
        """{name: calls}."""
        return dict(self.comm_counts)

    def get_total_counts(self) -> int:
        """The number of all calls."""
        return sum(self.comm_counts.values())
