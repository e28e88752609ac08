"""Collective steps in which an error of one process is raised on all processes."""

from .. import objects
from ..collectives import barrier
from ..setup import get_global_rank, get_rank, get_world_size, is_initialized
from .api import CheckpointException, _is_wrapped_exception, _wrap_exception


def _get_failure_dict(results) -> dict:
    """{rank: (exception, traceback)} of those results that are errors."""
    return {rank: result for rank, result in enumerate(results) if _is_wrapped_exception(result)}


def _attempt(function, *args):
    try:
        return function(*args)
    except BaseException as err:  # it travels to the other processes, which all raise it
        return _wrap_exception(err)


class _DistWrapper:
    """Object collectives of a group, or of this process alone. Errors are raised on all processes."""

    def __init__(self, group, use_dist: bool, coordinator_rank: int):
        self.group = group
        self.use_dist = use_dist and is_initialized()
        self.coordinator_rank = coordinator_rank
        self.global_coordinator_rank = (
            get_global_rank(group, coordinator_rank)
            if self.use_dist and group is not None
            else coordinator_rank
        )
        self.rank = get_rank(group) if self.use_dist else 0
        self.is_coordinator = self.rank == coordinator_rank

    def get_rank(self) -> int:
        """Rank in the group."""
        return self.rank

    def get_world_size(self) -> int:
        """Size of the group."""
        return get_world_size(self.group) if self.use_dist else 1

    def broadcast_object(self, object):
        """The coordinator's object."""
        items = [object]
        if self.use_dist:
            objects.broadcast_object_list(items, src=self.global_coordinator_rank, group=self.group)
        return items[0]

    def gather_object(self, object):
        """The objects of all processes, on the coordinator."""
        if not self.use_dist:
            return [object]
        gathered = [None] * self.get_world_size() if self.is_coordinator else None
        objects.gather_object(object, gathered, dst=self.global_coordinator_rank, group=self.group)
        return gathered

    def all_gather_object(self, object) -> list:
        """The objects of all processes."""
        if not self.use_dist:
            return [object]
        gathered = [None] * self.get_world_size()
        objects.all_gather_object(gathered, object, group=self.group)
        return gathered

    def scatter_object(self, object_list):
        """This process's entry of the coordinator's list."""
        if not self.use_dist:
            return object_list[0]
        received = [None]
        objects.scatter_object_list(
            received,
            object_list if self.is_coordinator else None,
            src=self.global_coordinator_rank,
            group=self.group,
        )
        return received[0]

    def _on_coordinator(self, step, gathered, reduce_fun):
        failures = _get_failure_dict(gathered)
        if failures:
            return CheckpointException(step, failures)
        result = _attempt(reduce_fun, gathered)
        return CheckpointException(step, {self.rank: result}) if _is_wrapped_exception(result) else result

    def reduce_scatter(self, step, map_fun, reduce_fun):
        """Gathers map_fun() of all processes, calls reduce_fun on the coordinator, and scatters the entries of its list."""
        gathered = self.gather_object(_attempt(map_fun))
        results = None
        if self.is_coordinator:
            results = self._on_coordinator(step, gathered, reduce_fun)
            if isinstance(results, CheckpointException):
                results = [results] * self.get_world_size()
        return _raised(self.scatter_object(results))

    def all_reduce(self, step, map_fun, reduce_fun):
        """Gathers map_fun() of all processes, calls reduce_fun on the coordinator, and broadcasts the result."""
        gathered = self.gather_object(_attempt(map_fun))
        result = self._on_coordinator(step, gathered, reduce_fun) if self.is_coordinator else None
        return _raised(self.broadcast_object(result))

    def all_gather(self, step, map_fun) -> list:
        """The list of map_fun() of all processes."""
        gathered = self.all_gather_object(_attempt(map_fun))
        failures = _get_failure_dict(gathered)
        if failures:
            raise CheckpointException(step, failures)
        return gathered

    def broadcast(self, step, map_fun):
        """Broadcasts the coordinator's map_fun()."""
        result = None
        if self.is_coordinator:
            result = _attempt(map_fun)
            if _is_wrapped_exception(result):
                result = CheckpointException(step, {self.rank: result})
        return _raised(self.broadcast_object(result))

    def barrier(self) -> None:
        """Waits for all processes of the group."""
        if self.use_dist:
            barrier(self.group)


def _raised(result):
    if isinstance(result, CheckpointException):
        raise result
    return result
