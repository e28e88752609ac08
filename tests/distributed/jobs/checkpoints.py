"""torch.distributed.checkpoint between ranks."""

import os
import tempfile
from concurrent.futures import Future

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed._shard.metadata import ShardMetadata
from torch.distributed._shard.sharded_tensor import (
    Shard,
    ShardedTensor,
    ShardedTensorMetadata,
    TensorProperties,
)
from torch.distributed.checkpoint.staging import BlockingAsyncStager, DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType, AsyncSaveResponse


def folder() -> str:
    """Return one folder for all ranks."""
    name = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(name)
    return name[0]


def sharded(rank, size, rows, dim=0, fill=True):
    """Return a (rows, 6) tensor that is divided along `dim`."""
    whole = torch.arange(rows * 6.0).reshape(rows, 6)
    length = (rows, 6)[dim] // size
    pieces = [[0, 0] for _ in range(size)]
    for i, piece in enumerate(pieces):
        piece[dim] = i * length
    sizes = [rows, 6]
    sizes[dim] = length
    shards = [ShardMetadata(piece, sizes, f"rank:{i}/cpu") for i, piece in enumerate(pieces)]
    own = whole.narrow(dim, rank * length, length).clone() if fill else torch.zeros(sizes)
    metadata = ShardedTensorMetadata(shards, torch.Size([rows, 6]), TensorProperties.create_from_tensor(own))
    return (
        ShardedTensor._init_from_local_shards_and_global_metadata([Shard(own, shards[rank])], metadata),
        own,
        whole,
    )


def check_save_and_load_with_another_division(rank, size):
    path = folder()
    state = {
        "model": {"w": sharded(rank, size, 6 * size)[0], "same": torch.full((3,), 5.0, dtype=torch.bfloat16)},
        "step": 7,
        "names": ["a", "b"],
    }
    metadata = dcp.save(state, checkpoint_id=path)
    assert sorted(metadata.state_dict_metadata) == ["model.same", "model.w", "names", "step"]
    target, own, whole = sharded(rank, size, 6 * size, dim=1 if 6 % size == 0 else 0, fill=False)
    same = torch.zeros(3, dtype=torch.bfloat16)
    read = {"model": {"w": target, "same": same}, "step": 0, "names": None}
    dcp.load(read, checkpoint_id=path)
    length = own.size(1)
    assert (
        torch.equal(own, whole[:, rank * length : (rank + 1) * length] if length != 6 else own)
        and own.sum() > 0
    )
    assert same.tolist() == [5.0] * 3 and read["step"] == 7 and read["names"] == ["a", "b"]
    full = {"model": {"w": torch.zeros_like(whole)}}
    dcp.load(full, checkpoint_id=path)
    assert torch.equal(full["model"]["w"], whole)


def check_async_save(rank, size):
    path, t = folder(), torch.full((4,), 1.0)
    future = dcp.async_save({"t": t}, checkpoint_id=path, process_group=dist.new_group())
    t.zero_()  # the copy was made before this
    assert isinstance(future.result(), dcp.Metadata)
    dist.barrier()
    read = {"t": torch.zeros(4)}
    dcp.load(read, checkpoint_id=path)
    assert read["t"].tolist() == [1.0] * 4


def check_async_save_with_a_stager(rank, size):
    stager = DefaultStager(StagingOptions(False, False, use_async_staging=True, use_non_blocking_copy=False))
    group = dist.new_group()
    for value in (2.0, 3.0):
        path, t = folder(), torch.full((4,), value)
        answer = dcp.async_save({"t": t}, checkpoint_id=path, process_group=group, async_stager=stager)
        assert isinstance(answer, AsyncSaveResponse)
        assert answer.staging_completion.result() is None
        t.zero_()
        answer.upload_completion.result()
        dist.barrier()
        read = {"t": torch.zeros(4)}
        dcp.load(read, checkpoint_id=path)
        assert read["t"].tolist() == [value] * 4
    stager.close()


def check_an_error_of_async_save_reaches_its_future(rank, size):
    class Broken(BlockingAsyncStager):
        def stage(self, state_dict):
            failed = Future()
            failed.set_exception(ValueError("no room"))
            return failed

    answer = dcp.async_save({"t": torch.ones(1)}, checkpoint_id=folder(), async_stager=Broken())
    for future in (answer.staging_completion, answer.upload_completion):
        assert "no room" in str(future.exception())
    state = {"t": torch.ones(1)}
    for options in (
        {"async_checkpointer_type": AsyncCheckpointerType.PROCESS},
        {"use_collectives": False},
    ):
        try:
            dcp.async_save(state, checkpoint_id=folder(), **options)
        except NotImplementedError as error:
            assert "async_save" in str(error)
        else:
            raise AssertionError("no error")


def check_a_cached_copy_is_written_to_again(rank, size):
    stager, t = BlockingAsyncStager(cache_staged_state_dict=True), torch.ones(3)
    first = stager.stage({"t": t, "rows": [t * 2], "n": 1})
    t.fill_(5)
    assert first["t"].tolist() == [1] * 3 and first["rows"][0].tolist() == [2] * 3
    again = stager.stage({"t": t, "rows": [t * 2], "n": 2})
    assert again["t"] is first["t"] and again["t"].tolist() == [5] * 3 and again["n"] == 2
    larger = stager.stage({"t": torch.ones(4), "rows": [], "n": 3})
    assert larger["t"].tolist() == [1] * 4 and larger["rows"] == []


def check_errors_reach_all_ranks(rank, size):
    path = folder()
    dcp.save({"t": torch.zeros(2)}, checkpoint_id=path)
    for state, text in (
        ({"x": torch.zeros(2)}, "Missing key in checkpoint state_dict: x."),
        ({"t": torch.zeros(3 if rank else 2)}, "Size mismatch"),
    ):
        try:
            dcp.load(state, checkpoint_id=path)
        except dcp.CheckpointException as err:
            assert text in str(err)
        else:
            raise AssertionError("no error")


def check_an_unfinished_save_is_not_a_checkpoint(rank, size):
    path = folder()
    dcp.save({"t": torch.zeros(2)}, checkpoint_id=path)

    class Broken(dcp.FileSystemWriter):
        def write_data(self, plan, planner):
            raise OSError("disk full")

    try:
        dcp.save({"t": torch.ones(2)}, storage_writer=Broken(path))
    except dcp.CheckpointException as err:
        assert "disk full" in str(err)
    assert not os.path.exists(os.path.join(path, ".metadata"))


def check_safetensors_of_pieces_and_of_whole_tensors(rank, size):
    from safetensors.torch import load_file
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageReader, HuggingFaceStorageWriter

    path = folder()
    tensor, _, whole = sharded(rank, size, 6 * size)
    state = {"w": tensor, "same": torch.full((3,), 5.0, dtype=torch.bfloat16)}
    writer = HuggingFaceStorageWriter(
        path, {"w": 2, "same": 1}, save_distributed=True, enable_consolidation=True
    )
    dcp.save(state, storage_writer=writer)
    pieces = [name for name in sorted(os.listdir(f"{path}/sharded")) if "model-00002" in name]
    assert pieces == [f"shard-{i + 1:05}-model-00002-of-00002.safetensors" for i in range(size)]
    assert torch.equal(load_file(f"{path}/model-00002-of-00002.safetensors")["w"], whole)
    target, own, _ = sharded(rank, size, 6 * size, dim=1 if 6 % size == 0 else 0, fill=False)
    for place in (path, f"{path}/sharded"):
        read = {"w": target, "same": torch.zeros(3, dtype=torch.bfloat16)}
        own.zero_()
        dcp.load(read, storage_reader=HuggingFaceStorageReader(place, thread_count=2))
        length = own.size(1)
        assert torch.equal(
            own, whole[:, rank * length : (rank + 1) * length] if length != 6 else whole.chunk(size)[rank]
        )
        assert read["same"].tolist() == [5.0] * 3


def check_every_rank_puts_files_together(rank, size):
    from safetensors.torch import load_file
    from torch.distributed.checkpoint._consolidate_hf_safetensors import (
        consolidate_safetensors_files_on_every_rank,
    )
    from torch.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter

    path = folder()
    tensor, _, whole = sharded(rank, size, 6 * size)
    state = {"w": tensor, "v": torch.arange(4.0)}
    dcp.save(state, storage_writer=HuggingFaceStorageWriter(path, save_distributed=True))
    consolidate_safetensors_files_on_every_rank(path, f"{path}/whole", {"w": 1, "v": 2})
    assert torch.equal(load_file(f"{path}/whole/model-00001-of-00002.safetensors")["w"], whole)
    assert load_file(f"{path}/whole/model-00002-of-00002.safetensors")["v"].tolist() == [0, 1, 2, 3]
