"""Collectives on Python objects, which are pickled. The processes must trust each other."""

import io
import pickle

import numpy as np

from .. import ops
from .._values.dtype import ALL
from ..tensor import _tensor as factory
from .collectives import _root, all_gather, all_gather_single, broadcast, gather, scatter
from .point_to_point import recv, send
from .process_group import resolve
from .setup import not_in_group


def _object_to_tensor(obj, device=None, group=None):
    """(bytes of the pickled object, their number) as tensors, on the device of the group's collectives."""
    device = device or _device(group)
    data = np.frombuffer(bytearray(pickle.dumps(obj)), dtype=np.uint8)
    return factory.from_numpy(data).to(device), factory.tensor([data.size], device=device)


def _device(group) -> str:
    """The device whose tensors the group exchanges."""
    return getattr(resolve(group)._backend, "device", "cpu")


def _bytes(count: int, group):
    """Room for the bytes of objects that come from other processes."""
    return ops.empty(count, dtype=ALL["uint8"], device=_device(group))


def _counts(count: int, group):
    """Room for numbers of bytes."""
    return ops.zeros(count, dtype=ALL["int64"], device=_device(group))


def _tensor_to_object(tensor, tensor_size, group=None):
    """The object of a byte tensor."""
    return pickle.load(io.BytesIO(tensor[: int(tensor_size)].cpu().numpy().tobytes()))


def _sizes(size, pg):
    sizes = _counts(pg.size(), pg)
    all_gather_single(sizes, size, pg)
    return [int(s) for s in sizes]


def _padded(data, length):
    out = ops.zeros(length, dtype=ALL["uint8"], device=data.device)
    out[: data.numel()].copy_(data)
    return out


def all_gather_object(object_list, obj, group=None) -> None:
    """object_list[i] = the object of process i."""
    if not_in_group(group, "all_gather_object"):
        return
    pg = resolve(group)
    data, size = _object_to_tensor(obj, group=pg)
    sizes = _sizes(size, pg)
    pieces = [_bytes(max(sizes), pg) for _ in sizes]
    all_gather(pieces, _padded(data, max(sizes)), pg)
    for i, (piece, count) in enumerate(zip(pieces, sizes, strict=True)):
        object_list[i] = _tensor_to_object(piece, count)


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None) -> None:
    """On dst: object_gather_list[i] = the object of process i."""
    if not_in_group(group, "gather_object"):
        return
    pg, root = resolve(group), _root(group, dst, group_dst, "dst")
    if pg.rank() == root and not object_gather_list:
        raise ValueError("Argument ``object_gather_list`` must be specified on destination rank.")
    data, size = _object_to_tensor(obj, group=pg)
    sizes = _sizes(size, pg)
    at_root = pg.rank() == root
    pieces = [_bytes(max(sizes), pg) for _ in sizes] if at_root else None
    gather(_padded(data, max(sizes)), pieces, group=pg, group_dst=root)
    for i, count in enumerate(sizes if at_root else []):
        object_gather_list[i] = _tensor_to_object(pieces[i], count)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None) -> None:
    """object_list = the list of src, in place."""
    if not_in_group(group, "broadcast_object_list"):
        return
    pg, root = resolve(group), _root(group, src, group_src, "src")
    if pg.size() == 1 and pg.rank() == root:
        object_list[:] = [pickle.loads(pickle.dumps(obj)) for obj in object_list]
        return
    pairs = [_object_to_tensor(obj, group=pg) for obj in object_list] if pg.rank() == root else None
    sizes = ops.cat([s for _, s in pairs]) if pairs else _counts(len(object_list), pg)
    broadcast(sizes, group=pg, group_src=root)
    counts = [int(s) for s in sizes]
    data = ops.cat([d for d, _ in pairs]) if pairs else _bytes(sum(counts), pg)
    broadcast(data, group=pg, group_src=root)
    offset = 0
    for i, count in enumerate(counts if pg.rank() != root else []):
        object_list[i] = _tensor_to_object(data[offset : offset + count], count)
        offset += count


def scatter_object_list(
    scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None
) -> None:
    """scatter_object_output_list[0] = src's scatter_object_input_list[own rank]."""
    if not_in_group(group, "scatter_object_list"):
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    pg, root = resolve(group), _root(group, src, group_src, "src")
    pairs = [_object_to_tensor(o, group=pg) for o in scatter_object_input_list] if pg.rank() == root else []
    longest = factory.tensor([max((int(s) for _, s in pairs), default=0)], device=_device(pg))
    broadcast(longest, group=pg, group_src=root)
    out, count = _bytes(int(longest), pg), _counts(1, pg)
    scatter(out, [_padded(d, int(longest)) for d, _ in pairs] or None, group=pg, group_src=root)
    scatter(count, [s for _, s in pairs] or None, group=pg, group_src=root)
    scatter_object_output_list[0] = _tensor_to_object(out, count)


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False) -> None:
    """Send the objects of a list."""
    pairs = [_object_to_tensor(obj, group=group) for obj in object_list]
    send(ops.cat([s for _, s in pairs]), dst, group, group_dst=group_dst)
    send(ops.cat([d for d, _ in pairs]), dst, group, group_dst=group_dst)


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False) -> int:
    """Receives objects into a list of the right length. Returns the sender's rank."""
    sizes = _counts(len(object_list), group)
    sender = recv(sizes, src, group, group_src=group_src)
    counts = [int(s) for s in sizes]
    data = _bytes(sum(counts), group)
    recv(data, src, group, group_src=group_src)
    offset = 0
    for i, count in enumerate(counts):
        object_list[i] = _tensor_to_object(data[offset : offset + count], count)
        offset += count
    return sender
