"""Gradients of sparse tensors through autograd.grad, gradcheck, custom functions and hooks."""

from __future__ import annotations

import warnings

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


def tensors_of_onednns_layout(torch):
    """to_mkldnn and back, the operators that the layout has, and gradients through both."""
    functional = torch.nn.functional
    x = torch.arange(-8.0, 8.0).reshape(1, 1, 4, 4)
    m, w = x.to_mkldnn(), torch.tensor([[[[1.0, -2.0], [0.5, 3.0]]]])
    operators = (
        lambda: m + m,
        lambda: m * m,
        lambda: m * 2,
        lambda: m.relu(),
        lambda: torch.sigmoid(m),
        lambda: m.tanh(),
        lambda: functional.softmax(m, -1),
        lambda: functional.linear(m, w.reshape(1, 4)),
        lambda: functional.conv2d(m, w),
        lambda: functional.conv2d(m, w.to_mkldnn()),
        lambda: functional.max_pool2d(m, 2),
        lambda: functional.avg_pool2d(m, 2),
        lambda: functional.adaptive_avg_pool2d(m, 2),
        lambda: m.reshape(4, 4),
        lambda: m.transpose(2, 3),
        lambda: m.clone(),
        lambda: m.clone().zero_(),
        lambda: x.to_mkldnn(torch.bfloat16),
    )
    refused = (
        lambda: m + 2,
        lambda: m + x,
        lambda: x.double().to_mkldnn(),
        lambda: x.to(torch.int32).to_mkldnn(),
        lambda: m.to_mkldnn(),
        lambda: x.to_sparse().to_mkldnn(),
        lambda: m.numpy(),
        lambda: m.data_ptr(),
        lambda: m.untyped_storage(),
    )
    made = [operator() for operator in operators]
    p = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (p.to_mkldnn().to_dense() * p).sum().backward()
    leaf = torch.ones(3).to_mkldnn().requires_grad_()
    (leaf.to_dense() * 2).sum().backward()
    return [
        [str(m.layout), m.is_mkldnn, m.is_sparse, m.shape, m.device, m.requires_grad, repr(m)],
        [[str(y.layout), y.to_dense()] for y in made],
        [refusal(call)[0] for call in refused],
        [p.grad, str(leaf.grad.layout), leaf.grad.to_dense(), leaf.is_leaf],
        [x.to_mkldnn().to_dense() is x, x.transpose(2, 3).to_mkldnn().to_dense().stride()],
    ]


def gradcheck_of_onednns_layout(torch):
    gradcheck = torch.autograd.gradcheck
    a = torch.rand(4, requires_grad=True)
    b = torch.rand(4).to_mkldnn().requires_grad_()
    loose = {"atol": 1e-1, "check_batched_grad": False}
    return [
        gradcheck(lambda x, y: x * y.to_dense(), (a, b), fast_mode=True, **loose),
        gradcheck(lambda x, y: x * y.to_dense(), (a, b), **loose),
        refusal(gradcheck, lambda x: x.to_mkldnn(), (a,), raise_exception=False, **loose),
        refusal(
            gradcheck, lambda x: x.to_dense(), (b,), raise_exception=False, check_forward_ad=True, **loose
        ),
    ]


def sparse_gradients_of_dense_leaves(torch):
    """A sparse .grad stays the same object, unless a dense gradient arrives or a graph is recorded."""

    def sparse():
        return torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.tensor([1.0, 2.0]), (2,))

    found = []
    for create_graph in (False, True):
        for first in (None, sparse(), torch.tensor([1.0, 2.0])):
            for second in (sparse(), torch.tensor([3.0, 4.0])):
                x = torch.tensor([1.5, 1.5], requires_grad=True)
                x.grad = first
                kept = x.grad
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    x.backward(second, create_graph=create_graph)
                found.append([x.grad is kept, x.grad.is_sparse, x.grad.to_dense()])
                x.grad = None
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    (y * 1).backward(sparse())
    return [*found, y.grad.to_dense()]
