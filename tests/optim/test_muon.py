"""Muon, compared with its rule: momentum, orthogonalised by the quintic iteration, and a scaled rate."""

from __future__ import annotations

import math

import pytest

import msadapter as torch


def _rule(p, grads, *, lr, decay, momentum, nesterov, match):
    buffer = torch.zeros_like(p)
    for g in grads:
        buffer = momentum * buffer + (1 - momentum) * g
        update = (1 - momentum) * g + momentum * buffer if nesterov else buffer
        left, _, right = torch.linalg.svd(update, full_matrices=False)
        rows, columns = p.shape
        scale = 0.2 * math.sqrt(max(rows, columns)) if match else math.sqrt(max(1, rows / columns))
        p = p * (1 - lr * decay) - lr * scale * (left @ right)
    return p


@pytest.mark.parametrize("shape", [(4, 6), (6, 4)])
@pytest.mark.parametrize("nesterov, match", [(True, False), (False, True)])
def test_steps_are_near_the_orthogonal_matrix(shape, nesterov, match):
    generator = torch.Generator().manual_seed(3)
    start = torch.randn(shape, generator=generator)
    grads = [torch.randn(shape, generator=generator) for _ in range(3)]
    p = torch.nn.Parameter(start.clone())
    rate = {"adjust_lr_fn": "match_rms_adamw"} if match else {}
    optimizer = torch.optim.Muon([p], lr=0.02, weight_decay=0.1, momentum=0.9, nesterov=nesterov, **rate)
    for g in grads:
        p.grad = g.clone()
        optimizer.step()
    want = _rule(start, grads, lr=0.02, decay=0.1, momentum=0.9, nesterov=nesterov, match=match)
    moved = (want - start).norm()
    assert (
        p.detach() - want
    ).norm() < 0.35 * moved  # the iteration gives singular values between 0.7 and 1.2
    again = torch.optim.Muon([p], lr=0.02)
    again.load_state_dict(optimizer.state_dict())
    assert torch.equal(again.state[p]["momentum_buffer"], optimizer.state[p]["momentum_buffer"])
