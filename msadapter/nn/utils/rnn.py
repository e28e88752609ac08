"""Padding and packing of sequences with different lengths, and the inverse functions."""

from ... import ops
from ..._values.dtype import int64
from ...tensor import Tensor
from ...tensor._tensor import as_tensor, tensor
from .._packed import PackedSequence, invert_permutation

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


def pack_padded_sequence(input, lengths, batch_first=False, enforce_sorted=True):
    """Pack (T, B, ...), or (B, T, ...) with ``batch_first``. ``lengths`` holds the length of each sequence.

    With ``enforce_sorted`` the lengths must be in decreasing order already, else RuntimeError is raised.
    """
    if not isinstance(lengths, Tensor):
        lengths = as_tensor(lengths, dtype=int64, device="cpu")
    else:
        lengths = lengths.to("cpu")
    order = None
    if not enforce_sorted:
        lengths, order = ops.sort(lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    if batch_first:
        input = input.transpose(0, 1)
    data, batch_sizes = _pack(input, lengths)
    return PackedSequence(data, batch_sizes, order, None)


def _pack(steps, lengths):
    """Return the rows of (T, B, ...) that are inside their sequence, and the number of rows of each step."""
    sizes = lengths.tolist()
    if not steps.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if len(sizes) != steps.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(sizes)} (batch_size="
            f"{steps.size(1)})"
        )
    if sizes[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in zip(sizes, sizes[1:], strict=False)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can "
            "pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this "
            "requirement if you do not need ONNX exportability."
        )
    if sizes[0] > steps.size(0):
        raise RuntimeError(f"start (0) + length ({sizes[0]}) exceeds dimension size ({steps.size(0)}).")
    batch_sizes = [sum(n > t for n in sizes) for t in range(sizes[0])]
    data = ops.cat([steps[t, :n] for t, n in enumerate(batch_sizes)], 0)
    return data, tensor(batch_sizes, dtype=int64)


def pad_packed_sequence(sequence, batch_first=False, padding_value=0.0, total_length=None):
    """Return the padded sequences (T, B, ...) or (B, T, ...) and their lengths, in the original order."""
    sizes = sequence.batch_sizes.tolist()
    steps = len(sizes)
    if total_length is not None:
        if total_length < steps:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but "
                f"got total_length={total_length} and max sequence length being {steps}"
            )
        steps = total_length
    data = sequence.data
    batch = sizes[0]
    index = [t * batch + b for t, n in enumerate(sizes) for b in range(n)]
    flat = ops.full((steps * batch, *data.shape[1:]), padding_value, dtype=data.dtype, device=data.device)
    padded = flat.index_copy(0, tensor(index, dtype=int64, device=data.device), data)
    padded = padded.view(steps, batch, *data.shape[1:])
    lengths = tensor([sum(n > b for n in sizes) for b in range(batch)], dtype=int64)
    if batch_first:
        padded = padded.transpose(0, 1)
    back = sequence.unsorted_indices
    if back is not None:
        return padded.index_select(0 if batch_first else 1, back), lengths[back.cpu()]
    return padded, lengths


def pad_sequence(sequences, batch_first=False, padding_value=0.0, padding_side="right"):
    """Stack tensors (L_i, ...) into (T, B, ...) or (B, T, ...).

    Shorter ones are padded at ``padding_side``.
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    longest = max(s.size(0) for s in sequences)
    rest = list(sequences[0].shape[1:])
    rows = []
    for s in sequences:
        missing = longest - s.size(0)
        if missing:
            gap = ops.full([missing, *rest], padding_value, dtype=s.dtype, device=s.device)
            s = ops.cat([s, gap] if padding_side == "right" else [gap, s], 0)
        rows.append(s)
    return ops.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences, lengths, batch_first=False):
    """Return the list of sequences in a padded batch, each cut to its length."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [row[: int(n)] for row, n in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences, enforce_sorted=True):
    """Pack a list of tensors (L_i, ...) into a PackedSequence."""
    lengths = as_tensor([s.size(0) for s in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences):
    """Return the list of tensors in a packed sequence."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
