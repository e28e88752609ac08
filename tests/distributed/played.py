"""Ranks that threads of one process play. They hand each other what they would send."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import msadapter as torch
from msadapter.distributed import ReduceOp


class Line:
    """The ranks of a group, which exchange objects. An exchange that not all come to is an error."""

    def __init__(self, count):
        self.barrier, self.slots = threading.Barrier(count, timeout=20), [None] * count

    def exchange(self, me, value) -> list:
        self.slots[me] = value
        self.barrier.wait()
        found = list(self.slots)
        self.barrier.wait()
        return found


class Group:
    """A group as one of its ranks sees it."""

    def __init__(self, line, me: int, ranks=None, note=lambda name: None):
        self.line, self.me, self.note = line, me, note
        self._ranks = ranks or list(range(self.size()))

    def size(self) -> int:
        return len(self.line.slots)

    def rank(self) -> int:
        return self.me

    def exchange(self, name: str, value) -> list:
        """The values of all ranks."""
        self.note(name)
        return self.line.exchange(self.me, _copied(value))


def _copied(value):
    """What is sent, which must be in one piece. The sender may change its tensors afterwards."""
    if isinstance(value, (list, tuple)):
        return [_copied(v) for v in value]
    if value is None:
        return None
    assert value.is_contiguous()
    return value.detach().clone()


def at_once(program, views, lines) -> list:
    """The results of program(view) of all ranks, which run at the same time. If one fails, the others do not wait for it."""

    def run(view):
        try:
            return program(view)
        except BaseException:
            for line in lines:
                line.barrier.abort()
            raise

    with ThreadPoolExecutor(len(views)) as pool:
        return list(pool.map(run, views))


def played(program, ranks) -> list:
    """The results of program(group) of all ranks of a group."""
    line = Line(len(ranks))
    return at_once(program, [Group(line, me, list(ranks)) for me in range(len(ranks))], [line])


JOINS = {
    ReduceOp.SUM: lambda x: x.sum(0),
    ReduceOp.AVG: lambda x: x.mean(0),
    ReduceOp.MAX: lambda x: x.amax(0),
    ReduceOp.MIN: lambda x: x.amin(0),
    ReduceOp.PRODUCT: lambda x: x.prod(0),
}


class Collectives:
    """Collectives between played ranks."""

    @staticmethod
    def _fill(targets, values):
        for target, value in zip(targets, values, strict=True):
            assert target.shape == value.shape and target.dtype == value.dtype
            target.copy_(value)

    @staticmethod
    def all_gather(outputs, tensor, group):
        Collectives._fill(outputs, group.exchange("all_gather", tensor))

    @staticmethod
    def all_reduce(tensor, op=ReduceOp.SUM, group=None):
        tensor.copy_(JOINS[op](torch.stack(group.exchange("all_reduce", tensor.clone()))))

    @staticmethod
    def reduce_scatter(output, inputs, op, group):
        given = group.exchange("reduce_scatter", inputs)
        output.copy_(JOINS[op](torch.stack([tensors[group.me] for tensors in given])))

    @staticmethod
    def all_to_all(outputs, inputs, group):
        Collectives._fill(outputs, [given[group.me] for given in group.exchange("all_to_all", inputs)])

    @staticmethod
    def all_gather_single(output, tensor, group):
        Collectives._fill(output.split(tensor.numel()), group.exchange("all_gather_single", tensor))

    @staticmethod
    def all_to_all_single(output, tensor, output_sizes, input_sizes, group):
        even = [tensor.size(0) // group.size()] * group.size()
        given = group.exchange("all_to_all_single", tensor.split(list(input_sizes or even)))
        Collectives._fill(output.split(list(output_sizes or even)), [parts[group.me] for parts in given])

    @staticmethod
    def _root(group, rank, group_rank) -> int:
        return group_rank if rank is None else group._ranks.index(rank)

    @staticmethod
    def broadcast(tensor, src=None, group=None, async_op=False, group_src=0):
        root = Collectives._root(group, src, group_src)
        Collectives._fill([tensor], [group.exchange("broadcast", tensor.clone())[root]])

    @staticmethod
    def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, group_dst=0):
        given = group.exchange("reduce", tensor.clone())
        if group.me == Collectives._root(group, dst, group_dst):
            tensor.copy_(JOINS[op](torch.stack(given)))

    @staticmethod
    def gather(tensor, outputs=None, dst=None, group=None, group_dst=0):
        given = group.exchange("gather", tensor.clone())
        assert bool(outputs) == (group.me == group_dst)
        Collectives._fill(outputs or [], given if outputs else [])

    @staticmethod
    def scatter(tensor, inputs=None, src=None, group=None, group_src=0):
        assert bool(inputs) == (group.me == group_src)
        Collectives._fill([tensor], [group.exchange("scatter", inputs)[group_src][group.me]])
