"""The .grad of a sparse tensor is one object, and what a program writes to its values stays there, as in PyTorch."""

import copy
import pickle

import pytest

import msadapter as torch


def _leaf(coalesced: bool):
    made = torch.sparse_coo_tensor([[0, 1, 0], [2, 0, 2]], [16.0, 32.0, 64.0], (2, 3))
    return (made.coalesce() if coalesced else made).detach().requires_grad_()


def _pass(x) -> None:
    """Add 2 to the gradient at (0, 2), and 3 at (1, 0)."""
    (x.to_dense() * torch.arange(6.0).view(2, 3)).sum().backward()


def _at(gradient) -> list:
    dense = gradient.to_dense()
    return [dense[0, 2].item(), dense[1, 0].item()]


@pytest.mark.parametrize("coalesced", [False, True])
def test_written_values_and_passes_add_up(coalesced, torch_by_name):
    x = _leaf(coalesced)
    _pass(x)
    gradient = x.grad
    assert x.grad is gradient and _at(gradient) == [2, 3]
    gradient._values().mul_(10)
    assert _at(x.grad) == [20, 30]
    _pass(x)
    assert _at(x.grad) == [22, 33] and _at(gradient) == [22, 33]
    x.grad.mul_(2)
    assert _at(x.grad) == [44, 66]
    _pass(x)
    x.grad._values().neg_()
    assert _at(x.grad) == [-46, -69]
    assert _at(pickle.loads(pickle.dumps(x.grad))) == [-46, -69]
    x.grad = None
    assert x.grad is None
    _pass(x)
    assert _at(x.grad) == [2, 3]


@pytest.mark.parametrize("coalesced", [False, True])
def test_a_given_gradient_is_kept(coalesced):
    x = _leaf(coalesced)
    given = torch.sparse_coo_tensor([[1, 0], [0, 2]], [5.0, 7.0], (2, 3))
    x.grad = given
    assert x.grad is given
    given._values().mul_(2)
    assert _at(x.grad) == [14, 10]
    _pass(x)
    assert _at(x.grad) == [16, 13]


def test_a_gradient_with_a_graph():
    x = _leaf(False)
    _pass(x)
    x.grad._values().mul_(10)
    (x.to_dense() ** 2).sum().backward(create_graph=True)
    assert x.grad.requires_grad and _at(x.grad.detach()) == [20 + 2 * 80, 30 + 2 * 32]


def test_a_scaler_divides_the_gradients_of_sparse_parameters():
    x = _leaf(False)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    optimizer = torch.optim.SGD([x], lr=1.0)
    scaler.scale((x.to_dense() * torch.arange(6.0).view(2, 3)).sum()).backward()
    assert _at(x.grad) == [8, 12]
    scaler.unscale_(optimizer)
    assert _at(x.grad) == [2, 3]


def test_a_deep_copy_has_all_of_the_gradient():
    """Also where the tensor itself stores nothing."""
    x = torch.sparse_coo_tensor(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(0), (2, 3)).requires_grad_()
    x.grad = torch.sparse_coo_tensor([[1, 0], [0, 2]], [5.0, 7.0], (2, 3))
    copied = copy.deepcopy(x)
    assert _at(copied.grad) == [7, 5] and copied.grad is not x.grad


@pytest.mark.parametrize("make", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_a_gradient_at_positions_that_are_not_stored_is_refused(make, torch_by_name):
    x = make(torch.eye(2))
    assert torch.equal(x.to_dense(masked_grad=False), torch.eye(2))
    with pytest.raises(NotImplementedError, match="to_dense: masked_grad=False"):
        x.requires_grad_().to_dense(masked_grad=False)
