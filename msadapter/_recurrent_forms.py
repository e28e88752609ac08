"""torch.lstm and its kin with their weights as arguments, torch.embedding_bag, torch.native_channel_shuffle."""

from __future__ import annotations

import types

from . import ops
from .nn import functional as F
from .nn.functional import embedding_bag as _embedding_bag
from .nn.modules._recurrent import run_stack
from .tensor import Tensor

_linalg = types.SimpleNamespace(**ops.namespaces["linalg"])
_BAG_MODES = ("sum", "mean", "max")


def _run(mode: str, args):
    """The two overloads: (input, hx, ..., batch_first), and packed rows (data, batch_sizes, hx, ...)."""
    packed = (
        isinstance(args[1], Tensor)
        and isinstance(args[2], (Tensor, list, tuple))
        and not isinstance(args[3], bool)
    )
    if packed:
        data, batch_sizes, hx, params, biases, layers, dropout, train, bidirectional = args
        batch_first, sizes = False, batch_sizes.tolist()
    else:
        data, hx, params, biases, layers, dropout, train, bidirectional, batch_first = args
        sizes = None
    rows = data.transpose(0, 1) if batch_first else data
    state = tuple(hx) if mode == "LSTM" else hx
    out, last = run_stack(
        mode,
        rows,
        state,
        list(params),
        bias=biases,
        num_layers=layers,
        dropout=dropout,
        training=train,
        bidirectional=bidirectional,
        batch_sizes=sizes,
    )
    out = out.transpose(0, 1) if batch_first else out
    return (out, *last) if mode == "LSTM" else (out, last)


def lstm(*args):
    """(output, h, c) of an LSTM: (input, (h, c), weights, has_biases, num_layers, dropout, train, bidirectional, batch_first)."""
    return _run("LSTM", args)


def gru(*args):
    """(output, h) of a GRU, arguments as of `lstm` with one state."""
    return _run("GRU", args)


def rnn_tanh(*args):
    """(output, h) of a recurrent network with tanh, arguments as of `gru`."""
    return _run("RNN_TANH", args)


def rnn_relu(*args):
    """(output, h) of a recurrent network with relu, arguments as of `gru`."""
    return _run("RNN_RELU", args)


def embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """(bags, the bag of each index, the size of each bag, the index of each maximum); mode 0 sum, 1 mean, 2 max."""
    out = _embedding_bag(
        indices,
        weight,
        offsets,
        None,
        2.0,
        scale_grad_by_freq,
        _BAG_MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )
    starts = offsets[:-1] if include_last_offset else offsets
    places = ops.arange(indices.numel(), dtype=offsets.dtype, device=offsets.device)
    bag = ops.searchsorted(starts.contiguous(), places, right=True) - 1
    counted = bag if padding_idx is None else bag[indices != padding_idx % weight.shape[0]]
    sizes = ops.bincount(counted, minlength=starts.numel()).to(offsets.dtype)
    return (
        out,
        bag.to(offsets.dtype),
        sizes,
        _largest(weight, indices, bag, starts.numel(), padding_idx) if mode == 2 else sizes[:0],
    )


def _largest(weight, indices, bag, count: int, padding_idx):
    """(bags, columns) which index gave each maximum; 0 in an empty bag, the first of equals."""
    rows = weight.detach().index_select(0, indices)
    if padding_idx is not None:
        rows = rows.masked_fill((indices == padding_idx % weight.shape[0]).unsqueeze(1), float("-inf"))
    top = ops.full((count, rows.shape[1]), float("-inf"), dtype=rows.dtype).index_reduce(0, bag, rows, "amax")
    hit = (rows == top.index_select(0, bag)) & (rows > float("-inf"))
    order = ops.arange(len(rows)).unsqueeze(1).masked_fill(~hit, len(rows))
    first = ops.full(top.shape, len(rows), dtype=order.dtype).index_reduce(0, bag, order, "amin")
    found = indices.index_select(0, first.clamp(max=max(len(rows) - 1, 0)).reshape(-1)).reshape(first.shape)
    return found.masked_fill(first == len(rows), 0)


def native_channel_shuffle(input, groups):
    """`nn.functional.channel_shuffle`."""
    return F.channel_shuffle(input, groups)


def lobpcg(
    A,
    k=None,
    B=None,
    X=None,
    n=None,
    iK=None,
    niter=None,
    tol=None,
    largest=None,
    method=None,
    tracker=None,
    **options,
):
    """The k largest (or smallest) eigenvalues of a symmetric A (for B) and their vectors, of the exact decomposition.

    The iteration's own parameters (start X, preconditioner, steps, tolerance) are read for the number of vectors alone.

    Raises:
        ValueError: a matrix smaller than three times the number of vectors, which PyTorch refuses too.
    """
    k = k if k is not None else X.shape[-1] if X is not None else 1
    m = A.shape[-1]
    n = k if n is None else n
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested "
            f"eigenpairs (={n})"
        )
    dense = A.to_dense()
    root = None
    if B is not None:
        root = _linalg.cholesky(B.to_dense())
        half = _linalg.solve_triangular(root, dense, upper=False)
        dense = _linalg.solve_triangular(root, half.mT, upper=False)
    values, vectors = _linalg.eigh(dense)
    values, vectors = (values.flip(-1), vectors.flip(-1)) if largest in (None, True) else (values, vectors)
    values, vectors = values[..., :k], vectors[..., :k]
    return values, vectors if root is None else _linalg.solve_triangular(root.mT, vectors, upper=True)
