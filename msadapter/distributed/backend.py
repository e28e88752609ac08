"""The interface between c10d's functions and the backends that transfer data, and the backend for one process.

A backend belongs to one process group. Its methods take ranks of this group and contiguous or strided tensors, start the
operation and return a Work. Arguments are checked before. A backend for several processes (MPI, HCCL) is a class with
these methods, registered by `register`.
"""

from .._errors import unsupported
from ..autograd import no_grad
from . import debug
from .reduce_op import ReduceOp
from .work import Work

_factories: dict = {}


def register(name: str, factory) -> None:
    """Registers `factory(rank, world_size, ranks, store, timeout, parent) -> backend` under a name."""
    _factories[name] = factory


def create(name: str, rank: int, world_size: int, ranks, store, timeout, parent=None):
    """Creates the backend of a new group: of the whole job, or, if `parent` is the job's backend, of some of its ranks."""
    if world_size == 1:
        return SingleProcess()
    if name not in _factories:
        raise unsupported(
            "torch.distributed", f"the backend {name!r} with {world_size} processes is not supported"
        )
    made = _factories[name](rank, world_size, ranks, store, timeout, parent)
    return debug.Checked(made, store, timeout) if debug.detail() else made


class SingleProcess:
    """The backend of a group whose only member is this process."""

    sequence, position = 0, None
    device = "cpu"  # of the tensors with which collectives of Python objects exchange bytes

    def __init__(self):
        self._mail, self.name = {}, ""

    def allreduce(self, tensor, op) -> Work:
        """tensor = reduction over the group."""
        _premultiply(tensor, op)
        return Work([tensor])

    def reduce(self, tensor, root: int, op) -> Work:
        """tensor on `root` = reduction over the group."""
        return self.allreduce(tensor, op)

    def broadcast(self, tensor, root: int) -> Work:
        """tensor = the tensor of `root`."""
        return Work([tensor])

    def allgather(self, outputs, tensor) -> Work:
        """outputs[i] = the tensor of process i."""
        return _copied(outputs, [tensor])

    def allgather_into(self, output, tensor) -> Work:
        """output = the tensors of all processes, concatenated."""
        return _copied([output], [tensor.reshape(output.shape)])

    def gather(self, outputs, tensor, root: int) -> Work:
        """On `root`: outputs[i] = the tensor of process i."""
        return _copied(outputs, [tensor])

    def scatter(self, output, inputs, root: int) -> Work:
        """output = root's inputs[this rank]."""
        return _copied([output], inputs)

    def reduce_scatter(self, output, inputs, op) -> Work:
        """output = inputs[this rank], reduced over the group."""
        work = _copied([output], inputs)
        _premultiply(output, op)
        return work

    def reduce_scatter_into(self, output, tensor, op) -> Work:
        """output = this rank's part of the reduction of `tensor` over the group."""
        return self.reduce_scatter(output, [tensor.reshape(output.shape)], op)

    def alltoall(self, outputs, inputs) -> Work:
        """outputs[i] = process i's inputs[this rank]."""
        return _copied(outputs, inputs)

    def alltoall_single(self, output, tensor, output_sizes, input_sizes) -> Work:
        """The same as alltoall, with parts of one tensor along dimension 0."""
        return _copied([output], [tensor])

    def send(self, tensor, dst: int, tag: int, own: bool = True) -> Work:
        """Sends a tensor to itself. The data is stored until it is received."""
        self._mail.setdefault(tag, []).append(tensor.detach().clone())
        return Work([tensor])

    def recv(self, tensor, src: int, tag: int) -> Work:
        """Receive into `tensor`."""

        def finish(timeout):
            waiting = self._mail.get(tag)
            if not waiting:
                raise RuntimeError(
                    "recv: this process is alone in its group and has not sent a message that it could receive; call isend first"
                )
            _write(tensor, waiting.pop(0))

        return Work([tensor], finish, source=src)

    def barrier(self) -> Work:
        """Wait for all processes."""
        return Work()

    def close(self) -> None:
        """Releases the resources of the group, which is destroyed."""
        self._mail.clear()


def _premultiply(tensor, op):
    if op == ReduceOp.PREMUL_SUM:
        with no_grad():
            tensor.data.mul_(op.factor)


def _write(target, source):
    with no_grad():
        target.data.copy_(source)  # does not increase the tensor's version counter, as in PyTorch


def _copied(targets, sources) -> Work:
    for target, source in zip(targets, sources, strict=True):
        if target is not source and target.data_ptr() != source.data_ptr():
            _write(target, source)
    return Work(targets)
