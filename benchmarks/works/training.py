"""Parts of training steps."""

from __future__ import annotations

import functools

import torch
import torch.nn.functional as F

from .registry import work


def _attention(shape):
    q, k, v = (torch.randn(*shape, requires_grad=True) for _ in range(3))
    return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()


for _shape, _goal in (((2, 8, 128, 16), 0), ((2, 8, 512, 64), 1.0), ((1, 8, 2048, 64), 1.0)):
    work(f"attention {'x'.join(map(str, _shape))}", "training", target=_goal, memory=_shape[2] == 2048)(
        functools.partial(_attention, _shape)
    )


def _adamw(count, shape):
    params = [torch.randn(*shape, requires_grad=True) for _ in range(count)]
    for p in params:
        p.grad = torch.ones_like(p)
    return torch.optim.AdamW(params, lr=1e-3).step


work("AdamW 100 of 32x32", "training")(functools.partial(_adamw, 100, (32, 32)))
work("AdamW 200 of 200x250", "training", target=1.0)(functools.partial(_adamw, 200, (200, 250)))
work("AdamW 24 of 256x512", "training")(functools.partial(_adamw, 24, (256, 512)))


@work("clip_grad_norm_ 100 of 32x32", "training")
def clip():
    params = [torch.randn(32, 32, requires_grad=True) for _ in range(100)]
    for p in params:
        p.grad = torch.ones_like(p)
    return functools.partial(torch.nn.utils.clip_grad_norm_, params, 1.0)


class Rows(torch.utils.data.Dataset):
    """A data set whose rows of numbers are made on access."""

    def __len__(self):
        return 2048

    def __getitem__(self, i):
        return torch.full((256,), i), i


def _loading(workers):
    loader = torch.utils.data.DataLoader(
        Rows(), batch_size=32, shuffle=True, num_workers=workers, persistent_workers=workers > 0
    )
    return lambda: sum(len(labels) for _, labels in loader)


for _workers in (0, 2):
    work(f"DataLoader, 2048 rows of 256, {_workers} workers", "training")(
        functools.partial(_loading, _workers)
    )
