"""Collective operations on tensors. The functions check their arguments and call the backend."""

import threading
import time
import warnings
from contextlib import contextmanager

from .. import ops
from ..alias import TORCH_VERSION
from ..profiler._ranges import recorders, thread
from ..tensor import Tensor
from . import debug
from .process_group import check_length, default_group, resolve, world
from .reduce_op import ReduceOp
from .setup import get_group_rank, not_in_group
from .work import Together


def _check_tensor(value, name):
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _check_list(value, name):
    if not isinstance(value, (list, tuple)) or not all(isinstance(t, Tensor) for t in value):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(value)} with elements of type "
            f"{[type(t) for t in value] if isinstance(value, (list, tuple)) else None}."
        )


def _check_dtypes(tensor, tensors):
    """ValueError unless all have one dtype: they are sent as bytes, so others would be numbers that mean nothing."""
    for other in tensors:
        if other.dtype != tensor.dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes: found {tensor.dtype} and {other.dtype}"
            )


def _root(group, rank, group_rank, what):
    """The rank inside the group of a root that is given by global rank (src, dst) or group rank (group_src, group_dst)."""
    if rank is not None and group_rank is not None:
        raise ValueError(f"Can't specify both group_{what} and {what}")
    pg = resolve(group)
    if group_rank is not None:
        return group_rank
    if rank is None:
        return 0
    return rank if pg is default_group() else get_group_rank(pg, rank)


class _Recording(threading.local):
    """The name under which this thread records its collectives, and when the last one was started."""

    name: str | None = None
    start = 0


_recording = _Recording()


@contextmanager
def record_comm(name: str):
    """Inside this block, the profiler shows each collective of this thread as ``name``, from its start to the end of its wait."""
    previous, _recording.name = _recording.name, name
    try:
        yield
    finally:
        _recording.name = previous


def _mover(pg):
    """The backend of a group, which is about to be called."""
    if _recording.name is not None:
        _recording.start = time.perf_counter_ns()
    return pg._backend


def _record(work, name: str, start: int) -> None:
    """Let the first wait of an operation add a range to the traces of running profilers."""
    wait = work.wait

    def recorded(*args, **kwargs):
        work.wait = wait
        try:
            return wait(*args, **kwargs)
        finally:
            end = time.perf_counter_ns()
            for recorder in recorders:
                recorder.add(name, None, start, end, thread())

    work.wait = recorded


def _done(work, async_op, group=None):
    if _recording.name is not None and recorders:
        _record(work, _recording.name, _recording.start)
    gathering = world.coalescing.get(resolve(group)) if world.coalescing else None
    if gathering is not None:
        gathering.append(work)
    if gathering is not None or async_op:
        work.in_background()
        return work if async_op else None
    work.wait()
    return None


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """tensor = reduction over the group, in place. Returns a Work with async_op, else None."""
    _check_tensor(tensor, "tensor")
    if not_in_group(group, "all_reduce"):
        return None
    return _done(_mover(resolve(group)).allreduce(tensor, op), async_op, group)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """all_reduce of several tensors."""
    tensors = [tensors] if isinstance(tensors, Tensor) else tensors
    _check_list(tensors, "tensors")
    if not_in_group(group, "all_reduce_coalesced"):
        return None
    return _done(Together([_mover(resolve(group)).allreduce(t, op) for t in tensors]), async_op)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """tensor on dst = reduction over the group."""
    _check_tensor(tensor, "tensor")
    if not_in_group(group, "reduce"):
        return None
    return _done(
        _mover(resolve(group)).reduce(tensor, _root(group, dst, group_dst, "dst"), op), async_op, group
    )


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """tensor = the tensor of src, in place."""
    _check_tensor(tensor, "tensor")
    if not_in_group(group, "broadcast"):
        return None
    return _done(
        _mover(resolve(group)).broadcast(tensor, _root(group, src, group_src, "src")), async_op, group
    )


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """tensor_list[i] = the tensor of process i."""
    _check_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    if not_in_group(group, "all_gather"):
        return None
    pg = resolve(group)
    check_length(tensor_list, pg.size(), "all_gather: the output list")
    _check_dtypes(tensor, tensor_list)
    return _done(_mover(pg).allgather(tensor_list, tensor), async_op, group)


def all_gather_single(output_tensor, input_tensor, group=None, async_op=False):
    """output_tensor = the tensors of all processes, concatenated or stacked along dimension 0."""
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    if not_in_group(group, "all_gather_single"):
        return None
    pg = resolve(group)
    if output_tensor.numel() != input_tensor.numel() * pg.size():
        raise ValueError("output tensor size must be equal to world_size times input tensor size")
    if output_tensor.dtype != input_tensor.dtype:
        raise TypeError("output tensor must have the same type as input tensor")
    return _done(_mover(pg).allgather_into(output_tensor, input_tensor), async_op, group)


_NEWEST = not TORCH_VERSION.startswith("2.7")  # whose names for these functions are newer ones


def _warn_of_older(name: str, newer: str, state: str = "is deprecated") -> None:
    warnings.warn(
        f"`torch.distributed.{name}` {state}. Please use `torch.distributed.{newer}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """The older name of all_gather_single, which warns as in PyTorch 2.13."""
    if _NEWEST:
        _warn_of_older("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def _all_gather_base(output_tensor, input_tensor, group=None, async_op=False):
    """The oldest name of all_gather_single, which warns as in PyTorch."""
    newer = "all_gather_single" if _NEWEST else "all_gather_into_tensor"
    _warn_of_older("_all_gather_base", newer, "is a private function and will be deprecated")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """all_gather of several tensors: output_tensor_lists[i][j] = tensor j of process i."""
    if not_in_group(group, "all_gather_coalesced"):
        return None
    pg = resolve(group)
    check_length(output_tensor_lists, pg.size(), "all_gather_coalesced: output_tensor_lists", "list")
    for outputs in output_tensor_lists:
        if len(outputs) != len(input_tensor_list):
            raise ValueError(
                f"all_gather_coalesced: a list of outputs holds {len(outputs)} tensors, but there are "
                f"{len(input_tensor_list)} inputs"
            )
    works = [
        _mover(pg).allgather([outputs[j] for outputs in output_tensor_lists], tensor)
        for j, tensor in enumerate(input_tensor_list)
    ]
    return _done(Together(works), async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """On dst: gather_list[i] = the tensor of process i."""
    _check_tensor(tensor, "tensor")
    if not_in_group(group, "gather"):
        return None
    pg = resolve(group)
    root = _root(group, dst, group_dst, "dst")
    if pg.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _check_list(gather_list, "gather_list")
        check_length(gather_list, pg.size(), "gather: gather_list")
        _check_dtypes(tensor, gather_list)
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return _done(_mover(pg).gather(gather_list or [], tensor, root), async_op, group)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """tensor = src's scatter_list[this rank]."""
    _check_tensor(tensor, "tensor")
    if not_in_group(group, "scatter"):
        return None
    pg = resolve(group)
    root = _root(group, src, group_src, "src")
    if pg.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _check_list(scatter_list, "scatter_list")
        check_length(scatter_list, pg.size(), "scatter: scatter_list")
        _check_dtypes(tensor, scatter_list)
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    return _done(_mover(pg).scatter(tensor, scatter_list or [], root), async_op, group)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """output = input_list[this rank], reduced over the group."""
    _check_tensor(output, "output")
    _check_list(input_list, "input_list")
    if not_in_group(group, "reduce_scatter"):
        return None
    check_length(input_list, resolve(group).size(), "reduce_scatter: input_list")
    _check_dtypes(output, input_list)
    own = input_list[resolve(group).rank()]
    if own.numel() != output.numel():
        raise ValueError(
            f"reduce_scatter: the output has {output.numel()} elements, but the input for this rank has {own.numel()}"
        )
    return _done(_mover(resolve(group)).reduce_scatter(output, list(input_list), op), async_op, group)


def reduce_scatter_single(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """output = this rank's part, along dimension 0, of the reduction of `input` over the group."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if not_in_group(group, "reduce_scatter_single"):
        return None
    pg = resolve(group)
    if input.numel() != output.numel() * pg.size():
        raise ValueError("input tensor must be the same size as output size times world size")
    if output.dtype != input.dtype:
        raise TypeError("input tensor must have the same type as output tensor")
    return _done(_mover(pg).reduce_scatter_into(output, input, op), async_op, group)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """The older name of reduce_scatter_single, which warns as in PyTorch 2.13."""
    if _NEWEST:
        _warn_of_older("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def _reduce_scatter_base(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """The oldest name of reduce_scatter_single, which warns as in PyTorch."""
    newer = "reduce_scatter_single" if _NEWEST else "reduce_scatter_tensor"
    _warn_of_older("_reduce_scatter_base", newer, "is a private function and will be deprecated")
    return reduce_scatter_single(output, input, op, group, async_op)


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """output_tensor_list[i] = process i's input_tensor_list[this rank]."""
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    if not_in_group(group, "all_to_all"):
        return None
    for tensors in (input_tensor_list, output_tensor_list):
        check_length(tensors, resolve(group).size(), "all_to_all: a list")
        _check_dtypes(input_tensor_list[0], tensors)
    return _done(
        _mover(resolve(group)).alltoall(list(output_tensor_list), list(input_tensor_list)), async_op, group
    )


def all_to_all_single(
    output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False
):
    """The same as all_to_all, with parts of one tensor along dimension 0. Without split sizes, the parts are equal."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if not_in_group(group, "all_to_all_single"):
        return None
    pg = resolve(group)
    _check_dtypes(input, [output])
    output_split_sizes, input_split_sizes = _numbers(output_split_sizes), _numbers(input_split_sizes)
    _check_splits(output, output_split_sizes, pg.size())
    _check_splits(input, input_split_sizes, pg.size())
    work = _mover(pg).alltoall_single(output, input, output_split_sizes, input_split_sizes)
    return _done(work, async_op, group)


def _check_splits(tensor, sizes, ranks) -> None:
    if not sizes:
        if tensor.size(0) % ranks:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return
    if len(sizes) != ranks or sum(sizes) != tensor.size(0):
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    if any(size < 0 for size in sizes):
        raise RuntimeError(f"the split sizes {sizes} must not be negative")


def _numbers(sizes) -> list:
    """Split sizes as a list of int, from a list, tensor or array."""
    if sizes is None:
        return []
    return [int(size) for size in (sizes.tolist() if hasattr(sizes, "tolist") else sizes)]


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Waits for all processes of the group.

    timeout: how long to wait, as a timedelta. By default it is the timeout of the group. On an NPU it has no effect, because HCCL
    has one timeout for all operations. Raises DistBackendError after the timeout.
    """
    if not_in_group(group, "barrier"):
        return None
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    work = _mover(resolve(group)).barrier()
    if timeout is not None:
        work.timeout = timeout
    return _done(work, async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier whose error names the first missing rank, or with wait_all_ranks all missing ranks."""
    if not not_in_group(group, "monitored_barrier"):
        debug.monitored_barrier(resolve(group), timeout, wait_all_ranks)


def _broadcast_coalesced(process_group, tensors, buffer_size: int, src: int = 0) -> None:
    """Broadcasts the tensors of group rank ``src``, in messages of about ``buffer_size`` bytes per dtype."""
    by_type: dict = {}
    for tensor in tensors:
        by_type.setdefault((tensor.dtype, str(tensor.device)), []).append(tensor)
    for same in by_type.values():
        while same:
            bucket, room = [same.pop(0)], buffer_size
            room -= bucket[0].nbytes
            while same and same[0].nbytes <= room:
                room -= same[0].nbytes
                bucket.append(same.pop(0))
            flat = ops.cat([t.detach().reshape(-1) for t in bucket])
            broadcast(flat, group=process_group, group_src=src)
            for tensor, part in zip(bucket, flat.split([t.numel() for t in bucket]), strict=True):
                tensor.detach().copy_(part.view(tensor.shape))


class _CoalescingManager:
    """The object that _coalescing_manager yields: the `works` of the block, and wait()."""

    def __init__(self):
        self.works = []

    def append(self, work) -> None:
        """Add an operation."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all operations."""
        for work in self.works:
            work.wait()


@contextmanager
def _coalescing_manager(group=None, device=None, async_ops=False):
    """A block whose operations are waited for together: at its end, or with async_ops through the yielded object."""
    pg = resolve(group)
    if pg in world.coalescing:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    manager = _CoalescingManager()
    world.coalescing[pg] = manager
    try:
        yield manager
    finally:
        world.coalescing.pop(pg, None)
    if not async_ops:
        manager.wait()
