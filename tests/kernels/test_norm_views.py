"""Results of fused operators are tensors of their own, to which a program may write."""

from __future__ import annotations

import msadapter as torch
from msadapter import torch_npu


def test_the_result_of_a_body_is_no_view() -> None:
    """DeepSeek-V4 of MindSpeed-LLM normalises queries and then writes their rotated part in place."""
    x = torch.randn(6, 2, 32, requires_grad=True)
    normal, rstd = torch_npu.npu_rms_norm(x.view(6, 2, 2, 16), gamma=torch.ones(16), epsilon=1e-6)
    assert not normal._is_view() and not rstd._is_view()
    turned = normal.transpose(0, 1)
    turned[..., -4:] = turned[..., -4:] * 2
    turned.sum().backward()

    y = x.detach().requires_grad_()
    rows = y.view(6, 2, 2, 16)
    expected = rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + 1e-6)
    (expected[..., :-4].sum() + 2 * expected[..., -4:].sum()).backward()
    torch.testing.assert_close(x.grad, y.grad)
