"""Programs on DTensors, run by real PyTorch for the expectations and by msadapter in the tests.

A case is a function of a `Kit`; it gives DTensors. What is compared: the whole values, the placements, and for cases that ask for
them the whole gradients of the kit's leaves. Every operation is on two processes in one dim, or on four in two."""

import torch
import torch.nn.functional as F
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

R, S0, S1, S2 = Replicate(), Shard(0), Shard(1), Shard(2)


class Kit:
    """Makes leaves with fixed values."""

    def __init__(self, mesh):
        self.mesh, self.leaves, self.count = mesh, [], 0

    def whole(self, *shape, dtype=torch.float32):
        self.count += 1
        n = 1
        for length in shape:
            n *= length
        values = torch.sin(torch.arange(n, dtype=torch.float64) * 1.7 + self.count)
        if not dtype.is_floating_point:
            return (values * 100).to(torch.int64).abs().reshape(shape).to(dtype)
        return values.reshape(shape).to(dtype)

    def leaf(self, shape, *placements, grad=False, dtype=torch.float32):
        made = distribute_tensor(self.whole(*shape, dtype=dtype), self.mesh, placements)
        if grad:
            made.requires_grad_()
            self.leaves.append(made)
        return made

    def partial(self, *shape, op="sum"):
        """A partial DTensor. The local part of process i is the values times i + 1."""
        part = self.whole(*shape) * (self.mesh.get_local_rank() + 1)
        return DTensor.from_local(part, self.mesh, [Partial(op)])


def _unary(name, *args, **options):
    def case(k):
        x = k.leaf((5, 4), S0, grad=True)
        return getattr(x, name)(*args, **options)

    return case


CASES = {
    # element by element
    "add_same": lambda k: k.leaf((5, 4), S0, grad=True) + k.leaf((5, 4), S0, grad=True),
    "add_broadcast": lambda k: k.leaf((5, 4), S0, grad=True) + k.leaf((4,), R, grad=True),
    "add_broadcast_cut": lambda k: k.leaf((5, 4), S1, grad=True) * k.leaf((4,), S0, grad=True),
    "add_number": lambda k: k.leaf((5, 4), S1) + 2.5,
    "mul_other_way": lambda k: k.leaf((5, 4), S0, grad=True) * k.leaf((5, 4), R, grad=True),
    "add_whole_first": lambda k: k.leaf((4,), R) + k.leaf((3, 4), S0),
    "sub_0dim": lambda k: k.leaf((5, 4), S0) - torch.tensor(1.5),
    "gelu": lambda k: F.gelu(k.leaf((5, 4), S0, grad=True)),
    "silu": lambda k: F.silu(k.leaf((5, 4), S1, grad=True)),
    "relu": _unary("relu"),
    "exp": _unary("exp"),
    "neg": _unary("neg"),
    "to": _unary("to", torch.float64),
    "clone": _unary("clone"),
    "pow": lambda k: k.leaf((5, 4), S0, grad=True) ** 2,
    "where": lambda k: torch.where(
        k.leaf((5, 4), S0) > 0, k.leaf((5, 4), S0, grad=True), k.leaf((5, 4), S0, grad=True)
    ),
    "masked_fill": lambda k: k.leaf((6, 4), S0).masked_fill(k.leaf((6, 4), S0) > 0, 0.5),
    "partial_add": lambda k: k.partial(4, 4) + k.partial(4, 4),
    "partial_mul_number": lambda k: k.partial(4, 4) * 2,
    "partial_exp": lambda k: k.partial(4, 4).exp(),
    "partial_div": lambda k: k.partial(4, 4) / 4,
    # products
    "mm_rows": lambda k: k.leaf((6, 4), S0, grad=True) @ k.leaf((4, 5), R, grad=True),
    "mm_columns": lambda k: k.leaf((6, 4), R, grad=True) @ k.leaf((4, 5), S1, grad=True),
    "mm_inner": lambda k: torch.mm(k.leaf((6, 4), S1, grad=True), k.leaf((4, 5), S0, grad=True)),
    "bmm": lambda k: torch.bmm(k.leaf((4, 3, 2), S0, grad=True), k.leaf((4, 2, 3), S0, grad=True)),
    "linear_columns": lambda k: F.linear(
        k.leaf((6, 4), R, grad=True), k.leaf((8, 4), S0, grad=True), k.leaf((8,), S0, grad=True)
    ),
    "linear_rows": lambda k: F.linear(k.leaf((6, 4), S1, grad=True), k.leaf((8, 4), S1, grad=True)),
    "linear_batch": lambda k: F.linear(
        k.leaf((6, 3, 4), S0, grad=True), k.leaf((8, 4), R, grad=True), k.leaf((8,), R, grad=True)
    ),
    "addmm": lambda k: torch.addmm(
        k.leaf((5,), R, grad=True), k.leaf((6, 4), S0, grad=True), k.leaf((4, 5), R, grad=True)
    ),
    "partial_mm": lambda k: k.partial(4, 4) @ k.leaf((4, 3), R),
    # reductions
    "sum_all": lambda k: k.leaf((5, 4), S0, grad=True).sum(),
    "sum_cut": lambda k: k.leaf((5, 4), S0, grad=True).sum(0),
    "sum_other": lambda k: k.leaf((5, 4), S0, grad=True).sum(1),
    "sum_keepdim": lambda k: k.leaf((5, 4), S1, grad=True).sum(0, keepdim=True),
    "mean_all": lambda k: k.leaf((6, 4), S0, grad=True).mean(),
    "mean_uneven": lambda k: k.leaf((5, 4), S0, grad=True).mean(0),
    "amax": lambda k: k.leaf((6, 4), S0).amax(0),
    "max_values": lambda k: k.leaf((6, 4), S0).max(1).values,
    "argmax": lambda k: k.leaf((6, 4), S0).argmax(1),
    "var": lambda k: k.leaf((6, 4), S0, grad=True).var(1),
    "norm": lambda k: torch.linalg.vector_norm(k.leaf((6, 4), S0)).redistribute(k.mesh, [R]),
    "logsumexp": lambda k: k.leaf((6, 4), S0, grad=True).logsumexp(1),
    "cumsum": lambda k: k.leaf((6, 4), S0, grad=True).cumsum(1),
    # views
    "transpose": lambda k: k.leaf((6, 4), S0, grad=True).transpose(0, 1),
    "permute": lambda k: k.leaf((6, 4, 3), S1, grad=True).permute(2, 0, 1),
    "flatten": lambda k: k.leaf((6, 4, 3), S0, grad=True).flatten(0, 1),
    "flatten_inner": lambda k: k.leaf((6, 4, 3), S0, grad=True).flatten(1),
    "view_split": lambda k: k.leaf((6, 8), S1, grad=True).view(6, 4, 2),
    "view_join": lambda k: k.leaf((6, 4, 2), S1, grad=True).reshape(6, 8),
    "view_kept": lambda k: k.leaf((5, 4), S0, grad=True).view(5, 2, 2),
    "unsqueeze": lambda k: k.leaf((5, 4), S1, grad=True).unsqueeze(0),
    "squeeze": lambda k: k.leaf((5, 1, 4), S2, grad=True).squeeze(1),
    "expand": lambda k: k.leaf((5, 1), S0, grad=True).expand(5, 3),
    "select": lambda k: k.leaf((5, 4), S1, grad=True).select(0, 2),
    "slice": lambda k: k.leaf((5, 4), S0, grad=True)[:, 1:3],
    "split": lambda k: torch.split(k.leaf((5, 4), S0), 2, dim=1)[1],
    "chunk": lambda k: k.leaf((5, 4), S0).chunk(2, -1)[0],
    "unbind": lambda k: k.leaf((5, 2), S0).unbind(1)[1],
    "cat": lambda k: torch.cat([k.leaf((5, 4), S0, grad=True), k.leaf((5, 2), S0, grad=True)], 1),
    "stack": lambda k: torch.stack([k.leaf((5, 4), S0, grad=True), k.leaf((5, 4), S0, grad=True)]),
    "tril": lambda k: k.leaf((4, 5, 5), S0, grad=True).tril(),
    # along a dim
    "softmax": lambda k: k.leaf((6, 4), S0, grad=True).softmax(-1),
    "softmax_cut": lambda k: k.leaf((6, 4), S1, grad=True).softmax(-1),
    "log_softmax": lambda k: F.log_softmax(k.leaf((6, 4), S0, grad=True), 1),
    "layer_norm": lambda k: F.layer_norm(
        k.leaf((6, 3, 4), S1, grad=True), (4,), k.leaf((4,), R, grad=True), k.leaf((4,), R, grad=True)
    ),
    "topk": lambda k: k.leaf((6, 4), S0).topk(2, 1).values,
    "sort": lambda k: k.leaf((6, 4), S0).sort(1).values,
    "gather": lambda k: k.leaf((6, 4), S0).gather(1, k.leaf((6, 2), S0, dtype=torch.int64) % 4),
    "index_select": lambda k: k.leaf((6, 4), S1).index_select(0, torch.tensor(2).reshape(1)),
    # embedding and losses
    "embedding": lambda k: F.embedding(
        k.leaf((6, 3), S0, dtype=torch.int64) % 10, k.leaf((10, 4), R, grad=True)
    ),
    "embedding_columns": lambda k: F.embedding(
        k.leaf((6, 3), R, dtype=torch.int64) % 10, k.leaf((10, 4), S1, grad=True)
    ),
    "embedding_rows": lambda k: F.embedding(
        k.leaf((6,), R, dtype=torch.int64) % 10, k.leaf((10, 4), S0, grad=True)
    ).redistribute(k.mesh, [R]),
    "cross_entropy": lambda k: F.cross_entropy(
        k.leaf((6, 5), R, grad=True), k.leaf((6,), R, dtype=torch.int64) % 5
    ),
    # like, new
    "zeros_like": lambda k: torch.zeros_like(k.leaf((5, 4), S0)),
    "ones_like": lambda k: torch.ones_like(k.leaf((5, 4), S1), dtype=torch.float64),
    "full_like": lambda k: torch.full_like(k.leaf((5, 4), S0), 3.0),
    "new_zeros": lambda k: k.leaf((5, 4), S0).new_zeros(3, 2),
    # movements
    "to_shard": lambda k: k.leaf((5, 4), R, grad=True).redistribute(k.mesh, [S0]) * 2,
    "to_other": lambda k: k.leaf((5, 3), S0, grad=True).redistribute(k.mesh, [S1]) * 2,
    "to_whole": lambda k: k.leaf((5, 3), S0, grad=True).redistribute(k.mesh, [R]) * 2,
    "partial_to_shard": lambda k: k.partial(5, 3).redistribute(k.mesh, [S0]),
    "partial_to_whole": lambda k: k.partial(5, 3, op="avg").redistribute(k.mesh, [R]),
    "local_and_back": lambda k: (
        DTensor.from_local(k.leaf((6, 3), S0, grad=True).to_local() * 3, k.mesh, [S0]) * 2
    ),
    # in place
    "add_": lambda k: k.leaf((5, 4), S0).add_(k.leaf((5, 4), S0), alpha=2),
    "mul_": lambda k: k.leaf((5, 4), S0).mul_(3),
    "copy_": lambda k: k.leaf((5, 4), S0).copy_(k.leaf((5, 4), R)),
    "zero_": lambda k: k.leaf((5, 4), S0).zero_(),
    "addcdiv_": lambda k: k.leaf((4, 4), S0).addcdiv_(k.leaf((4, 4), S0), k.leaf((4, 4), S0) + 3),
    "lerp_": lambda k: k.leaf((4, 4), S0).lerp_(k.leaf((4, 4), S0), 0.3),
}

CASES_OF_FOUR = {
    "two_dims_add": lambda k: k.leaf((5, 6), S0, S1, grad=True) + k.leaf((5, 6), S0, S1, grad=True),
    "two_dims_mm": lambda k: k.leaf((6, 8), S0, S1, grad=True) @ k.leaf((8, 6), R, S0, grad=True),
    "two_dims_same": lambda k: (k.leaf((7, 4), S0, S0, grad=True) * 2).redistribute(k.mesh, [R, R]),
    "two_dims_swap": lambda k: k.leaf((7, 5), S0, S1, grad=True).redistribute(k.mesh, [S1, S0]) * 2,
    "two_dims_linear": lambda k: F.linear(
        k.leaf((4, 3, 8), S0, R, grad=True), k.leaf((6, 8), R, S0, grad=True)
    ),
    "two_dims_sum": lambda k: k.leaf((6, 8), S0, S1, grad=True).sum(),
}


def flattened(value) -> list:
    """The full values as numbers with nine digits."""
    return [float(f"{v:.9g}") for v in value.detach().double().reshape(-1).tolist()]


def outcome(case, mesh) -> dict:
    """The answer of a case."""
    kit = Kit(mesh)
    made = case(kit)
    result = {
        "placements": [
            type(p).__name__ + str(getattr(p, "dim", getattr(p, "reduce_op", ""))) for p in made.placements
        ],
        "shape": list(made.shape),
        "dtype": str(made.dtype).rpartition(".")[2],
        "values": flattened(made.full_tensor()),
    }
    if kit.leaves:
        weights = torch.cos(torch.arange(float(made.numel()))).reshape(made.shape).to(made.dtype)
        (made.full_tensor() * weights).sum().backward()
        result["gradients"] = [flattened(leaf.grad.full_tensor()) for leaf in kit.leaves]
    return result
