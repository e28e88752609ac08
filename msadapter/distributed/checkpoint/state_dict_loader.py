"""Loads checkpoints. Each process reads what it needs, regardless of how the checkpoint was sharded."""

import warnings

from ._deprecated import storage_second
from .default_planner import DefaultLoadPlanner
from .filesystem import FileSystemReader
from .stateful import Stateful
from .utils import _DistWrapper

__all__ = ["load", "load_state_dict"]


@storage_second("storage_reader")
def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None,
        no_dist: bool=False) -> None:  # fmt: skip
    """Loads a checkpoint into the tensors of state_dict, in place. Every process of the group must call this."""
    if storage_reader is None:
        if checkpoint_id is None:
            raise RuntimeError("`checkpoint_id` must be specificed if storage_reader/storage_writer is None.")
        storage_reader = FileSystemReader(checkpoint_id)
    storage_reader.reset(checkpoint_id)
    plain = {
        key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()
    }
    _load(plain, storage_reader, process_group, planner or DefaultLoadPlanner(), no_dist)
    for key, value in list(state_dict.items()):
        if isinstance(value, Stateful):
            value.load_state_dict(plain[key])
        else:
            state_dict[key] = plain[key]
    for key in plain.keys() - state_dict.keys():  # keys that a planner for an empty dict has added
        state_dict[key] = plain[key]


def _load(state_dict, reader, group, planner, no_dist, coordinator_rank=0):
    together = _DistWrapper(group, not no_dist, coordinator_rank)

    def local_step():
        metadata = reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, together.is_coordinator)
        reader.set_up_storage_reader(metadata, together.is_coordinator)
        return reader.prepare_local_plan(planner.create_local_plan())

    def global_step(plans):
        return reader.prepare_global_plan(planner.create_global_plan(plans))

    plan = together.reduce_scatter("plan", local_step, global_step)
    together.all_gather("read", lambda: reader.read_data(planner.finish_plan(plan), planner).wait())


def _load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank: int=0,
        no_dist: bool=False, planner=None) -> None:  # fmt: skip
    """Loads into state_dict without handling of Stateful objects."""
    storage_reader.reset()
    _load(
        state_dict, storage_reader, process_group, planner or DefaultLoadPlanner(), no_dist, coordinator_rank
    )


def load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank: int=0,
        no_dist: bool=False, planner=None) -> None:  # fmt: skip
    """The deprecated form of load."""
    warnings.warn(
        "'load_state_dict' is deprecated and will be removed in future versions. Please use 'load' instead.",
        FutureWarning,
        stacklevel=2,
    )
    _load_state_dict(state_dict, storage_reader, process_group, coordinator_rank, no_dist, planner)
