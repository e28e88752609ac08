"""Two simulated NPUs are stopped: their groups refuse to communicate. Run by test_torch.py."""

import os

import torch
import torch.distributed as dist

dist.init_process_group("hccl")
rank, device = dist.get_rank(), torch.npu.current_device()
x = torch.full((1000,), float(rank), device="npu")
dist.all_reduce(x)
assert x.cpu().tolist() == [1.0] * 1000
assert torch.npu.stop_device(device) == 0
for function, arguments in ((dist.all_reduce, (x,)), (dist.barrier, ()), (dist.broadcast, (x, 0))):
    try:
        function(*arguments)
    except RuntimeError as error:
        assert "FORCE STOP: the process group" in str(error), error
    else:
        raise AssertionError("a stopped device communicated")
try:
    dist.reinit_process_group()
except NotImplementedError as error:
    assert "docs/coverage.md" in str(error)
else:
    raise AssertionError("the link was rebuilt")
print(f"ok rank {rank}", flush=True)
os._exit(0)  # MindSpore would wait for the stopped device
