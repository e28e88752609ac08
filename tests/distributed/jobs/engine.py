"""transformer_engine's layers over several ranks, compared with the whole layer in one process."""

import torch
import torch.distributed as dist

from msadapter.transformer_engine import pytorch as te


def seeded(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def pair(size, parallel_mode, sequence_parallel, rank):
    """Return (the whole layer, this rank's part of it)."""
    whole = te.Linear(8, 12, device="cpu")
    with torch.no_grad():
        whole.weight.copy_(seeded(12, 8, seed=1))
        whole.bias.copy_(seeded(12, seed=2))
    part = te.Linear(
        8,
        12,
        device="cpu",
        parallel_mode=parallel_mode,
        tp_group=dist.group.WORLD,
        tp_size=size,
        sequence_parallel=sequence_parallel,
    )
    with torch.no_grad():
        part.weight.copy_(whole.weight.chunk(size, 0 if parallel_mode == "column" else 1)[rank])
        part.bias.copy_(whole.bias.chunk(size)[rank] if parallel_mode == "column" else whole.bias)
    return whole, part


def compare(rank, size, parallel_mode, sequence_parallel):
    whole, part = pair(size, parallel_mode, sequence_parallel, rank)
    x = seeded(4 * size, 8, seed=3).requires_grad_()
    mine = x.detach()
    if parallel_mode == "row":
        mine = mine.chunk(size, 1)[rank]
    elif sequence_parallel:
        mine = mine.chunk(size, 0)[rank]
    mine = mine.clone().requires_grad_()
    expected, out = whole(x), part(mine)
    weights = seeded(*expected.shape, seed=4)
    (expected * weights).sum().backward()
    if parallel_mode == "column":
        expected, weights = (t.chunk(size, 1)[rank] for t in (expected, weights))
        grad = x.grad.chunk(size, 0)[rank] if sequence_parallel else x.grad
        weight_grad = whole.weight.grad.chunk(size, 0)[rank]
    else:
        if sequence_parallel:
            expected, weights = (t.chunk(size, 0)[rank] for t in (expected, weights))
        grad, weight_grad = x.grad.chunk(size, 1)[rank], whole.weight.grad.chunk(size, 1)[rank]
    (out * weights).sum().backward()
    for got, want in ((out, expected), (mine.grad, grad), (part.weight.grad, weight_grad)):
        torch.testing.assert_close(got, want)


def check_column(rank, size):
    compare(rank, size, "column", False)


def check_column_of_a_sequence(rank, size):
    compare(rank, size, "column", True)


def check_row(rank, size):
    compare(rank, size, "row", False)


def check_row_of_a_sequence(rank, size):
    compare(rank, size, "row", True)


def chain(rank, size, sequence_parallel):
    """A column-parallel and a row-parallel product in a chain, as Megatron makes its MLP of them."""
    ops = te.ops
    first, second, bias = seeded(12, 8, seed=1), seeded(8, 12, seed=2), seeded(8, seed=4)
    column = ops.BasicLinear(8, 12, device="meta", tensor_parallel_mode="column", tensor_parallel_group=dist.group.WORLD,
        sequence_parallel=sequence_parallel)  # fmt: skip
    row = ops.BasicLinear(12 // size, 8, device="meta")
    total = ops.Bias(8, device="cpu")
    column.weight = torch.nn.Parameter(first.chunk(size, 0)[rank].clone())
    row.weight = torch.nn.Parameter(second.chunk(size, 1)[rank].clone())
    with torch.no_grad():
        total.bias.copy_(bias)
    reduce = ops.ReduceScatter if sequence_parallel else ops.AllReduce
    layer = ops.Sequential(column, ops.GELU(), row, reduce(dist.group.WORLD), total)
    x = seeded(4 * size, 8, seed=3).requires_grad_()
    mine = (x.detach().chunk(size, 0)[rank] if sequence_parallel else x.detach()).clone().requires_grad_()
    hidden = torch.nn.functional.gelu(x @ first.T, approximate="tanh")
    expected, out = hidden @ second.T + bias, layer(mine)
    weights = seeded(*expected.shape, seed=5)
    (expected * weights).sum().backward()
    if sequence_parallel:
        (out * weights.chunk(size, 0)[rank]).sum().backward()
        expected, grad = expected.chunk(size, 0)[rank], x.grad.chunk(size, 0)[rank]
    else:
        (out * weights).sum().backward()
        grad = x.grad
    for got, want in ((out, expected), (mine.grad, grad)):
        torch.testing.assert_close(got, want)
    torch.testing.assert_close(row.weight.grad, (weights.T @ hidden.detach()).chunk(size, 1)[rank])


def check_chain(rank, size):
    chain(rank, size, False)


def check_chain_of_a_sequence(rank, size):
    chain(rank, size, True)


def check_row_of_a_chain(rank, size):
    layer = te.ops.BasicLinear(8, 3, device="meta", tensor_parallel_mode="row")
    whole = seeded(3, 8, seed=1)
    layer.weight = torch.nn.Parameter(whole.chunk(size, 1)[rank].clone())
    x = seeded(5, 8, seed=3)
    torch.testing.assert_close(layer(x.chunk(size, 1)[rank]), x @ whole.T)
    assert (layer.local_in_features, layer.local_out_features) == (8 // size, 3)
    bias = te.ops.Bias(6, device="cpu", tensor_parallel=True, tensor_parallel_group=dist.group.WORLD)
    assert bias.bias.shape == (6 // size,)


def context(rank, size, way, causal):
    length, parts = 4 * size, 2 * size
    tensors = [seeded(length, 2, 2 * size, 3, seed=s).requires_grad_() for s in range(3)]
    mask = "causal" if causal else "no_mask"
    expected = te.DotProductAttention(2 * size, 3)(*tensors, attn_mask_type=mask)
    weights = seeded(*expected.shape, seed=9)
    (expected * weights).sum().backward()

    def own(t):
        pieces = t.chunk(parts, 0)
        return torch.cat((pieces[rank], pieces[parts - 1 - rank]))

    mine = [own(t.detach()).requires_grad_() for t in tensors]
    attention = te.DotProductAttention(2 * size, 3, cp_group=dist.group.WORLD, cp_comm_type=way)
    out = attention(*mine, attn_mask_type=mask)
    torch.testing.assert_close(out, own(expected))
    (out * own(weights)).sum().backward()
    for got, whole in zip(mine, tensors, strict=True):
        torch.testing.assert_close(got.grad, own(whole.grad))


def check_context_gathered(rank, size):
    context(rank, size, "p2p", True)
    context(rank, size, "all_gather", False)


def check_context_heads_exchanged(rank, size):
    context(rank, size, "a2a", True)
    context(rank, size, "a2a", False)
