"""Saves checkpoints. All processes of a group write their parts of one checkpoint."""

import copy
import threading
import warnings

from ...futures import Future
from ...tensor import Tensor
from .._shard.sharded_tensor import ShardedTensor
from ._deprecated import storage_second
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import Metadata
from .stateful import Stateful
from .utils import _DistWrapper

__all__ = ["async_save", "save", "save_state_dict"]


@storage_second("storage_writer")
def save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    no_dist: bool = False,
) -> Metadata:
    """Saves state_dict under checkpoint_id. Every process of the group must call this. Returns the Metadata.

    Raises CheckpointException on all processes if one of them fails.
    """
    writer = storage_writer or _writer(checkpoint_id)
    writer.reset(checkpoint_id)
    return _save(_plain(state_dict), writer, process_group, planner or DefaultSavePlanner(), no_dist)


def _writer(checkpoint_id):
    if checkpoint_id is None:
        raise RuntimeError("`checkpoint_id` must be specificed if storage_reader/storage_writer is None.")
    return FileSystemWriter(checkpoint_id)


def _plain(state_dict) -> dict:
    return {
        key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()
    }


def _save(state_dict, writer, group, planner, no_dist, coordinator_rank=0):
    together = _DistWrapper(group, not no_dist, coordinator_rank)
    metadata = None

    def local_step():
        planner.set_up_planner(state_dict, writer.storage_meta(), together.is_coordinator)
        writer.set_up_storage_writer(together.is_coordinator)
        return writer.prepare_local_plan(planner.create_local_plan())

    def global_step(plans):
        nonlocal metadata
        plans, metadata = planner.create_global_plan(plans)
        return writer.prepare_global_plan(plans)

    plan = together.reduce_scatter("plan", local_step, global_step)

    def write():
        return writer.write_data(planner.finish_plan(plan), planner).wait()

    def finish(results):
        writer.finish(metadata, results)
        return metadata

    return together.all_reduce("write", write, finish)


def async_save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None):
    """Copies state_dict immediately and saves the copy in a thread. Returns a future of the Metadata.

    Until the future is done, the group must not be used for other object collectives, so pass a separate group.
    """
    staged = _staged(_plain(state_dict))
    result = Future()

    def run():
        try:
            result.set_result(
                save(
                    staged,
                    checkpoint_id=checkpoint_id,
                    storage_writer=storage_writer,
                    planner=planner,
                    process_group=process_group,
                )
            )
        except Exception as err:  # it belongs to whoever waits
            result.set_exception(err)
        except BaseException as err:  # CheckpointException is not an Exception
            result.set_exception(RuntimeError(str(err)))

    result.thread = threading.Thread(target=run, name="checkpoint", daemon=False)
    result.thread.start()
    return result


def _staged(value):
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()
    if isinstance(value, ShardedTensor):
        shards = [type(shard)(_staged(shard.tensor), shard.metadata) for shard in value.local_shards()]
        return ShardedTensor(value.metadata(), shards, value._process_group)
    if isinstance(value, dict):
        return {key: _staged(inner) for key, inner in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_staged, value))
    return copy.deepcopy(value)


def save_state_dict(
    state_dict,
    storage_writer,
    process_group=None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner=None,
) -> Metadata:
    """The deprecated form of save."""
    warnings.warn(
        "'save_state_dict' is deprecated and will be removed in future versions. Please use 'save' instead.",
        FutureWarning,
        stacklevel=2,
    )
    storage_writer.reset()
    return _save(
        state_dict, storage_writer, process_group, planner or DefaultSavePlanner(), no_dist, coordinator_rank
    )
