"""Tensors that one stage sends to another, with what the receiver has to know about them.

Every message begins with a header of fixed length, which describes the tensors that follow. Shapes may therefore differ from one
microbatch to the next, and nothing has to be agreed on before the first one. The tag names the stages and the direction, so that
messages of several stages between the same two ranks do not meet.
"""

from __future__ import annotations

from ... import ops
from ..._values.dtype import ALL
from ...tensor import _tensor as factory
from ..point_to_point import isend, recv

_HEADER = 32  # numbers in the header; what does not fit follows in a second message
_TAGS = 16384  # programs usually number their own messages from 0
_DTYPES = sorted(ALL)
_ABSENT = -1


def tag_of(receiver: int, backward: bool) -> int:
    """Return the tag of the messages to a stage: activations, or with ``backward`` gradients."""
    return _TAGS + 2 * receiver + backward


def _described(tensors) -> list[int]:
    numbers = [len(tensors)]
    for t in tensors:
        if t is None:
            numbers.append(_ABSENT)
        else:
            numbers += [
                _DTYPES.index(str(t.dtype).removeprefix("torch.")),
                int(t.requires_grad),
                t.dim(),
                *t.shape,
            ]
    return [len(numbers), *numbers]


def send_tensors(tensors, rank: int, group, tag: int) -> list:
    """Start to send tensors, some of which may be None, to a rank of a group. Return the works to wait for."""
    numbers = _described(tensors)
    header = numbers + [0] * (_HEADER - len(numbers))
    present = [t for t in tensors if t is not None]
    device = present[0].device if present else "cpu"
    parts = [factory.tensor(header[:_HEADER], dtype=ALL["int64"], device=device)]
    if len(header) > _HEADER:
        parts.append(factory.tensor(header[_HEADER:], dtype=ALL["int64"], device=device))
    parts += [t.detach().contiguous() for t in present if t.numel()]
    return [isend(part, group=group, tag=tag, group_dst=rank) for part in parts]


def receive_tensors(rank: int, group, tag: int, device) -> list:
    """Receive what ``send_tensors`` of a rank sent. A tensor requires a gradient where the sender's did."""

    def arrived(shape, dtype):
        room = ops.empty(shape, dtype=dtype, device=device)
        if room.numel():
            recv(room, group=group, tag=tag, group_src=rank)
        return room

    header = arrived((_HEADER,), ALL["int64"]).tolist()
    if header[0] >= _HEADER:
        header += arrived((header[0] + 1 - _HEADER,), ALL["int64"]).tolist()
    numbers = iter(header[1:])
    described = []
    for _ in range(next(numbers)):
        kind = next(numbers)
        if kind == _ABSENT:
            described.append(None)
            continue
        needs = next(numbers)
        shape = [next(numbers) for _ in range(next(numbers))]
        described.append((shape, ALL[_DTYPES[kind]], bool(needs)))
    tensors: list = []
    for one in described:
        tensors.append(None if one is None else arrived(*one[:2]).requires_grad_(one[2]))
    return tensors
