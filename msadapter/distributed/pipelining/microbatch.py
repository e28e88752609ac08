"""Splits the arguments of a step into microbatches, and joins their results."""

from __future__ import annotations

import warnings

from ... import ops
from ...tensor import Tensor
from ...utils import _pytree as pytree

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """Says along which dimension a tensor is split."""

    def __init__(self, split_dim: int):
        self.split_dim = split_dim

    def __repr__(self) -> str:
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self) -> str:
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims: tuple[int, ...]):
        """Make the specifications of positional arguments from their dimensions."""
        return pytree.tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims: dict[str, int]):
        """Make the specifications of keyword arguments from their dimensions."""
        return pytree.tree_map(TensorChunkSpec, chunk_dims)


class _Replicate:
    """Says that every microbatch gets the value as it is."""


class _CustomReducer:
    """Joins results that are not tensors with a batch dimension: ``reduce_fn(reduce_fn(init_value, first), second)``, and so on."""

    def __init__(self, init_value, reduce_fn):
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    """Joins losses."""


sum_reducer = _LossReducer(0.0, lambda total, part: total + part)


def _specified(values, spec) -> list:
    """Return [(value, spec)] of the leaves of a tree; spec None: tensors along dimension 0, everything else as it is."""
    if spec is None:
        return [
            (v, TensorChunkSpec(0) if isinstance(v, Tensor) else _Replicate())
            for v in pytree.tree_leaves(values)
        ]
    specs = pytree.tree_leaves(spec, is_leaf=lambda s: s is _Replicate)
    leaves = pytree.tree_leaves(values)
    if len(specs) != len(leaves):
        raise ValueError(f"the chunk specification names {len(specs)} values, but there are {len(leaves)}")
    return list(zip(leaves, specs, strict=True))


def _shards(values, spec, chunks: int) -> list:
    """Return a tree for each chunk; fewer where a dimension is shorter than the number of chunks."""
    if not pytree.tree_leaves(values):
        return [values] * chunks
    pieces = []
    for value, how in _specified(values, spec):
        if isinstance(how, TensorChunkSpec):
            if not isinstance(value, Tensor):
                raise ValueError(f"Unsupported chunk spec: {how} and value: {value} combination.")
            if value.size(how.split_dim) < chunks:
                warnings.warn(
                    f"Tensor size on chunking dimension is {value.size(how.split_dim)}, downsizing the number of chunks from "
                    f"{chunks} to {value.size(how.split_dim)}.",
                    stacklevel=4,
                )
                return _shards(values, spec, value.size(how.split_dim))
            pieces.append(ops.tensor_split(value, chunks, how.split_dim))
        elif isinstance(how, _Replicate) or how is _Replicate:
            pieces.append([value] * chunks)
        else:
            raise ValueError(f"Unsupported chunk spec: {how} and value: {value} combination.")
    structure = pytree.tree_structure(values)
    return [pytree.tree_unflatten(list(leaves), structure) for leaves in zip(*pieces, strict=True)]


def split_args_kwargs_into_chunks(args, kwargs, chunks, args_chunk_spec=None, kwargs_chunk_spec=None):
    """Return (list of args, list of kwargs) of the microbatches.

    Tensors are split along dimension 0 unless a specification says otherwise; other values are given to each microbatch.
    """
    kwargs = {} if kwargs is None else kwargs
    args_parts = _shards(tuple(args), args_chunk_spec, chunks)
    kwargs_parts = _shards(kwargs, kwargs_chunk_spec, len(args_parts))
    if len(kwargs_parts) < len(args_parts):
        args_parts = _shards(tuple(args), args_chunk_spec, len(kwargs_parts))
    return args_parts, kwargs_parts


def merge_chunks(chunks: list, chunk_spec):
    """Join the results of microbatches: tensors are concatenated, along dimension 0 unless the specification says otherwise."""
    if not chunks:
        raise ValueError("merge_chunks: there are no chunks")
    structure = pytree.tree_structure(chunks[0])
    joined = []
    if chunk_spec is None:
        chunk_spec = pytree.tree_map(lambda leaf: TensorChunkSpec(0), chunks[0])
    for i, (first, how) in enumerate(_specified(chunks[0], chunk_spec)):
        parts = [first, *(pytree.tree_leaves(chunk)[i] for chunk in chunks[1:])]
        if isinstance(how, TensorChunkSpec):
            joined.append(ops.cat(parts, how.split_dim))
        elif isinstance(how, _CustomReducer):
            total = how.init_value
            for part in parts:
                total = how.reduce_fn(total, part)
            joined.append(total)
        else:
            if any(part is not first and not _same(part, first) for part in parts[1:]):
                raise ValueError(f"merge_chunks: the microbatches gave different values: {parts}")
            joined.append(first)
    return pytree.tree_unflatten(joined, structure)


def _same(one, other) -> bool:
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return ops.equal(one, other)
    return one == other
