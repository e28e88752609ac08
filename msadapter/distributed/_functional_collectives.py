"""Collectives that return new tensors instead of writing into their arguments."""

from .. import ops
from . import collectives
from .process_group import ProcessGroup, resolve
from .reduce_op import ReduceOp


def is_torchdynamo_compiling() -> bool:
    """False: nothing is compiled here."""
    return False


def _group(group):
    if group is None or isinstance(group, ProcessGroup):
        return resolve(group)
    if hasattr(group, "get_group"):
        return group.get_group()
    raise NotImplementedError(
        "torch.distributed._functional_collectives: this kind of group is not supported (docs/coverage.md)"
    )


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
    """Own part along scatter_dim of the reduction."""
    pg = _group(group)
    pieces = [p.contiguous() for p in ops.chunk(self, pg.size(), dim=scatter_dim)]
    out = ops.empty_like(pieces[0])
    collectives.reduce_scatter(out, pieces, _op(reduceOp), pg)
    return out


def all_to_all_single(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Parts along dimension 0 exchanged between all processes."""
    rows = sum(output_split_sizes) if output_split_sizes else self.size(0)
    out = self.new_empty((rows, *self.shape[1:]))
    collectives.all_to_all_single(
        out, self.contiguous(), output_split_sizes, input_split_sizes, _group(group)
    )
    return out


def wait_tensor(tensor):
    """The tensor: the operations above are done when they return."""
    return tensor
