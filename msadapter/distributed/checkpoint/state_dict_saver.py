"""Saves checkpoints. All processes of a group write their parts of one checkpoint."""

import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum

from ..._errors import unsupported
from ._deprecated import storage_second
from .default_planner import DefaultSavePlanner
from .filesystem import FileSystemWriter
from .metadata import Metadata
from .staging import AsyncStager, BlockingAsyncStager
from .stateful import Stateful
from .utils import _DistWrapper

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


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


class AsyncCheckpointerType(Enum):
    """Where async_save writes: in a thread, or in a process of its own."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What async_save returns if its stager copies in the background.

    staging_completion: done when the copy exists, so that the tensors may change again. upload_completion: done when the checkpoint
    is written.
    """

    staging_completion: Future
    upload_completion: Future


def async_save(
    state_dict,
    *,
    checkpoint_id=None,
    storage_writer=None,
    planner=None,
    process_group=None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD,
    async_stager: AsyncStager | None = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Future | AsyncSaveResponse:
    """Copies state_dict and saves the copy in a thread. Returns a future (of concurrent.futures) of the Metadata.

    async_stager: makes the copy; without it the copy is made before this function returns. If its `stage` returns a future, so does
    this function return an AsyncSaveResponse. Until the future is done, the group must not be used for other object collectives, so
    pass a separate group.
    """
    for name, refused in (
        ("async_checkpointer_type=PROCESS", async_checkpointer_type == AsyncCheckpointerType.PROCESS),
        ("use_collectives=False", not use_collectives),
    ):
        if refused:
            raise unsupported("torch.distributed.checkpoint.async_save", f"{name} is not supported")
    stager = async_stager or BlockingAsyncStager()
    staged = stager.stage(_plain(state_dict))
    behind = isinstance(staged, Future)

    def run() -> Metadata:
        return save(
            staged.result() if behind else staged,
            checkpoint_id=checkpoint_id,
            storage_writer=storage_writer,
            planner=planner,
            process_group=process_group,
            no_dist=no_dist,
        )

    executor = ThreadPoolExecutor(1, thread_name_prefix="checkpoint")
    upload = executor.submit(run)
    executor.shutdown(wait=False)
    if behind:
        return AsyncSaveResponse(_completion(staged), upload)
    if stager.should_synchronize_after_execute:
        stager.synchronize_staging()
    return upload


def _completion(staged: Future) -> Future:
    """A future that is done when `staged` is, with None or the same exception."""
    done: Future = Future()

    def pass_on(future: Future) -> None:
        error = future.exception()
        if error is None:
            done.set_result(None)
        else:
            done.set_exception(error)

    staged.add_done_callback(pass_on)
    return done


def _save_state_dict(
    state_dict,
    storage_writer,
    process_group=None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner=None,
    use_collectives: bool = True,
) -> Metadata:
    """Saves state_dict without handling of Stateful objects, with a writer that is ready."""
    if not use_collectives:
        raise unsupported(
            "torch.distributed.checkpoint.state_dict_saver._save_state_dict",
            "use_collectives=False is not supported",
        )
    return _save(
        state_dict, storage_writer, process_group, planner or DefaultSavePlanner(), no_dist, coordinator_rank
    )


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
    return _save_state_dict(state_dict, storage_writer, process_group, coordinator_rank, no_dist, planner)
