"""torch.distributed.checkpoint between ranks."""

import os
import tempfile

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
    future.wait()
    dist.barrier()
    read = {"t": torch.zeros(4)}
    dcp.load(read, checkpoint_id=path)
    assert read["t"].tolist() == [1.0] * 4


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
