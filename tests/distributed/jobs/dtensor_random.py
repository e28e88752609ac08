"""Operators on operands with random placements must give the values and gradients of ordinary tensors.

MSADAPTER_DTENSOR_ROUNDS is how often each operator is tried (default 1). MSADAPTER_DTENSOR_SEED selects other
placements.
"""

import os
import random

import torch
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor._dtensor import placed

ROUNDS, SEED = (
    int(os.environ.get("MSADAPTER_DTENSOR_ROUNDS", 1)),
    int(os.environ.get("MSADAPTER_DTENSOR_SEED", 0)),
)


def like(x, values):
    """Return a whole tensor of integers with the shape that ``x`` needs."""
    made = torch.tensor(values)
    return (
        distribute_tensor(made, x.device_mesh, [Replicate()] * x.device_mesh.ndim)
        if isinstance(x, DTensor)
        else made
    )


OPERATORS = {
    "add": (lambda a, b: a + b, (5, 6), (5, 6)),
    "add_row": (lambda a, b: a + b, (5, 6), (6,)),
    "mul_column": (lambda a, b: a * b, (4, 5, 6), (5, 1)),
    "div": (lambda a, b: a / (b.abs() + 1), (5, 6), (5, 6)),
    "sub": (lambda a, b: a - b, (5, 6), (1, 6)),
    "maximum": (torch.maximum, (5, 6), (5, 6)),
    "where": (lambda a, b: torch.where(a > 0, a, b), (5, 6), (5, 6)),
    "addcmul": (torch.addcmul, (5, 6), (5, 6), (5, 6)),
    "lerp": (lambda a, b: torch.lerp(a, b, 0.3), (5, 6), (5, 6)),
    "gelu": (F.gelu, (5, 6)),
    "pow": (lambda a: a**3, (5, 6)),
    "clamp": (lambda a: a.clamp(-0.5, 0.5), (5, 6)),
    "mm": (torch.mm, (6, 4), (4, 5)),
    "matmul_3_2": (torch.matmul, (2, 6, 4), (4, 5)),
    "matmul_4_4": (torch.matmul, (2, 3, 6, 4), (2, 3, 4, 5)),
    "matmul_broadcast": (torch.matmul, (2, 1, 6, 4), (3, 4, 5)),
    "matmul_vector": (torch.matmul, (6, 4), (4,)),
    "vector_matmul": (torch.matmul, (4,), (4, 6)),
    "dot": (torch.dot, (6,), (6,)),
    "linear": (F.linear, (3, 6, 4), (5, 4), (5,)),
    "bmm": (torch.bmm, (4, 3, 5), (4, 5, 2)),
    "addmm": (torch.addmm, (6, 5), (6, 4), (4, 5)),
    "addmm_row": (torch.addmm, (5,), (6, 4), (4, 5)),
    "baddbmm": (torch.baddbmm, (4, 3, 2), (4, 3, 5), (4, 5, 2)),
    "einsum": (lambda a, b: torch.einsum("bij,bjk->bik", a, b), (4, 3, 5), (4, 5, 2)),
    "conv2d": (F.conv2d, (4, 3, 5, 5), (2, 3, 3, 3)),
    "attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        *[(4, 2, 5, 3)] * 3,
    ),
    "sum": (lambda a: a.sum(), (5, 6)),
    "sum_0": (lambda a: a.sum(0), (5, 6)),
    "sum_kept": (lambda a: a.sum(1, keepdim=True), (5, 6)),
    "mean": (lambda a: a.mean(), (4, 8)),
    "mean_0": (lambda a: a.mean(0), (5, 6)),
    "mean_last": (lambda a: a.mean(-1), (4, 8)),
    "amax": (lambda a: a.amax(1), (5, 6)),
    "max": (lambda a: a.max(), (5, 6)),
    "min_values": (lambda a: a.min(0).values, (5, 6)),
    "var": (lambda a: a.var(1), (5, 6)),
    "std": (lambda a: a.std(0), (5, 6)),
    "norm": (torch.linalg.vector_norm, (5, 6)),
    "norm_1": (lambda a: torch.linalg.vector_norm(a, 1, 0), (5, 6)),
    "logsumexp": (lambda a: a.logsumexp(0), (5, 6)),
    "prod": (lambda a: a.prod(0), (5, 6)),
    "softmax": (lambda a: a.softmax(-1), (5, 6)),
    "log_softmax": (lambda a: F.log_softmax(a, 0), (5, 6)),
    "cumsum": (lambda a: a.cumsum(0), (5, 6)),
    "layer_norm": (lambda a, w, b: F.layer_norm(a, (6,), w, b), (4, 5, 6), (6,), (6,)),
    "rms_norm": (lambda a, w: F.rms_norm(a, (6,), w), (4, 5, 6), (6,)),
    "view": (lambda a: a.view(4, 3, 2, 4), (12, 8)),
    "reshape_rows": (lambda a: a.reshape(-1, 8), (4, 3, 8)),
    "reshape_columns": (lambda a: a.reshape(4, 24), (4, 3, 8)),
    "reshape_across": (lambda a: a.reshape(6, 4, 4), (12, 8)),
    "view_with_one": (lambda a: a.view(5, 1, 6), (5, 6)),
    "flatten": (lambda a: a.flatten(), (4, 3, 8)),
    "unflatten": (lambda a: a.unflatten(1, (2, 3)), (5, 6)),
    "t": (lambda a: a.t(), (5, 6)),
    "permute": (lambda a: a.permute(2, 0, 1), (4, 5, 6)),
    "movedim": (lambda a: a.movedim(0, -1), (4, 5, 6)),
    "unsqueeze": (lambda a: a.unsqueeze(1), (5, 6)),
    "squeeze": (lambda a: a.squeeze(), (5, 1, 6)),
    "expand": (lambda a: a.expand(3, 5, 6), (5, 6)),
    "expand_one": (lambda a: a.expand(5, 6), (5, 1)),
    "repeat": (lambda a: a.repeat(2, 1), (5, 6)),
    "slice": (lambda a: a[1:4], (6, 5)),
    "slice_step": (lambda a: a[:, ::2], (6, 5)),
    "select": (lambda a: a[2], (6, 5)),
    "select_last": (lambda a: a[..., -1], (6, 5)),
    "new_axis": (lambda a: a[:, None], (6, 5)),
    "index": (lambda a: a[torch.tensor([0, 3, 1])], (5, 6)),
    "split_cat": (lambda a: torch.cat(list(a.split(2, 0)), 1), (6, 5)),
    "chunk": (lambda a: sum(a.chunk(2, -1)), (5, 6)),
    "unbind_stack": (lambda a: torch.stack(a.unbind(0), 1), (4, 5)),
    "cat": (lambda a, b: torch.cat([a, b], 0), (5, 6), (3, 6)),
    "tril": (lambda a: a.tril(), (4, 5, 5)),
    "flip": (lambda a: a.flip(0), (5, 6)),
    "roll": (lambda a: a.roll(1, 0), (5, 6)),
    "diagonal": (lambda a: a.diagonal(), (5, 5)),
    "topk": (lambda a: a.topk(2, 0).values, (5, 6)),
    "glu": (lambda a: F.glu(a, -1), (5, 6)),
    "gather": (lambda a: a.gather(1, like(a, [[0], [1], [2], [3], [4]])), (5, 6)),
    "embedding": (lambda w: F.embedding(like(w, [[0, 3], [1, 4]]), w), (7, 6)),
    "embedding_padded": (lambda w: F.embedding(like(w, [[0, 3], [1, 4]]), w, padding_idx=3), (7, 6)),
    "mse": (F.mse_loss, (4, 8), (4, 8)),
    "cross_entropy": (lambda a: F.cross_entropy(a, like(a, [0, 1, 2, -100, 4])), (5, 6)),
}


def chosen(generator, rank: int, mesh) -> list:
    every = [Replicate(), Partial(), *[Shard(d) for d in range(rank)] * 2]
    return [generator.choice(every) for _ in range(mesh.ndim)]


def _check(name, size):
    mesh = init_device_mesh("cpu", (2, 2) if size == 4 else (size,))
    function, *shapes = OPERATORS[name]
    generator = random.Random(f"{SEED} {name}")
    for turn in range(ROUNDS):
        placements = [chosen(generator, len(shape), mesh) for shape in shapes]
        torch.manual_seed(turn)
        plain = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
        expected = function(*plain)
        weights = torch.randn(expected.shape, dtype=torch.float64)
        (expected * weights).sum().backward()
        leaves = [
            distribute_tensor(x.detach(), mesh, [Replicate()] * mesh.ndim).requires_grad_() for x in plain
        ]
        got = function(*(placed(x, p) for x, p in zip(leaves, placements, strict=True)))
        assert got.shape == expected.shape
        whole = got.full_tensor()
        (whole * weights).sum().backward()
        assert torch.allclose(whole, expected, atol=1e-9), placements
        for x, leaf in zip(plain, leaves, strict=True):
            assert torch.allclose(leaf.grad.full_tensor(), x.grad, atol=1e-9), placements


# in a single round, each number of ranks tests every second operator
for _name in list(OPERATORS)[int(os.environ["WORLD_SIZE"]) % 2 :: 2] if ROUNDS == 1 else OPERATORS:
    globals()["check_" + _name] = lambda rank, size, name=_name: _check(name, size)
