"""MindSpore's own HCCL path between two processes with one simulated NPU each: run by test_mindspore.py."""

import os

import mindspore as ms
import numpy as np

ms.set_device("Ascend")
from mindspore import mint  # noqa: E402
from mindspore.mint import distributed as dist  # noqa: E402

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()


def full(count, value, kind=ms.float32):
    return mint.full((count,), value, dtype=kind)


for kind in (ms.float32, ms.bfloat16, ms.int64):
    x = full(5, rank + 1, kind)
    dist.all_reduce(x)
    assert (x.to(ms.float32).asnumpy() == size * (size + 1) / 2).all(), x
gathered = mint.zeros((2 * size,))
dist.all_gather_into_tensor(gathered, full(2, rank + 5.0))
assert gathered.asnumpy().tolist() == [5, 5, 6, 6], gathered
part = mint.zeros((2,))
dist.reduce_scatter_tensor(part, mint.arange(4).to(ms.float32) + rank)
assert part.asnumpy().tolist() == [[1, 3], [5, 7]][rank], part
exchanged = mint.zeros((4,))
dist.all_to_all_single(exchanged, mint.arange(4).to(ms.float32) + 10 * rank, [2, 2], [2, 2])
assert exchanged.asnumpy().tolist() == [[0, 1, 10, 11], [2, 3, 12, 13]][rank], exchanged
group = dist.new_group([0, 1])
if rank == 0:
    dist.send(full(4, 7.0), 1, group=group)
else:
    received = mint.zeros((4,))
    dist.recv(received, 0, group=group)
    assert np.all(received.asnumpy() == 7)
dist.barrier()
os.write(
    1, f"ok rank {rank}\n".encode()
)  # one call, because print() writes the line break by itself under python -u
