"""The work items. They import only torch, so that both sides run the very same code.

A work is a function that prepares its data and returns what is timed; ``flops`` and ``moved`` (bytes) of one call turn
its time into a rate.
"""
from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F

from . import gpt


@dataclasses.dataclass(frozen=True)
class Work:
    group: str
    prepare: Callable[[], Callable[[], object]]
    flops: float = 0
    moved: float = 0


WORKS: dict[str, Work] = {}


def work(name: str, group: str, flops: float = 0, moved: float = 0):
    def register(prepare):
        WORKS[name] = Work(group, prepare, flops, moved)
        return prepare
    return register


# ---------------------------------------------------------------- small tensors: the cost of a call
RECORDED = {
    "add": lambda x, y, i: torch.add(x, y),
    "mul": lambda x, y, i: torch.mul(x, y),
    "x + y": lambda x, y, i: x + y,
    "x + 1": lambda x, y, i: x + 1.0,
    "matmul": lambda x, y, i: torch.matmul(x, y),
    "linear": lambda x, y, i: F.linear(x, y),
    "sum": lambda x, y, i: x.sum(),
    "mean(-1)": lambda x, y, i: x.mean(-1),
    "view": lambda x, y, i: x.view(4, 16),
    "reshape": lambda x, y, i: x.reshape(4, 16),
    "transpose": lambda x, y, i: x.transpose(0, 1),
    "permute": lambda x, y, i: x.permute(1, 0),
    "select": lambda x, y, i: x.select(0, 1),
    "slice": lambda x, y, i: x.narrow(0, 1, 4),
    "x[1]": lambda x, y, i: x[1],
    "x[:, 1:3]": lambda x, y, i: x[:, 1:3],
    "cat": lambda x, y, i: torch.cat((x, y)),
    "chunk": lambda x, y, i: x.chunk(2, -1),
    "gelu": lambda x, y, i: F.gelu(x),
    "softmax": lambda x, y, i: torch.softmax(x, -1),
    "layer_norm": lambda x, y, i: F.layer_norm(x, (8,)),
    "cross_entropy": lambda x, y, i: F.cross_entropy(x, i),
    "embedding": lambda x, y, i: F.embedding(i, x),
    "index_select": lambda x, y, i: torch.index_select(x, 0, i),
    "to bfloat16": lambda x, y, i: x.to(torch.bfloat16),
    "where": lambda x, y, i: torch.where(x > 0, x, y),
    "x.mul(y).add_(x)": lambda x, y, i: x.mul(y).add_(x),
}
UNRECORDED = {
    "add": lambda x, y, i: torch.add(x, y),
    "add_": lambda x, y, i: x.add_(y),
    "mul_(scalar)": lambda x, y, i: x.mul_(1.0),
    "copy_": lambda x, y, i: x.copy_(y),
    "zero_": lambda x, y, i: x.zero_(),
    "zeros": lambda x, y, i: torch.zeros(8, 8),
    "item": lambda x, y, i: i[0].item(),
    "shape": lambda x, y, i: x.shape,
    "detach": lambda x, y, i: x.detach(),
}


def _small(call, requires_grad):
    x, y = (torch.randn(8, 8, requires_grad=requires_grad) for _ in range(2))
    return functools.partial(call, x, y, torch.arange(8))


for _name, _call in RECORDED.items():
    work(_name, "8x8 float32, recorded")(functools.partial(_small, _call, True))
for _name, _call in UNRECORDED.items():
    work(f"{_name} (no grad)", "8x8 float32, not recorded")(functools.partial(_small, _call, False))


@work("backward of 20 muls", "graphs of small tensors")
def backward_nodes():
    x, y = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
    z = x
    for _ in range(20):
        z = z * y
    return functools.partial(z.sum().backward, retain_graph=True)


@work("20 muls and backward", "graphs of small tensors")
def muls():
    x, y = (torch.randn(8, 8, requires_grad=True) for _ in range(2))

    def run():
        z = x
        for _ in range(20):
            z = z * y
        z.sum().backward()
    return run


@work("mixed chain and backward", "graphs of small tensors")
def mixed_chain():
    x, w, b = (torch.randn(*shape, requires_grad=True) for shape in ((4, 8), (8, 8), (8,)))
    labels = torch.arange(4)

    def run():
        h = F.layer_norm(F.linear(x, w, b), (8,))
        left, right = h.chunk(2, dim=-1)
        h = torch.cat((F.gelu(left), right.transpose(0, 1).contiguous().transpose(0, 1)), dim=-1) + x
        scores = torch.softmax(h.view(4, 2, 4), dim=-1).reshape(4, 8) @ w[:, :4]
        F.cross_entropy(scores, labels % 4).backward()
    return run


@work("MLP module forward", "graphs of small tensors")
def module_forward():
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 8))
    return functools.partial(model, torch.randn(4, 8))


# ---------------------------------------------------------------- large tensors: the speed of the kernels
def _matmul(n, dtype):
    a, b = (torch.randn(n, n).to(dtype) for _ in range(2))
    return functools.partial(torch.matmul, a, b)


for _type, _sizes in (("float32", (256, 512, 1024, 2048)), ("bfloat16", (256, 512, 1024))):
    for _n in _sizes:
        work(f"matmul {_n} {_type}", "products", flops=2 * _n**3)(functools.partial(_matmul, _n, getattr(torch, _type)))


@work("batched matmul 32x128x128", "products", flops=2 * 32 * 128**3)
def batched():
    return functools.partial(torch.bmm, torch.randn(32, 128, 128), torch.randn(32, 128, 128))


LARGE = {  # the bytes that must be read and written at least, in units of the tensor
    "add": (lambda x, y: x + y, 3),
    "add_": (lambda x, y: x.add_(y), 3),
    "x * scalar": (lambda x, y: x * 2.0, 2),
    "exp": (lambda x, y: x.exp(), 2),
    "gelu": (lambda x, y: F.gelu(x), 2),
    "tanh": (lambda x, y: x.tanh(), 2),
    "compare": (lambda x, y: x > y, 2.25),
    "where": (lambda x, y: torch.where(x > 0, x, y), 3),
    "sum": (lambda x, y: x.sum(), 1),
    "sum(0)": (lambda x, y: x.sum(0), 1),
    "amax(-1)": (lambda x, y: x.amax(-1), 1),
    "softmax": (lambda x, y: torch.softmax(x, -1), 2),
    "log_softmax": (lambda x, y: torch.log_softmax(x, -1), 2),
    "layer_norm": (lambda x, y: F.layer_norm(x, (1024,)), 2),
    "transposed copy": (lambda x, y: x.t().contiguous(), 2),
    "to bfloat16": (lambda x, y: x.to(torch.bfloat16), 1.5),
    "cat": (lambda x, y: torch.cat((x, y)), 4),
    "randn": (lambda x, y: torch.randn(1024, 1024), 1),
}


def _large(call):
    return functools.partial(call, torch.randn(1024, 1024), torch.randn(1024, 1024))


for _name, (_call, _passes) in LARGE.items():
    work(f"{_name} 1024x1024", "1024x1024 float32", moved=_passes * 2**22)(functools.partial(_large, _call))


@work("copy 64 MB", "1024x1024 float32", moved=2 * 2**26)
def copy():
    target, source = torch.zeros(2**24), torch.ones(2**24)
    return functools.partial(target.copy_, source)


# ---------------------------------------------------------------- what training is made of
def _attention(shape):
    q, k, v = (torch.randn(*shape, requires_grad=True) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()


for _shape in ((2, 8, 128, 16), (2, 8, 512, 64)):
    work(f"attention {'x'.join(map(str, _shape))}", "training")(functools.partial(_attention, _shape))


def _adamw(count, shape):
    params = [torch.randn(*shape, requires_grad=True) for _ in range(count)]
    for p in params:
        p.grad = torch.ones_like(p)
    return torch.optim.AdamW(params, lr=1e-3).step


work("AdamW 100 of 32x32", "training")(functools.partial(_adamw, 100, (32, 32)))
work("AdamW 24 of 256x512", "training")(functools.partial(_adamw, 24, (256, 512)))


@work("clip_grad_norm_ 100 of 32x32", "training")
def clip():
    params = [torch.randn(32, 32, requires_grad=True) for _ in range(100)]
    for p in params:
        p.grad = torch.ones_like(p)
    return functools.partial(torch.nn.utils.clip_grad_norm_, params, 1.0)


for _name, _config in gpt.CONFIGS.items():
    work(f"GPT step {_name}", "training", flops=gpt.flops(_config))(functools.partial(gpt.training_step, _config))
