"""fill_diagonal_, the operators that only torch.ops.aten has, and the classes of symbolic numbers."""

from __future__ import annotations

import pytest

import msadapter as torch


@pytest.mark.parametrize(
    "shape, wrap, holes",
    [
        ((3, 3), False, [0, 4, 8]),
        ((7, 3), True, [0, 4, 8, 12, 16, 20]),
        ((7, 3), False, [0, 4, 8]),
        ((2, 2, 2), False, [0, 7]),
    ],
)
def test_diagonal_is_filled(shape, wrap, holes):
    filled = torch.zeros(shape).fill_diagonal_(5, wrap=wrap)
    assert filled.flatten().nonzero().flatten().tolist() == holes


def test_checks_of_tracers():
    aten = torch.ops.aten
    aten._assert_tensor_metadata.default(torch.zeros(2), (2,), (1,), torch.float32)
    with pytest.raises(RuntimeError, match=r"Tensor sizes mismatch! Expected: \[3\], Got: \[2\]"):
        aten._assert_tensor_metadata(torch.zeros(2), (3,))
    with pytest.raises(RuntimeError, match="too few"):
        aten._assert_scalar(0, "too few")
    with pytest.raises(RuntimeError, match=r"Invalid value range for 9 between \[0, 4\]"):
        aten.sym_constrain_range_for_size(9, max=4)
    assert aten.slice.Tensor(torch.arange(6), 0, 1, 5, 2).tolist() == [1, 3]


def test_symbolic_numbers_have_no_instances():
    assert not isinstance(3, torch.SymInt) and torch.sym_max(1, 2.0) == 2.0 and torch.sym_not(True) is False
    with pytest.raises(NotImplementedError, match="torch.SymInt"):
        torch.SymInt(3)


@pytest.mark.parametrize(
    "check, error",
    [
        ("_check", RuntimeError),
        ("_check_index", IndexError),
        ("_check_value", ValueError),
        ("_check_type", TypeError),
    ],
)
def test_checks_raise_their_class(check, error):
    assert getattr(torch, check)(True) is None
    with pytest.raises(error, match="^why$"):
        getattr(torch, check)(False, lambda: "why")
    with pytest.raises(TypeError, match="message must be a callable"):
        getattr(torch, check)(False, "why")
    with pytest.raises(error, match="^some$"):
        torch._check_tensor_all_with(error, torch.tensor([True, False]), lambda: "some")


@pytest.mark.parametrize("kernel", ["cudnn", "efficient", "flash", "fused"])
def test_attention_of_accelerators_has_names(kernel):
    """Programs tell a checkpoint by them what it keeps; they cannot be called, as on PyTorch's CPU."""
    name = f"_scaled_dot_product_{kernel}_attention" + ("_overrideable" if kernel == "fused" else "")
    operator = getattr(torch.ops.aten, name).default
    assert (
        operator == getattr(torch.ops.aten, name).default and len({operator, torch.ops.aten.mm.default}) == 2
    )
    with pytest.raises(NotImplementedError, match=name):
        operator(torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4), torch.ones(1, 1, 2, 4))


def test_attention_by_the_formula_also_gives_its_weights():
    torch.manual_seed(3)
    q, k, v = torch.randn(2, 4, 3, 8), torch.randn(2, 2, 5, 8), torch.randn(2, 2, 5, 6)
    out, weights = torch.ops.aten._scaled_dot_product_attention_math(q, k, v, scale=0.3, enable_gqa=True)
    k, v = (x.repeat_interleave(2, 1) for x in (k, v))
    expected = (q @ k.mT * 0.3).softmax(-1)
    torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(out, expected @ v, rtol=1e-5, atol=1e-6)
