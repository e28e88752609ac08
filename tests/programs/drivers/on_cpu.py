"""Runs a script that asks for several accelerators, with the CPU in their place, in the script's own folder.

The call is `on_cpu.py SCRIPT ARGUMENTS`. Such scripts end at once where there is no accelerator, and most print no number. So the
CPU is the accelerator here, each rank has one, gloo is the backend, and rank 0 prints the norms of gradients and parameters after
each step of an optimizer. The random numbers of DTensors are drawn as a whole, because PyTorch's depend on the sharding on a CPU.
"""

import contextlib
import os
import runpy
import sys
from pathlib import Path

import torch
import torch.distributed.fsdp
import torch.nn.parallel
import torch.utils.data
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.optim.optimizer import register_optimizer_step_post_hook

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def answer(device: str):
    """Make torch.accelerator answer this device, and as many as there are ranks."""
    accelerator = torch.accelerator
    accelerator.is_available, accelerator.device_count = (lambda: True), (lambda: RANKS)
    accelerator.current_accelerator = lambda check_available=False: torch.device(device)
    accelerator.set_device_index = torch.cuda.set_device = lambda index: None
    accelerator.device_index = lambda index: contextlib.nullcontext()


def without(kind: type, option: str) -> None:
    """Make a class ignore an option that only accelerators have."""
    original = kind.__init__

    def start(self, *args, **kwargs):
        kwargs.pop(option, None)
        original(self, *args, **kwargs)

    kind.__init__ = start


def numbers_are_devices(kind: type) -> None:
    """Make `to(1)`, which means the accelerator 1, leave tensors and modules on the CPU."""
    original = kind.to
    kind.to = lambda self, *args, **kw: self if args and type(args[0]) is int else original(self, *args, **kw)


def draw_whole(name: str) -> None:
    """Make an in-place random function fill a DTensor with its part of one whole drawing, equal on all ranks."""
    original = getattr(torch.Tensor, name)

    def filled(self, *args, **kwargs):
        if not isinstance(self, DTensor):
            return original(self, *args, **kwargs)
        whole = original(torch.empty(self.shape, dtype=self.dtype), *args, **kwargs)
        with torch.no_grad():
            return self.copy_(distribute_tensor(whole, self.device_mesh, self.placements))

    setattr(torch.Tensor, name, filled)


def norm(tensors) -> float:
    """Return the norm of all elements, over the ranks that share them, in float64."""
    whole = (t.detach().full_tensor() if isinstance(t, DTensor) else t.detach() for t in tensors)
    return sum(t.double().square().sum().item() for t in whole) ** 0.5


def tell(optimizer, args, kwargs) -> None:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    gradients, values = norm(p.grad for p in parameters if p.grad is not None), norm(parameters)
    if RANK == 0:
        sys.stdout.write(
            f"step: gradient {gradients:.6g} parameters {values:.7g}\n"
        )  # at once: ranks write together
        sys.stdout.flush()


answer("cpu")
start, shard = torch.distributed.init_process_group, torch.distributed.fsdp.fully_shard


def fully_shard(module, **kwargs):
    shard(module, **kwargs).set_force_sum_reduction_for_comms(True)  # gloo cannot average while it sums
    return module


torch.distributed.init_process_group = lambda *args, **kwargs: start("gloo")
torch.distributed.fsdp.fully_shard = fully_shard
without(torch.nn.parallel.DistributedDataParallel, "device_ids")
without(torch.utils.data.DataLoader, "pin_memory")
for kind in (torch.Tensor, torch.nn.Module):
    numbers_are_devices(kind)
for name in ("uniform_", "normal_"):
    draw_whole(name)
register_optimizer_step_post_hook(tell)
torch.manual_seed(1)
script = Path(sys.argv[1]).resolve()
sys.argv = [str(script), *sys.argv[2:]]
sys.path[0] = str(script.parent)
os.chdir(script.parent)
runpy.run_path(str(script), run_name="__main__")
