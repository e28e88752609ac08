"""The collectives of a process group over MindSpore's communication (HCCL) on Ascend.

It has run on the simulated NPU, and not on a device (docs/ascend.md).
mindspore.mint.distributed takes global ranks and the name of a group, writes to contiguous tensors and returns a handle.
Ascend orders later operations after it, so a Work only waits for the handle.
"""

import os
import socket

from .._errors import unsupported
from .._host import accelerator, runtime
from .._values.base import _C
from .._values.dtype import ALL
from . import mpi_world
from .backend import SingleProcess
from .mpi_buffers import write
from .reduce_op import ReduceOp
from .work import Work

_OPS = {"SUM": "sum", "PREMUL_SUM": "sum", "AVG": "avg", "PRODUCT": "prod", "MIN": "min", "MAX": "max"}


# HCCL reduces these dtypes. Of others (float64) every rank gets the tensors of all ranks, and reduces them on the host.
_REDUCED = {"bool", "int8", "int16", "int32", "int64", "float16", "float32", "bfloat16"}
_HOST_REDUCTIONS = {
    "sum": lambda rows: rows.sum(0),
    "avg": lambda rows: rows.sum(0) / len(rows),
    "prod": lambda rows: rows.prod(0),
    "min": lambda rows: rows.amin(0),
    "max": lambda rows: rows.amax(0),
}


def present() -> bool:
    """True if MindSpore runs on an Ascend device in this process."""
    runtime.native()
    return runtime.device_target() == "Ascend"


def resume() -> None:
    """Lets HCCL's communicators go on after torch.npu.stop_device. RuntimeError if HCCL refuses."""
    # late: MindSpore's package is loaded with an accelerator only
    from mindspore._c_expression import CollectiveManager

    if not CollectiveManager.get_instance().resume_hccl_comm():
        raise RuntimeError("torch.distributed.reinit_process_group: HCCL did not resume its communicators")


def _comm():
    from mindspore.mint import distributed  # late: MindSpore's package is loaded with an accelerator only

    return distributed


def _op(op) -> str:
    name = ReduceOp(op).op.name
    if name not in _OPS:
        raise unsupported("torch.distributed", f"ReduceOp.{name} on Ascend is not supported")
    return _OPS[name]


def _data(tensor):
    """The tensor's elements, contiguous. RuntimeError if they are not on the NPU."""
    if _C.has_own_memory() and not _C.in_device_memory(tensor):
        raise RuntimeError("No backend type associated with device type cpu")
    return tensor.detach().contiguous()


def _scaled(tensor, op):
    return _data(tensor) * op.factor if op == ReduceOp.PREMUL_SUM else _data(tensor)


class HcclBackend:
    """A backend with the methods of backend.SingleProcess for a communication group of MindSpore."""

    def __init__(self, rank: int, ranks, group_name: str, timeout):
        self.rank, self.ranks, self.size, self.timeout = rank, list(ranks), len(ranks), timeout
        self.device = accelerator.kind()
        self.group, self.name = group_name, ""
        self.sequence, self.position = 0, None

    def _work(self, handle, tensors, pairs=(), source=-1) -> Work:
        """A Work for a handle. `pairs` are (tensor, received data), if the data could not be written to the tensor itself."""
        self.sequence += 1

        def finish(timeout):
            if handle is not None:
                handle.wait()
            for target, received in pairs:
                if target is not received:
                    write(target, received)

        return Work(tensors, finish, source)

    def _reduced_on_host(self, data, op):
        """The reduction of a dtype that HCCL does not reduce. Returns a tensor on the device of ``data``."""
        own = data.reshape(-1).view(ALL["int8"])
        gathered = own.new_empty(self.size * own.numel())
        _comm().all_gather_into_tensor(gathered, own, self.group)
        rows = gathered.cpu().view(data.dtype).reshape(self.size, *data.shape)
        return _HOST_REDUCTIONS[_op(op)](rows).to(data.device)

    def allreduce(self, tensor, op) -> Work:
        """tensor = reduction over the group."""
        data = _scaled(tensor, op)
        if data.dtype.name not in _REDUCED:
            return self._work(None, [tensor], [(tensor, self._reduced_on_host(data, op))])
        return self._work(
            _comm().all_reduce(data, _op(op), self.group, True), [tensor], _copied(tensor, data)
        )

    def reduce(self, tensor, root: int, op) -> Work:
        """tensor on `root` = reduction over the group."""
        data = _scaled(tensor, op)
        if data.dtype.name not in _REDUCED:
            result = self._reduced_on_host(data, op)
            return self._work(None, [tensor], [(tensor, result)] if self.rank == root else ())
        handle = _comm().reduce(data, self.ranks[root], _op(op), self.group, True)
        return self._work(handle, [tensor], _copied(tensor, data) if self.rank == root else ())

    def broadcast(self, tensor, root: int) -> Work:
        """tensor = the tensor of `root`."""
        data = _data(tensor)
        return self._work(
            _comm().broadcast(data, self.ranks[root], self.group, True), [tensor], _copied(tensor, data)
        )

    def allgather(self, outputs, tensor) -> Work:
        """outputs[i] = the tensor of process i."""
        rooms = [_data(t) for t in outputs]
        handle = _comm().all_gather(rooms, _data(tensor), self.group, True)
        return self._work(handle, outputs, _copies(outputs, rooms))

    def allgather_into(self, output, tensor) -> Work:
        """output = the tensors of all processes, concatenated."""
        data, flat = _data(tensor).reshape(-1), _data(output).reshape(-1)
        handle = _comm().all_gather_into_tensor(flat, data, self.group, True)
        return self._work(handle, [output], _copied(output, flat))

    def gather(self, outputs, tensor, root: int) -> Work:
        """On `root`: outputs[i] = the tensor of process i."""
        rooms = [_data(t) for t in outputs]
        handle = _comm().gather(_data(tensor), rooms, self.ranks[root], self.group, True)
        return self._work(handle, outputs or [tensor], _copies(outputs, rooms))

    def scatter(self, output, inputs, root: int) -> Work:
        """output = root's inputs[this rank]."""
        room, parts = _data(output), [_data(t) for t in inputs]
        handle = _comm().scatter(room, parts, self.ranks[root], self.group, True)
        return self._work(handle, [output], _copied(output, room))

    def reduce_scatter(self, output, inputs, op) -> Work:
        """output = inputs[this rank], reduced over the group."""
        room, parts = _data(output), [_scaled(t, op) for t in inputs]
        handle = _comm().reduce_scatter(room, parts, _op(op), self.group, True)
        return self._work(handle, [output], _copied(output, room))

    def reduce_scatter_into(self, output, tensor, op) -> Work:
        """output = this rank's part of the reduction of `tensor` over the group."""
        room, data = _data(output).reshape(-1), _scaled(tensor, op).reshape(-1)
        handle = _comm().reduce_scatter_tensor(room, data, _op(op), self.group, True)
        return self._work(handle, [output], _copied(output, room))

    def alltoall(self, outputs, inputs) -> Work:
        """outputs[i] = process i's inputs[this rank]."""
        rooms, parts = [_data(t) for t in outputs], [_data(t) for t in inputs]
        return self._work(
            _comm().all_to_all(rooms, parts, self.group, True), outputs, _copies(outputs, rooms)
        )

    def alltoall_single(self, output, tensor, output_sizes, input_sizes) -> Work:
        """The same as alltoall, with parts of one tensor along dimension 0."""
        room, data = _data(output), _data(tensor)
        handle = _comm().all_to_all_single(
            room, data, output_sizes or None, input_sizes or None, self.group, True
        )
        return self._work(handle, [output], _copied(output, room))

    def send(self, tensor, dst: int, tag: int, own: bool = True) -> Work:
        """Sends a copy of the tensor (with `own`), because the tensor may be overwritten before it is sent."""
        data = tensor.detach().clone() if own else _data(tensor)
        work = self._work(_comm().isend(data, self.ranks[dst], self.group, tag), [tensor])
        work.data = data
        return work

    def recv(self, tensor, src: int, tag: int) -> Work:
        """Receive into `tensor`."""
        if src < 0:
            raise unsupported("torch.distributed.recv", "from any rank on Ascend is not supported")
        room = _data(tensor)
        handle = _comm().irecv(room, self.ranks[src], self.group, tag)
        return self._work(handle, [tensor], _copied(tensor, room), src)

    def barrier(self) -> Work:
        """Wait for all processes."""
        return self._work(_comm().barrier(self.group, True), [])

    def abort(self, text: str, when: float) -> None:
        """The device has dropped the operations that were on it."""

    def close(self) -> None:
        """Releases the resources of the group, which is destroyed."""
        _comm().destroy_process_group(self.group)


def _copied(target, data):
    return () if data.data_ptr() == target.data_ptr() else ((target, data),)


def _copies(targets, rooms):
    return [pair for target, room in zip(targets, rooms, strict=True) for pair in _copied(target, room)]


def _own_address(world_size: int) -> str:
    """The address at which the other ranks reach this machine: the loopback interface if they all run on it."""
    if int(os.environ.get("LOCAL_WORLD_SIZE", world_size)) == world_size:
        return "127.0.0.1"
    return socket.gethostbyname(socket.gethostname())


def create(rank, world_size, ranks, store, timeout, parent=None):
    """Creates the backend of a new group: of the whole job, which is joined here, or of some of its ranks."""
    if world_size == 1:
        return SingleProcess()
    if parent is not None:
        if list(ranks) != sorted(ranks):
            raise unsupported(
                "torch.distributed.new_group",
                "HCCL numbers the members of a group in ascending order of their ranks, "
                f"so sort_ranks=False with the ranks {list(ranks)} is not supported",
            )
        return HcclBackend(rank, ranks, _comm().new_group(list(ranks)), timeout)
    if rank == 0:  # MindSpore's ranks connect at a separate port
        with socket.socket() as probe:
            probe.bind(("", 0))
            store.set("hccl", f"tcp://{_own_address(world_size)}:{probe.getsockname()[1]}")
    _comm().init_process_group("hccl", store.get("hccl").decode(), timeout, world_size, rank)
    # late: MindSpore's package is loaded with an accelerator only
    from mindspore.communication import GlobalComm

    backend = HcclBackend(rank, ranks, GlobalComm.WORLD_COMM_GROUP, timeout)
    backend.comm = mpi_world.join(store, rank, world_size, timeout)  # for groups of the host (gloo) beside it
    return backend
