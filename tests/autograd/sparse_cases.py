"""Gradients of sparse tensors through autograd.grad, gradcheck, custom functions and hooks."""

from __future__ import annotations

from tests.golden.answers import refusal

LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc")


def _matrix(torch):
    return torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0]], dtype=torch.float64)


def _as(torch, layout):
    return _matrix(torch).to_sparse(layout=getattr(torch, layout))


def gradients_that_grad_returns(torch):
    found = []
    for layout in LAYOUTS:
        x = _as(torch, layout).requires_grad_()
        (g,) = torch.autograd.grad((x.to_dense() * 2).sum(), x)
        found.append([layout, str(g.layout), g.to_dense(), x.grad is None])
    return found


def gradients_of_sparse_results(torch):
    found = []
    for layout in LAYOUTS:
        x = _matrix(torch).requires_grad_()
        y = x.to_sparse(layout=getattr(torch, layout))
        given = (_matrix(torch) * 5).to_sparse(layout=getattr(torch, layout))
        (g,) = torch.autograd.grad(y, x, given)
        found.append([layout, g])
    x = _matrix(torch).requires_grad_()
    x.to_sparse().backward((_matrix(torch) * 3).to_sparse())
    return [*found, x.grad]


def gradients_of_other_shapes(torch):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    return [refusal(lambda: x.to_sparse().backward(torch.ones(3, dtype=torch.float64).to_sparse()))[0]]


def checked_gradients(torch):
    found = []
    for layout in LAYOUTS:
        x = _as(torch, layout).requires_grad_()
        for fast in (False, True):
            found.append(
                torch.autograd.gradcheck(
                    lambda v: v.to_dense().sin(), (x,), masked=True, check_batched_grad=False, fast_mode=fast
                )
            )
    x = _as(torch, "sparse_coo").requires_grad_()
    check = torch.autograd.gradcheck
    for strict in (True, False):
        found.append(
            refusal(
                lambda s=strict: check(
                    lambda v: v, (x,), masked=True, check_batched_grad=False, raise_exception=s
                )
            )
        )
    return found


def saved_by_a_function(torch):
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, s):
            ctx.save_for_backward(x, s)
            return x * s.to_dense()

        @staticmethod
        def backward(ctx, g):
            x, s = ctx.saved_tensors
            return g * s.to_dense(), None

    found = []
    for layout in LAYOUTS:
        x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
        Keep.apply(x, _as(torch, layout)).sum().backward()
        found.append(x.grad)
    return found


def sums_of_entries(torch):
    """Entries with the same index are kept apart unless both tensors are coalesced or have the same indices."""
    i, v = torch.tensor([[1, 0, 1]]), torch.tensor([1.0, 2.0, 3.0])
    s, other = torch.sparse_coo_tensor(i, v, (3,)), torch.sparse_coo_tensor(i + 1, v, (4,))
    spread = torch.sparse_coo_tensor(i, torch.ones(1, 4).expand(3, 4), (3, 4))
    found = []
    for a, b in ((s, s), (s.coalesce(), s.coalesce()), (spread, spread), (other, other)):
        total = a + b
        found.append([total._indices().tolist(), total._values(), total.is_coalesced()])
    return found


def gradients_of_embeddings_that_add_up(torch):
    table = torch.arange(12.0).reshape(4, 3).requires_grad_()
    places = torch.tensor([1, 3])
    for _ in range(2):
        torch.nn.functional.embedding(places, table, sparse=True).sum().backward()
    before = table.grad._indices().clone()
    places[0] = 2
    empty = torch.zeros(3, 0, requires_grad=True)
    torch.nn.functional.embedding(torch.tensor([1, 1]), empty, sparse=True).sum().backward()
    return [before, table.grad._indices(), table.grad._values(), tuple(empty.grad.shape)]
