"""BlockMask: which blocks of queries and keys an attention computes, and what its mask function hides inside them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

from ... import ops
from ..._errors import unsupported
from ..._values.dtype import int32
from ...utils._pytree import register_pytree_node
from ..functional import pad

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30  # of the mask of an attention that has none
_TENSORS = (
    "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
    "full_q_num_blocks", "full_q_indices",
)  # fmt: skip


def noop_mask(batch, head, token_q, token_kv):
    """Return true: every query attends to every key."""
    return batch.new_ones(()).bool()


def _mask_of_a_part(batch, head, token_q, token_kv):
    """The mask function of a BlockMask that was indexed. A program must set the one that fits."""
    raise RuntimeError(
        "Cannot use mask_mod from a sliced BlockMask. When you slice a BlockMask using [], the mask_mod attribute is reset. "
        "You must set it from the original BlockMask's mask_mod."
    )


# ---- lists of blocks: how many each row has, and which columns they are in
def _dense(counts, columns):
    """1 where a row (..., rows, columns) has a block, 0 elsewhere."""
    width = columns.shape[-1]
    listed = ops.arange(width, device=columns.device) < counts.unsqueeze(-1)
    aside = ops.where(listed, columns, width).long()  # what is not listed goes into a column that is cut off
    filled = ops.zeros((*columns.shape[:-1], width + 1), dtype=int32, device=columns.device)
    return filled.scatter_(-1, aside, 1)[..., :width].contiguous()


def _listed(dense):
    """The lists of a dense mask of blocks. Columns after the listed ones are those without a block."""
    dense = dense.to(int32)
    order = ops.argsort(dense, dim=-1, descending=True, stable=True)
    return dense.sum(-1).to(int32), order.to(int32)


def _transposed(counts, columns):
    return (None, None) if counts is None else _listed(_dense(counts, columns).mT)


def _cropped(counts, columns, rows: int, width: int):
    """The lists of the upper left part of a mask of blocks."""
    if counts is None:
        return None, None
    columns, counts = columns[:, :, :rows, :width], counts[:, :, :rows].clamp(max=width)
    return (columns < counts.unsqueeze(-1)).sum(-1).to(int32), columns


class BlockMask:
    """The blocks of an attention that are computed, as lists of the columns of each row of blocks, and its mask function.

    seq_lengths: numbers of queries and keys. kv_num_blocks (..., rows): how many blocks of keys each row of queries has.
    kv_indices (..., rows, columns): which they are. Blocks in the lists that begin with "full" need no mask function. The lists of
    q say the same by columns. BLOCK_SIZE: queries and keys of a block. mask_mod(b, h, q_idx, kv_idx): true where a query attends.
    """

    def __init__(
        self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices,
        full_q_num_blocks, full_q_indices,
        BLOCK_SIZE=(_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE), mask_mod: Callable = noop_mask, *,
        dq_write_order=None, dq_write_order_full=None, dq_kv_order=None, dq_kv_order_spt=None,
    ):  # fmt: skip
        if kv_indices is None or kv_num_blocks is None:
            raise AssertionError("kv_num_blocks and kv_indices must be provided")
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        _check_pairs(full_kv_num_blocks, full_kv_indices, "kv")
        _check_pairs(full_q_num_blocks, full_q_indices, "q")
        orders = {
            "dq_write_order": dq_write_order, "dq_write_order_full": dq_write_order_full, "dq_kv_order": dq_kv_order,
            "dq_kv_order_spt": dq_kv_order_spt,
        }  # fmt: skip
        for name, order in orders.items():
            if order is not None:
                raise unsupported("torch.nn.attention.flex_attention.BlockMask", f"{name} is not supported")
            setattr(self, name, None)
        self.seq_lengths, self.BLOCK_SIZE, self.mask_mod = seq_lengths, BLOCK_SIZE, mask_mod
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
        BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, mask_mod=None, seq_lengths=None, compute_q_blocks: bool = True, *,
        dq_write_order=None, dq_write_order_full=None, dq_kv_order=None,
    ):  # fmt: skip
        """Return the BlockMask of lists of blocks of keys. The lists by columns are computed from them.

        Raises:
            RuntimeError: kv_indices has fewer than two dims.
            AssertionError: one of the two lists of full blocks is missing.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        _check_pairs(full_kv_num_blocks, full_kv_indices, "kv")
        by_columns = full_by_columns = (None, None)
        if compute_q_blocks:
            by_columns = _transposed(kv_num_blocks, kv_indices)
            full_by_columns = _transposed(full_kv_num_blocks, full_kv_indices)
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        if seq_lengths is None:
            seq_lengths = tuple(n * block for n, block in zip(kv_indices.shape[-2:], size, strict=True))
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *by_columns, *full_by_columns,
            size, mask_mod if mask_mod is not None else noop_mask, dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full, dq_kv_order=dq_kv_order,
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple:
        """Return the attributes. With `flatten`, the sequence lengths and the block size are two members each."""
        lengths, sizes = (
            (self.seq_lengths, self.BLOCK_SIZE) if flatten else ((self.seq_lengths,), (self.BLOCK_SIZE,))
        )
        tensors = (getattr(self, name) for name in _TENSORS)
        return (*lengths, *tensors, None, None, None, None, *sizes, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the attention's scores: batch and heads (1 for all), queries, keys."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of the attention's scores."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """Return the percentage of the scores that are not computed."""
        blocks = self.kv_num_blocks.sum().item()
        if self.full_kv_num_blocks is not None:
            blocks += self.full_kv_num_blocks.sum().item()
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self):
        """Return an int32 tensor (..., rows, columns): 1 for each block that is computed."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is None:
            return dense
        return dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)

    def to(self, device) -> BlockMask:
        """Return a BlockMask whose lists are on a device."""
        moved = [None if (x := getattr(self, name)) is None else x.to(device) for name in _TENSORS]
        return BlockMask(self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)

    def __getitem__(self, index) -> BlockMask:
        """Return the mask of a part of batch, heads and rows of blocks. Its mask function must be set before it is used."""
        index = index if isinstance(index, tuple) else (index,)
        index = (*index, *[slice(None)] * 3)[:3]
        sizes = self.kv_num_blocks.shape[:3]
        kept = tuple(_kept(i, n) for i, n in zip(index, sizes, strict=True))
        full = (None, None)
        if self.full_kv_num_blocks is not None:
            full = (self.full_kv_num_blocks[kept], self.full_kv_indices[kept])
        return BlockMask.from_kv_blocks(
            self.kv_num_blocks[kept], self.kv_indices[kept], *full, BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_mask_of_a_part, seq_lengths=self.seq_lengths, compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def _adjust(self, new_q_len: int, new_kv_len: int) -> BlockMask:
        """Return the mask of the first queries and keys, with the same mask function."""
        rows, width = -(-new_q_len // self.BLOCK_SIZE[0]), -(-new_kv_len // self.BLOCK_SIZE[1])
        return self.from_kv_blocks(
            *_cropped(self.kv_num_blocks, self.kv_indices, rows, width),
            *_cropped(self.full_kv_num_blocks, self.full_kv_indices, rows, width), BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=self.mask_mod, seq_lengths=(new_q_len, new_kv_len), compute_q_blocks=self.q_indices is not None,
        )  # fmt: skip

    def to_string(self, grid_size=(20, 20), limit: int = 4) -> str:
        """Return a picture of the blocks of each batch and head, with at most `grid_size` (rows, columns) fields.

        limit: how many batches and heads are shown. A field is full, empty, or shaded where blocks of both kinds lie in it.
        """
        dense = self.to_dense()
        rows, columns = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        pictures = []
        for place in itertools.product(*map(range, dense.shape[:-2])):
            if len(pictures) == limit:
                pictures += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]
                break
            pictures.append(f"{place}\n" + _picture(dense[place], rows, columns))
        return "\n".join(pictures)

    def __str__(self) -> str:
        return (
            f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"
        )

    def __repr__(self) -> str:
        lists = "".join(
            f"    {name}={None if (x := getattr(self, name)) is None else x.shape},\n" for name in _TENSORS
        )
        name = getattr(self.mask_mod, "__name__", self.mask_mod)
        return (
            f"BlockMask(\n{lists}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={name}\n)"
        )


register_pytree_node(
    BlockMask,
    lambda mask: (
        [getattr(mask, name) for name in _TENSORS],
        (mask.seq_lengths, mask.BLOCK_SIZE, mask.mask_mod),
    ),
    lambda tensors, rest: BlockMask(rest[0], *tensors, rest[1], rest[2]),
)


def _check_pairs(counts, columns, side: str) -> None:
    if (counts is None) != (columns is None):
        raise AssertionError(
            f"full_{side}_num_blocks and full_{side}_indices must be both provided or omitted"
        )


def _kept(index, size: int):
    """An index that keeps its dim: a number becomes a slice of one."""
    if not isinstance(index, int):
        return index
    index += size if -size <= index < 0 else 0
    return slice(index, index + 1)


def _picture(dense, rows: int, columns: int) -> str:
    height, width = dense.shape
    down, right = max(1, -(-height // rows)), max(1, -(-width // columns))
    text = ""
    for top in range(0, height, down):
        for left in range(0, width, right):
            share = dense[top : top + down, left : left + right].float().mean().item()
            text += 2 * ("█" if share == 1 else " " if share == 0 else "░")
        text += "\n"
    return text


def block_mask_of(
    mask, mask_mod, lengths, q_block: int, kv_block: int, separate_full_blocks: bool
) -> BlockMask:
    """Return the BlockMask of a bool mask (batch, heads, queries, keys)."""
    queries, keys = mask.shape[-2:]
    mask = pad(mask, [0, -keys % kv_block, 0, -queries % q_block])
    parts = mask.unflatten(-1, (-1, kv_block)).unflatten(-3, (-1, q_block))
    seen = parts.sum((-3, -1))  # how many scores of each block
    full = (seen == q_block * kv_block) if separate_full_blocks else ops.zeros_like(seen).bool()
    lists = _listed((seen > 0) & ~full)
    return BlockMask.from_kv_blocks(
        *lists, *(_listed(full) if separate_full_blocks else (None, None)), BLOCK_SIZE=(q_block, kv_block),
        mask_mod=mask_mod, seq_lengths=lengths,
    )  # fmt: skip
