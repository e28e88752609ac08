"""accelerate's FSDP2 plugin and transformers' tensor parallelism, compared with one process."""

import copy
import os
import tempfile
import warnings

import torch
import torch.distributed as dist
from torch.distributed.tensor import DTensor
from transformers import LlamaConfig, LlamaForCausalLM

warnings.simplefilter("ignore")


def model():
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64))  # fmt: skip


def batch(step):
    return (torch.arange(64) * 7 + step * 13).remainder(61).reshape(4, 16)


def shared_folder(rank):
    name = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(name)
    return name[0]


def steps(model, optimizer, backward, clip, numbers, rank, size):
    losses = []
    for step in numbers:
        ids = batch(step).chunk(size)[rank]
        loss = model(input_ids=ids, labels=ids).loss
        backward(loss)
        clip(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def check_accelerate(rank, size):
    os.environ |= {"ACCELERATE_USE_FSDP": "true", "FSDP_VERSION": "2"}
    from accelerate import Accelerator, FullyShardedDataParallelPlugin

    alone = model()
    plain = torch.optim.AdamW(alone.parameters(), lr=1e-3)
    expected = steps(alone, plain, torch.Tensor.backward, torch.nn.utils.clip_grad_norm_, range(4), 0, 1)
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2, auto_wrap_policy="transformer_based_wrap", transformer_cls_names_to_wrap=["LlamaDecoderLayer"],
        state_dict_type="SHARDED_STATE_DICT", activation_checkpointing=True, cpu_ram_efficient_loading=True)  # fmt: skip
    accelerator = Accelerator(cpu=True, fsdp_plugin=plugin)
    spread = model()
    spread, optimizer = accelerator.prepare(spread, torch.optim.AdamW(spread.parameters(), lr=1e-3))

    def run(numbers):
        return steps(
            spread, optimizer, accelerator.backward, accelerator.clip_grad_norm_, numbers, rank, size
        )

    losses = torch.tensor(run(range(2)))
    folder = shared_folder(rank)
    accelerator.save_state(folder)
    first = torch.tensor(run(range(2, 4)))
    accelerator.load_state(folder)
    again = torch.tensor(run(range(2, 4)))
    assert torch.allclose(first, again, atol=1e-6)
    losses = torch.cat([losses, again])
    dist.all_reduce(losses)
    assert torch.allclose(losses / size, torch.tensor(expected), atol=1e-5), (losses / size, expected)
    whole = accelerator.get_state_dict(spread)
    if rank == 0:
        for name, value in alone.state_dict().items():
            assert torch.allclose(whole[name], value, atol=1e-4), name


def check_tensor_parallel_plan(rank, size):
    alone = model()
    folder = shared_folder(rank)
    if rank == 0:
        copy.deepcopy(alone).save_pretrained(folder)
    dist.barrier()
    spread = LlamaForCausalLM.from_pretrained(folder, tp_plan="auto")
    assert isinstance(spread.model.layers[0].mlp.down_proj.weight, DTensor)
    ids = batch(0)
    a, b = alone(input_ids=ids, labels=ids).loss, spread(input_ids=ids, labels=ids).loss
    assert abs(a.item() - b.item()) < 1e-6
    a.backward()
    b.backward()
    for (name, p), q in zip(alone.named_parameters(), spread.parameters(), strict=True):
        got = q.grad.full_tensor() if isinstance(q.grad, DTensor) else q.grad
        assert torch.allclose(p.grad, got, atol=1e-6), name
