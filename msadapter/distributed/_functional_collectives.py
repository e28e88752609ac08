"""Collectives that return new tensors instead of writing into their arguments."""

from .. import ops
from .._errors import unsupported
from ..autograd import Function
from . import collectives
from .process_group import ProcessGroup, _resolve_process_group, resolve
from .reduce_op import ReduceOp


def is_torchdynamo_compiling() -> bool:
    """Returns False, because nothing is compiled."""
    return False


def _group(group):
    if group is None or isinstance(group, ProcessGroup):
        return resolve(group)
    if hasattr(group, "get_group"):
        return group.get_group()
    raise unsupported("torch.distributed._functional_collectives", "this kind of group is not supported")


def _op(name) -> ReduceOp:
    return name if isinstance(name, ReduceOp) else getattr(ReduceOp, str(name).upper())


def all_reduce(self, reduceOp, group, tag=""):
    """The reduction over the group."""
    out = self.clone()
    collectives.all_reduce(out, _op(reduceOp), _group(group))
    return out


def broadcast(self, src, group, tag=""):
    """The tensor of src."""
    out = self.clone()
    collectives.broadcast(out, group=_group(group), group_src=src)
    return out


def all_gather_tensor(self, gather_dim, group, tag=""):
    """The tensors of all processes concatenated along gather_dim."""
    pg = _group(group)
    pieces = [ops.empty_like(self) for _ in range(pg.size())]
    collectives.all_gather(pieces, self.contiguous(), pg)
    return ops.cat(pieces, dim=gather_dim)


def reduce_scatter_tensor(self, reduceOp, scatter_dim, group, tag=""):
    """This process's part, along scatter_dim, of the reduction over the group."""
    pg = _group(group)
    pieces = [p.contiguous() for p in ops.chunk(self, pg.size(), dim=scatter_dim)]
    out = ops.empty_like(pieces[0])
    collectives.reduce_scatter(out, pieces, _op(reduceOp), pg)
    return out


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Exchanges parts along dimension 0 between all processes."""
    rows = sum(output_split_sizes) if output_split_sizes else self.size(0)
    out = self.new_empty((rows, *self.shape[1:]))
    collectives.all_to_all_single(
        out, self.contiguous(), output_split_sizes, input_split_sizes, _group(group)
    )
    return out


def wait_tensor(tensor):
    """Returns the tensor. The operations above are complete when they return."""
    return tensor


# ---- with gradients: the backward of each is the collective that undoes it
class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, x, output_split_sizes, input_split_sizes, group):
        ctx.back = input_split_sizes, output_split_sizes, group
        return all_to_all_single(x, output_split_sizes, input_split_sizes, group)

    @staticmethod
    def backward(ctx, grad):
        return all_to_all_single(grad, *ctx.back), None, None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx, x, gather_dim, group):
        ctx.back = gather_dim, group
        return all_gather_tensor(x, gather_dim, group)

    @staticmethod
    def backward(ctx, grad):
        return reduce_scatter_tensor(grad, "sum", *ctx.back), None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx, x, reduceOp, scatter_dim, group):
        ctx.back = scatter_dim, group
        ctx.parts = _group(group).size() if _op(reduceOp) == ReduceOp.AVG else 1
        return reduce_scatter_tensor(x, reduceOp, scatter_dim, group)

    @staticmethod
    def backward(ctx, grad):
        whole = all_gather_tensor(grad, *ctx.back)
        return whole if ctx.parts == 1 else whole / ctx.parts, None, None, None


def all_to_all_single_autograd(self, output_split_sizes, input_split_sizes, group, tag=""):
    """`all_to_all_single` with a gradient."""
    return _AllToAllSingle.apply(self, output_split_sizes, input_split_sizes, group)


def all_gather_tensor_autograd(self, gather_dim, group, tag=""):
    """`all_gather_tensor` with a gradient."""
    return _AllGather.apply(self, gather_dim, group)


def reduce_scatter_tensor_autograd(self, reduceOp, scatter_dim, group, tag=""):
    """`reduce_scatter_tensor` with a gradient, for sums and averages."""
    if _op(reduceOp) not in (ReduceOp.SUM, ReduceOp.AVG):
        raise unsupported(
            "torch.distributed._functional_collectives.reduce_scatter_tensor_autograd",
            f"the gradient of {reduceOp} is not supported",
        )
    return _ReduceScatter.apply(self, reduceOp, scatter_dim, group)


# ---- as operators, which find their group by its name
def _named(function, *positions: int):
    """Return a function like ``function``, for arguments of which only those at ``positions`` are passed, before the group."""

    def operator(*args):
        return function(*(args[i] for i in positions), _resolve_process_group(args[-1]))

    return operator


#: The operators of torch.ops._c10d_functional: the schema, and the function.
OPERATORS = (
    ("all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor", _named(all_reduce, 0, 1)),
    ("broadcast(Tensor input, int src, str group_name) -> Tensor", _named(broadcast, 0, 1)),
    (
        "all_gather_into_tensor(Tensor input, int group_size, str group_name) -> Tensor",
        _named(lambda x, group: all_gather_tensor(x, 0, group), 0),
    ),
    (
        "reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name) -> Tensor",
        _named(lambda x, op, group: reduce_scatter_tensor(x, op, 0, group), 0, 1),
    ),
    (
        "all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, str group_name) -> Tensor",
        _named(all_to_all_single, 0, 1, 2),
    ),
    ("wait_tensor(Tensor tensor) -> Tensor", wait_tensor),
)
