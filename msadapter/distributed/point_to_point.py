"""Messages between two processes."""

from .collectives import _check_tensor, _root
from .process_group import resolve
from .setup import get_rank, not_in_group
from .work import Work


def _peer(group, rank, group_rank, what):
    peer = _root(group, rank, group_rank, what)
    if what == "dst" and peer == get_rank(group):
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of "
            "the "
            "current process."
        )
    return peer


def _send(tensor, dst, group, tag, group_dst, own):
    _check_tensor(tensor, "tensor")
    if not_in_group(group, "isend"):
        return None
    return resolve(group)._backend.send(tensor, _peer(group, dst, group_dst, "dst"), tag, own)


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Starts sending. The data is copied immediately, so the tensor may be overwritten or freed."""
    work = _send(tensor, dst, group, tag, group_dst, own=True)
    if work is not None:
        work.in_background()
    return work


def _receive(tensor, src, group, tag, group_src):
    _check_tensor(tensor, "tensor")
    if not_in_group(group, "irecv"):
        return None
    anyone = src is None and group_src is None
    return resolve(group)._backend.recv(tensor, -1 if anyone else _peer(group, src, group_src, "src"), tag)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Starts receiving. src None means any rank."""
    work = _receive(tensor, src, group, tag, group_src)
    if work is not None:
        work.in_background()
    return work


def send(tensor, dst=None, group=None, tag=0, group_dst=None) -> None:
    """Send and wait until the tensor may be used again."""
    work = _send(tensor, dst, group, tag, group_dst, own=False)
    if work is not None:
        work.wait()


def recv(tensor, src=None, group=None, tag=0, group_src=None) -> int:
    """Receives a tensor. Returns the sender's global rank, or -1 if this process is not in the group."""
    work = _receive(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return resolve(group)._ranks[work.source_rank()] if src is None else src


class P2POp:
    """One message of a batch: op is isend or irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        _check_tensor(tensor, "tensor")
        self.op = op
        self.tensor = tensor
        self.group = resolve(group)
        self.group_peer = _root(group, peer, group_peer, "peer")
        self.peer = self.group._ranks[self.group_peer] if peer is None else peer
        self.tag = tag

    def __repr__(self):
        return f"P2POp({self.op.__name__} peer={self.peer}, {tuple(self.tensor.shape)})"


def batch_isend_irecv(p2p_op_list) -> list:
    """Starts all messages of a list and returns their Works. Sending to oneself is allowed here."""
    if not isinstance(p2p_op_list, list) or not all(isinstance(op, P2POp) for op in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``."
        )
    if not p2p_op_list:
        return []
    if any(op.group is not p2p_op_list[0].group for op in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    works: list[Work] = []
    for op in p2p_op_list:
        start = op.group._backend.send if op.op is isend else op.group._backend.recv
        works.append(start(op.tensor, op.group_peer, op.tag))
        works[-1].in_background()
    return works
