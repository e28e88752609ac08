"""Works on small tensors, which measure the cost of a call, a view and a backward node."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F

from .registry import work

VIEWS = ("view", "transpose", "select", "slice", "x[1]", "x[:, 1:3]")
HOT = (
    "add",
    "mul",
    "matmul",
    "sum",
    "gelu",
    "softmax",
    "layer_norm",
    "cross_entropy",
    "index_select",
    "x.mul(y).add_(x)",
)
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


def _target(name):
    return 0.9 if name in HOT else 0.7 if name in VIEWS else 0


for _name, _call in RECORDED.items():
    work(_name, "8x8 float32, recorded", target=_target(_name))(functools.partial(_small, _call, True))
for _name, _call in UNRECORDED.items():
    work(f"{_name} (no grad)", "8x8 float32, not recorded")(functools.partial(_small, _call, False))


NODES = 20


def _backward(call):
    """Prepares the backward of many independent nodes of one operator, to measure the cost of a node."""
    leaves = [torch.randn(8, 8, requires_grad=True) for _ in range(NODES)]
    y, i = torch.randn(8, 8, requires_grad=True), torch.arange(8)
    results = [call(x, y, i) for x in leaves]
    gradients = [torch.ones_like(r) for r in results]
    return functools.partial(torch.autograd.grad, results, leaves, gradients, retain_graph=True)


for _name in HOT:
    work(f"backward of {NODES} {_name}", "backward, 8x8 float32", target=0.9)(
        functools.partial(_backward, RECORDED[_name])
    )


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
    model = torch.nn.Sequential(
        torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)
    )
    return functools.partial(model, torch.randn(4, 8))


@work("chain of 600 operators, 330 leaves", "graphs of small tensors", target=1.0)
def long_chain():
    leaves = [[torch.randn(8, 8, requires_grad=True) for _ in range(3)] for _ in range(110)]
    x = torch.randn(8, 8)

    def run():
        h = x
        for i, (w, scale, shift) in enumerate(leaves):
            h = torch.tanh((h @ w) * scale + shift)
            h = h.transpose(0, 1) if i % 2 else F.gelu(h).softmax(-1)
        h.sum().backward()
        for three in leaves:
            for leaf in three:
                leaf.grad = None

    return run
