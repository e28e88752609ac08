"""Makes MPI's arguments from tensors: their memory, a dtype for the reduction, and copies where they are needed."""

from .. import ops
from .._errors import unsupported
from ..autograd import no_grad
from .reduce_op import ReduceOp

_TYPES = {
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "int8": "INT8_T",
    "uint8": "UINT8_T",
    "int16": "INT16_T",
    "int32": "INT32_T",
    "int64": "INT64_T",
    "uint16": "UINT16_T",
    "uint32": "UINT32_T",
    "uint64": "UINT64_T",
    "bool": "C_BOOL",
    "complex64": "C_FLOAT_COMPLEX",
    "complex128": "C_DOUBLE_COMPLEX",
}
_OPS = {
    "SUM": "SUM",
    "AVG": "SUM",
    "PREMUL_SUM": "SUM",
    "PRODUCT": "PROD",
    "MIN": "MIN",
    "MAX": "MAX",
    "BAND": "BAND",
    "BOR": "BOR",
    "BXOR": "BXOR",
}
_LOGICAL = {
    "SUM": "LOR",
    "MAX": "LOR",
    "BOR": "LOR",
    "PRODUCT": "LAND",
    "MIN": "LAND",
    "BAND": "LAND",
    "BXOR": "LXOR",
}
_PIECE, _KEPT = 1 << 17, 1 << 27
_BITS = ("BAND", "BOR", "BXOR")


def memory(mpi, tensor):
    """[bytes of a contiguous tensor, number of bytes, BYTE], without a copy."""
    size = tensor.nbytes
    return [mpi.buffer.fromaddress(tensor.data_ptr(), size) if size else None, size, mpi.BYTE]


def typed(mpi, tensor):
    """[memory of a contiguous tensor, number of elements, MPI's type]."""
    size = tensor.nbytes
    return [
        mpi.buffer.fromaddress(tensor.data_ptr(), size) if size else None,
        tensor.numel(),
        getattr(mpi, _TYPES[tensor.dtype.name]),
    ]


def mpi_op(mpi, op, dtype):
    """MPI's operation for a torch ReduceOp. Raises RuntimeError if torch does not support it for the dtype."""
    name = ReduceOp(op).op.name
    if dtype.is_bool:
        if name not in _LOGICAL:
            raise RuntimeError(f"Cannot use ReduceOp.{name} with Bool")
        return getattr(mpi, _LOGICAL[name])
    if name in _BITS and (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"Cannot use ReduceOp.{name} with non-integral dtype")
    if dtype.is_complex and name not in ("SUM", "AVG", "PREMUL_SUM"):
        raise ValueError(f"all_reduce does not support {ReduceOp(op)} on complex tensors")
    if name not in _OPS:
        raise RuntimeError("Unhandled ReduceOp")
    return getattr(mpi, _OPS[name])


def reducible(tensor, op):
    """A contiguous tensor that MPI can reduce: `tensor` itself or a copy.

    16-bit floats are converted to float32, so that the sum is rounded once; MPICH's own bfloat16 sum truncates instead of
    rounding. The factor of PREMUL_SUM is applied.
    """
    with no_grad():
        work = tensor.data
        if work.dtype.name not in _TYPES:
            if not work.dtype.is_floating_point:
                raise unsupported("torch.distributed", f"a reduction of {work.dtype} is not supported")
            work = work.float()
        if op == ReduceOp.PREMUL_SUM:
            work = work * op.factor
        return work.contiguous()


def settle(result, target, op, size: int) -> None:
    """Finishes a reduction: divides for AVG and writes to `target` if `result` is not the same memory."""
    with no_grad():
        if op == ReduceOp.AVG:
            if result.dtype.is_floating_point or result.dtype.is_complex:
                result.div_(size)
            else:
                result.copy_(ops.div(result, size, rounding_mode="trunc"))
        if not same_memory(result, target):
            target.data.copy_(result.reshape(target.shape))


def add(target, other) -> None:
    """Adds other to target without autograd. Both are contiguous and have equally many elements."""
    with no_grad():
        target.view(-1).add_(other)


def sum_parts(parts, target, op) -> None:
    """target = the sum (for AVG the mean) of the rows of `parts`, computed in float32 and rounded once."""
    with no_grad():
        flat = target.data.view(-1) if target.is_contiguous() else target.new_empty(target.numel())
        for start in range(0, flat.numel(), _PIECE):  # a piece fits the cache
            total = parts[0, start : start + _PIECE].float()
            for part in parts[1:]:
                total.add_(part[start : start + _PIECE])
            if op == ReduceOp.AVG:
                total.div_(parts.size(0))
            flat[start : start + _PIECE].copy_(total)
        if not target.is_contiguous():
            target.data.copy_(flat.view(target.shape))


class Rooms:
    """A cache of receive buffers, because allocating new pages costs more than the message."""

    def __init__(self):
        self._spare = []

    def take(self, like, rows: int, length: int):
        """Returns (a (rows, length) tensor of like's dtype, the buffer to pass to `give` later)."""
        needed = rows * length
        for i, spare in enumerate(self._spare):
            if spare.dtype == like.dtype and needed <= spare.numel() <= 4 * needed:
                room = self._spare.pop(i)
                break
        else:
            room = like.new_empty(needed)
        return room[:needed].view(rows, length), room

    def give(self, room) -> None:
        """Returns a buffer to the cache, which keeps the largest two of at most 128 MB."""
        if room.nbytes <= _KEPT:
            self._spare = sorted([*self._spare, room], key=lambda r: r.nbytes)[-2:]


def same_memory(one, other) -> bool:
    """True if two tensors consist of the same memory in the same order."""
    return one.data_ptr() == other.data_ptr() and one.dtype == other.dtype and other.is_contiguous()


def write(target, source) -> None:
    """Copies source to target without autograd."""
    with no_grad():
        target.data.copy_(source.reshape(target.shape))


def packed(tensors):
    """One flat tensor with all elements of the tensors in order."""
    with no_grad():
        if len(tensors) == 1:
            return tensors[0].detach().contiguous().reshape(-1)
        return ops.cat([t.detach().reshape(-1) for t in tensors])


def room(tensors):
    """Returns (flat tensor for all elements, function that copies its parts into the tensors).

    If the tensors are adjacent parts of one storage, the flat tensor is a view of them, and nothing is copied.
    """
    first = tensors[0]
    if len(tensors) == 1 and first.is_contiguous():
        return first.data.view(-1), None
    if _neighbours(tensors):
        total = sum(t.numel() for t in tensors)
        return first.data.as_strided((total,), (1,), first.storage_offset()), None
    flat = ops.empty(sum(t.numel() for t in tensors), dtype=first.dtype)

    def unpack():
        place = 0
        for tensor in tensors:
            write(tensor, flat[place : place + tensor.numel()])
            place += tensor.numel()

    return flat, unpack


def _neighbours(tensors) -> bool:
    place = tensors[0].data_ptr()
    storage = tensors[0].untyped_storage().data_ptr()
    for tensor in tensors:
        # two storages may be adjacent by chance; they are not treated as one
        if (
            not tensor.is_contiguous()
            or tensor.data_ptr() != place
            or tensor.untyped_storage().data_ptr() != storage
        ):
            return False
        place += tensor.nbytes
    return True
