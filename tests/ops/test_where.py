"""torch.where with one and three operands, as a method, and list * 0-dim tensor."""

import pytest

import msadapter as torch

CONDITION = torch.tensor([[True, False], [True, True]])


def test_condition_alone_gives_indices():
    rows, columns = torch.where(CONDITION)
    assert rows.tolist() == [0, 1, 1] and columns.tolist() == [0, 0, 1]


def test_method_and_function_agree():
    x = torch.arange(4.0).view(2, 2)
    assert torch.equal(x.where(CONDITION, torch.tensor(-1.0)), torch.where(CONDITION, x, -1.0))
    out = torch.empty(2, 2)
    assert torch.where(CONDITION, x, -x, out=out) is out and out.tolist() == [[0, -1], [2, 3]]


def test_gradient_goes_where_the_value_came_from():
    x, y = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2, requires_grad=True)
    torch.where(CONDITION, x, y).sum().backward()
    assert torch.equal(x.grad, CONDITION.float()) and torch.equal(y.grad, 1 - CONDITION.float())


def test_two_operands_are_an_error():
    with pytest.raises(TypeError, match="where"):
        torch.where(CONDITION, torch.ones(2, 2))


def test_a_sequence_is_repeated_and_not_multiplied():
    assert [1, 2] * torch.tensor(2) == [1, 2, 1, 2]
    with pytest.raises(TypeError, match="can only concatenate list"):
        [1] + torch.tensor(2)
