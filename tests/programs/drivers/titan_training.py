"""torchtitan's debug model of Llama 3, trained by its own parallelisms, loss, optimizer, schedule and clipping on CPU processes.

torchtitan's Trainer prepares for a GPU (its memory, its speed), so this program does that part itself. The weights are drawn before
they are sharded, because PyTorch's random numbers depend on the sharding on a CPU.
"""

import os
import sys
import types

import torch

torch._utils._get_available_device_type = lambda: "cpu"  # torchtitan takes a GPU where it does not find one
# What this model does not use: kernels of Triton for layers of experts, and torchdata's loader, which msadapter does not support.
sys.modules["torchtitan.models.moe.kernels"] = types.SimpleNamespace(generate_permute_indices=None)
sys.modules["torchdata"] = types.ModuleType("torchdata")
sys.modules["torchdata.stateful_dataloader"] = types.SimpleNamespace(
    StatefulDataLoader=torch.utils.data.DataLoader
)

from torch.distributed.fsdp import FSDPModule  # noqa: E402
from torchtitan.components.lr_scheduler import build_lr_schedulers  # noqa: E402
from torchtitan.components.optimizer import build_optimizers  # noqa: E402
from torchtitan.config import JobConfig  # noqa: E402
from torchtitan.distributed import ParallelDims, utils  # noqa: E402
from torchtitan.models.llama3 import get_train_spec  # noqa: E402
from torchtitan.train import Trainer  # noqa: E402

STEPS, BATCH, LENGTH = 4, 4, 64


class Training(Trainer):
    """The parts of torchtitan's Trainer that compute."""

    def __init__(self, dims: ParallelDims, config: JobConfig):
        self.parallel_dims, self.job_config, self.device = dims, config, torch.device("cpu")
        spec = get_train_spec()
        self.model_args = spec.model_args["debugmodel"]
        self.model_args.update_from_config(config)
        self.loss_fn = spec.build_loss_fn(config, parallel_dims=dims)
        torch.manual_seed(0)
        model = spec.model_cls(self.model_args)
        with torch.no_grad():
            model.init_weights()
        self.pp_has_last_stage = not dims.pp_enabled
        if dims.pp_enabled:
            self.pp_schedule, self.model_parts, self.pp_has_first_stage, self.pp_has_last_stage = (
                spec.pipelining_fn(
                    model, dims, config, self.device, self.model_args, spec.parallelize_fn, self.loss_fn
                )
            )
        else:
            self.model_parts = [spec.parallelize_fn(model, dims, config)]
        for module in (m for part in self.model_parts for m in part.modules()):
            if isinstance(module, FSDPModule):
                module.set_force_sum_reduction_for_comms(True)  # gloo cannot multiply while it sums
        self.optimizers = build_optimizers(self.model_parts, config.optimizer, dims)
        self.lr_schedulers = build_lr_schedulers(self.optimizers, config.lr_scheduler, config.training.steps)
        parallel_loss = dims.tp_enabled and not config.parallelism.disable_loss_parallel
        self.train_context = utils.get_train_context(parallel_loss)
        self.maybe_enable_amp = utils.maybe_enable_amp(dims, "float32", "cpu")

    def norm(self, parameters) -> float:
        """Return the norm of the gradients, in float64: PyTorch's own norm of float32 differs in the fourth digit."""
        squares = torch.zeros((), dtype=torch.float64)
        for p in parameters:
            whole = p.grad.full_tensor() if hasattr(p.grad, "full_tensor") else p.grad
            squares += whole.double().square().sum()
        return utils.dist_sum(squares, self.parallel_dims.get_optional_mesh("pp")) ** 0.5

    def step(self, tokens):
        """Return the loss over all processes and the norm of the gradients of a step."""
        dims = self.parallel_dims
        inputs, labels = tokens[:, :-1], tokens[:, 1:].contiguous()
        count = torch.tensor(float(labels.numel()))
        if dims.dp_enabled:
            count = torch.tensor(utils.dist_sum(count, dims.get_mesh("batch")))
        self.optimizers.zero_grad()
        loss = self.forward_backward_step(
            input_dict={"input": inputs}, labels=labels, global_valid_tokens=count
        )
        parameters = [p for part in self.model_parts for p in part.parameters()]
        norm = self.norm(parameters)
        utils.clip_grad_norm_(
            parameters,
            self.job_config.training.max_norm,
            foreach=True,
            pp_mesh=dims.get_optional_mesh("pp"),
        )
        self.optimizers.step()
        self.lr_schedulers.step()
        loss = loss.detach().full_tensor() if hasattr(loss, "full_tensor") else loss.detach()
        if dims.pp_enabled:  # the others have none
            return utils.dist_max(loss.reshape(()), dims.get_mesh("pp")), norm
        return utils.dist_sum(loss, dims.get_optional_mesh("loss")), norm


def settings() -> JobConfig:
    """The options of torchtitan's debug_model.toml, at a smaller size and in float32."""
    config = JobConfig()
    config.training.local_batch_size, config.training.seq_len, config.training.steps = BATCH, LENGTH, STEPS
    config.training.mixed_precision_param = config.training.mixed_precision_reduce = "float32"
    config.optimizer.lr, config.lr_scheduler.warmup_steps, config.lr_scheduler.decay_ratio = 8e-4, 2, 0.8
    config.activation_checkpoint.mode, config.activation_checkpoint.selective_ac_option = "selective", "op"
    config.parallelism.pipeline_parallel_schedule = "1F1B"
    return config


def train(name: str, world: int, **degrees) -> None:
    sizes = dict.fromkeys(("dp_replicate", "dp_shard", "cp", "tp", "pp", "ep", "etp"), 1) | degrees
    config = settings()
    config.parallelism.pipeline_parallel_degree = sizes["pp"]
    dims = ParallelDims(**sizes, world_size=world)
    dims.build_mesh()
    training = Training(dims, config)
    place = dims.get_mesh("batch").get_local_rank() if dims.dp_enabled else 0
    for step in range(STEPS):
        first = torch.arange(BATCH).unsqueeze(1) * 31 + place * 457 + step * 997
        tokens = (first + torch.arange(LENGTH + 1) * 17) % 2039
        loss, norm = training.step(tokens)
        if int(os.environ.get("RANK", "0")) == 0:
            print(f"{name} step {step}: loss {loss:.6f} gradient {norm:.5f}", flush=True)


world = int(os.environ.get("WORLD_SIZE", "1"))
if world == 1:
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=torch.distributed.HashStore())
    train("alone", 1)
else:
    torch.distributed.init_process_group("gloo")
    train("fully sharded", world, dp_shard=world)
    train("replicated", world, dp_replicate=world)
    train("tensor parallel", world, tp=world)
    train("pipeline", world, pp=world)
torch.distributed.destroy_process_group()
