"""Two ranks of which one fails, started by torchrun: run by test_torch.py.

python torch_rank_faults.py KIND: "late" injects a time-out of a collective into rank 1, "lost" ends rank 1 without a word.
Rank 0 writes the error that it gets to the file rank0 of the working directory.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from msadapter._host import simulator

rank = int(os.environ["LOCAL_RANK"])
torch.npu.set_device(rank)
dist.init_process_group("hccl")
x = torch.ones(4, device="npu")
dist.all_reduce(x)
assert x.tolist() == [2] * 4
if rank == 1 and sys.argv[1] == "lost":
    os._exit(0)
if rank == 1:
    simulator.inject_faults("hccl_timeout@1")
try:
    dist.all_reduce(x)
    x.cpu()
except RuntimeError as error:
    Path(f"rank{rank}").write_text(f"{type(error).__name__}: {error}")
    os._exit(3)
raise AssertionError("the fault was not noticed")
