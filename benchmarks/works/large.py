"""Works on large tensors, which measure the speed of kernels."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F

from .registry import work


def _matmul(n, dtype):
    a, b = (torch.randn(n, n).to(dtype) for _ in range(2))
    return functools.partial(torch.matmul, a, b)


def _linear(n, dtype):
    x, w, b = (torch.randn(*shape).to(dtype) for shape in ((n, n), (n, n), (n,)))
    return functools.partial(F.linear, x, w, b)


for _type, _sizes in (("float32", (256, 512, 1024, 2048)), ("bfloat16", (256, 512, 1024, 2048))):
    for _n in _sizes:
        for _name, _prepare in (("matmul", _matmul), ("linear", _linear)):
            work(f"{_name} {_n} {_type}", "products", flops=2 * _n**3, target=0.95)(
                functools.partial(_prepare, _n, getattr(torch, _type))
            )


@work("batched matmul 32x128x128", "products", flops=2 * 32 * 128**3)
def batched():
    return functools.partial(torch.bmm, torch.randn(32, 128, 128), torch.randn(32, 128, 128))


LARGE = {  # the minimum memory traffic, in multiples of the tensor's size
    "add": (lambda x, y: x + y, 3),
    "add_": (lambda x, y: x.add_(y), 3),
    "x * scalar": (lambda x, y: x * 2.0, 2),
    "exp": (lambda x, y: x.exp(), 2),
    "gelu": (lambda x, y: F.gelu(x), 2),
    "mul": (lambda x, y: x * y, 3),
    "silu": (lambda x, y: F.silu(x), 2),
    "tanh": (lambda x, y: x.tanh(), 2),
    "compare": (lambda x, y: x > y, 2.25),
    "where": (lambda x, y: torch.where(x > 0, x, y), 3),
    "sum": (lambda x, y: x.sum(), 1),
    "sum(0)": (lambda x, y: x.sum(0), 1),
    "mean(-1)": (lambda x, y: x.mean(-1), 1),
    "var(-1)": (lambda x, y: x.var(-1), 1),
    "argmax(-1)": (lambda x, y: x.argmax(-1), 1),
    "amax(-1)": (lambda x, y: x.amax(-1), 1),
    "softmax": (lambda x, y: torch.softmax(x, -1), 2),
    "log_softmax": (lambda x, y: torch.log_softmax(x, -1), 2),
    "layer_norm": (lambda x, y: F.layer_norm(x, (1024,)), 2),
    "rms_norm": (lambda x, y: F.rms_norm(x, (1024,)), 2),
    "group_norm": (lambda x, y: F.group_norm(x.view(8, 128, 1024), 8), 2),
    "transposed copy": (lambda x, y: x.t().contiguous(), 2),
    "to bfloat16": (lambda x, y: x.to(torch.bfloat16), 1.5),
    "cat": (lambda x, y: torch.cat((x, y)), 4),
    "randn": (lambda x, y: torch.randn(1024, 1024), 1),
}


def _large(call):
    return functools.partial(call, torch.randn(1024, 1024), torch.randn(1024, 1024))


for _name, (_call, _passes) in LARGE.items():
    work(f"{_name} 1024x1024", "1024x1024 float32", moved=_passes * 2**22, target=0.9)(
        functools.partial(_large, _call)
    )


@work("copy 64 MB", "1024x1024 float32", moved=2 * 2**26)
def copy():
    target, source = torch.zeros(2**24), torch.ones(2**24)
    return functools.partial(target.copy_, source)
