"""Products, compared with recorded answers of PyTorch (tests/golden/expressions/nn_ops.py), and their use of
memory.
"""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("matmul")


@together(CASES)
def test_case(case):
    check("matmul", case, CASES[case], torch)


def test_large_product_does_not_depend_on_threads():
    a, b = torch.randn(300, 513), torch.randn(513, 257)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = torch.mm(a, b)
        torch.set_num_threads(3)
        assert torch.equal(torch.mm(a, b), one)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("shape", [(1, 700, 900), (257, 300, 1), (129, 513, 65)])
@pytest.mark.parametrize("transposed", [False, True])
def test_blocks_and_edges(shape, transposed):
    m, k, n = shape
    a = torch.randn(k, m).t() if transposed else torch.randn(m, k)
    b = torch.randn(n, k).t() if transposed else torch.randn(k, n)
    torch.testing.assert_close(
        torch.mm(a, b).double(), torch.mm(a.double(), b.double()), rtol=1e-4, atol=1e-4
    )


def test_gradient_over_an_empty_inner_dim():
    a, b = torch.ones(2, 3, 0, requires_grad=True), torch.ones(0, 5, requires_grad=True)
    out = a @ b
    out.sum().backward()
    assert out.eq(0).all() and a.grad.shape == (2, 3, 0) and b.grad.shape == (0, 5)
    w = torch.ones(5, 0, requires_grad=True)
    torch.nn.functional.linear(a, w).sum().backward()
    assert w.grad.shape == (5, 0)


def _laid_out(values, order, gaps):
    """Return `values` with dims stored in `order` (outermost first) and gaps[d] lines of NaN after every
    line.
    """
    shape = [n + gap for n, gap in zip(values.shape, gaps, strict=True)]
    base = torch.full([shape[d] for d in order], float("nan"), dtype=values.dtype)
    view = base.permute([order.index(d) for d in range(len(order))])
    view = view[tuple(slice(0, n) for n in values.shape)]
    view.copy_(values)
    return view


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("m, k, n", [(4, 1, 16), (1, 1, 5), (33, 1, 7), (4, 3, 1), (1, 6, 1), (7, 2, 5)])
def test_products_of_every_layout(dtype, m, k, n):
    """A regression test: batches with an inner dimension of 1 read memory outside of the right operand's
    rows.
    """
    a, b = torch.randn(3, m, k).to(dtype), torch.randn(3, k, n).to(dtype)
    wide = torch.complex128 if dtype.is_complex else torch.float64
    expected = (a.to(wide).unsqueeze(3) * b.to(wide).unsqueeze(1)).sum(2).to(dtype)
    orders = [(0, 1, 2), (0, 2, 1), (1, 0, 2), (2, 1, 0)]
    for order in orders:
        for gaps in ((0, 0, 0), (0, 0, 1), (0, 7, 0), (2, 1, 3)):
            left, right = _laid_out(a, order, gaps), _laid_out(b, order, gaps)
            for x, y in ((a, right), (left, b), (left, right)):
                torch.testing.assert_close(torch.bmm(x, y), expected)
                torch.testing.assert_close(x @ y, expected)
                torch.testing.assert_close(torch.einsum("bmk,bkn->bmn", x, y), expected)
                torch.testing.assert_close(x[0] @ y[0], expected[0])


def test_strides_of_dims_of_one_element_do_not_matter():
    a, b = torch.randn(2, 4, 1), torch.randn(2, 8, 16)
    expected = a * b[:, :1]
    for strides in ((128, 16, 1), (128, 1, 1), (128, 500, 1)):
        torch.testing.assert_close(torch.bmm(a, b.as_strided((2, 1, 16), strides)), expected)


def test_gradient_of_a_product_with_rows_of_a_larger_tensor():
    x = torch.randn(2, 8, 16, requires_grad=True)
    g = torch.randn(2, 4, 1, requires_grad=True)
    torch.bmm(g, x[:, 0].unsqueeze(1)).sum().backward()
    torch.testing.assert_close(g.grad, x[:, 0].sum(-1).detach().view(2, 1, 1).expand(2, 4, 1))
    torch.testing.assert_close(x.grad[:, 0], g.detach().sum((1, 2)).view(2, 1).expand(2, 16))
    assert x.grad[:, 1:].eq(0).all()


def test_rows_that_overlap():
    windows = torch.arange(12.0).as_strided((3, 4, 5), (2, 1, 1))
    torch.testing.assert_close(windows @ torch.ones(3, 5, 2), windows.contiguous() @ torch.ones(3, 5, 2))
    torch.testing.assert_close(torch.ones(3, 2, 4) @ windows, torch.ones(3, 2, 4) @ windows.contiguous())
