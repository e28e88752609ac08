"""Two ranks with one simulated NPU each, started by torchrun: run by test_torch.py."""

import os

import pytest
import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl")
assert dist.get_world_size() == 2 and torch.npu.current_device() == rank


def full(count, value, dtype=torch.float32):
    return torch.full((count,), value, dtype=dtype, device="npu")


for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.float64):  # HCCL does not reduce float64
    x = full(5, rank + 1, dtype)
    dist.all_reduce(x)
    assert x.dtype == dtype and x.tolist() == [3] * 5, x
smallest = full(2, rank + 0.5, torch.float64)
dist.all_reduce(smallest, op=dist.ReduceOp.MIN)
assert smallest.tolist() == [0.5, 0.5]
gathered = [torch.zeros(2, device="npu") for _ in range(2)]
dist.all_gather(gathered, full(2, float(rank)))
assert [g.tolist() for g in gathered] == [[0, 0], [1, 1]]
part = torch.zeros(2, device="npu")
dist.reduce_scatter_tensor(part, torch.arange(4.0, device="npu"))
assert part.tolist() == [[0, 2], [4, 6]][rank]
exchanged = torch.zeros(4, device="npu")
dist.all_to_all_single(exchanged, torch.arange(4.0, device="npu") + 10 * rank)
assert exchanged.tolist() == [[0, 1, 10, 11], [2, 3, 12, 13]][rank]
view = torch.zeros(3, 2, device="npu")
dist.broadcast(view[:, 1] if rank else full(3, 7.0), 0)
assert view.tolist() == [[[0, 0]] * 3, [[0, 7]] * 3][rank], view
if rank == 0:
    dist.send(full(2, 4.0), 1)
else:
    received = torch.zeros(2, device="npu")
    dist.recv(received, 0)
    assert received.tolist() == [4, 4]

objects = [None, None]
dist.all_gather_object(objects, {"rank": rank})
assert objects == [{"rank": 0}, {"rank": 1}]
mine = [None]
dist.scatter_object_list(mine, ["a", "b"] if rank == 0 else None)
assert mine == [["a"], ["b"]][rank]
host_group = dist.new_group([0, 1], backend="gloo")
on_host = torch.ones(2) * (rank + 1)
dist.all_reduce(on_host, group=host_group)
assert on_host.tolist() == [3, 3]
with pytest.raises(RuntimeError, match="No backend type associated with device type cpu"):
    dist.all_reduce(on_host)
with pytest.raises(NotImplementedError, match="drives one NPU in a process"):
    torch.npu.set_device(1 - rank)
with pytest.raises(NotImplementedError, match="drives one NPU in a process"):
    torch.ones(1, device=f"npu:{1 - rank}")

# Several times, because an operator that overtakes a collective or the wait for it shows only now and then.
for _ in range(10):
    x = full(5, float(rank + 1))
    handle = dist.all_reduce(x, async_op=True)
    handle.wait()
    doubled = x * 2
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2).npu())
    model(torch.ones(2, 3, device="npu") * (rank + 1)).sum().backward()
    assert doubled.tolist() == [6] * 5 and model.module.weight.grad.tolist() == [[3] * 3] * 2
dist.barrier()
dist.destroy_process_group()
os.write(
    1, f"ok rank {rank}\n".encode()
)  # one call, because print() writes the line break by itself under python -u
