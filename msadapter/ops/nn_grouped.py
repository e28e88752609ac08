"""Matrix products of groups."""

from __future__ import annotations

from .._values.dtype import ALL
from ._declare import composite, t


def _ranges(offs, total: int) -> list[tuple[int, int]]:
    """Return (start, end) of each group. ``offs`` holds the ends of the groups in increasing order.

    Raises:
        RuntimeError: the ends decrease, or exceed ``total``.
    """
    ends = [int(n) for n in offs.tolist()]
    starts = [0, *ends[:-1]]
    if any(b < a for a, b in zip(starts, ends, strict=True)) or (ends and ends[-1] > total):
        raise RuntimeError(f"grouped_mm: offs {ends} do not divide {total} into groups")
    return list(zip(starts, ends, strict=True))


@composite(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor",
    forms="f",
)
def _grouped_mm(self, mat2, offs, bias, out_dtype):
    """Return the matrix product of each group, as `torch.nn.functional.grouped_mm` does.

    transformers calls it by this private name, which PyTorch had before the public one.
    """
    flat_a, flat_b = self.ndim == 2, mat2.ndim == 2
    if {self.ndim, mat2.ndim} - {2, 3}:
        raise RuntimeError(
            f"mat_a has to be 2 or 3d, mat_b has to be 2 or 3d, but got {self.ndim}d and {mat2.ndim}d"
        )
    if (offs is not None) != (flat_a or flat_b):
        raise RuntimeError(
            "Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d"
        )
    if self.shape[-1] != mat2.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if offs is not None and offs.dtype != ALL["int32"]:
        raise RuntimeError("Offsets have to be int32")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype not in (None, self.dtype):
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    return _grouped(self, mat2, offs, flat_a, flat_b)


@composite(
    "nn.functional.grouped_mm(Tensor mat_a, Tensor mat_b, *, Tensor? offs=None, Tensor? bias=None, "
    "any out_dtype=None) -> Tensor",
    forms="f",
)
def grouped_mm(mat_a, mat_b, *, offs, bias, out_dtype):
    """Return the matrix product of each group.

    Args:
        mat_a, mat_b: one of four forms. (G, M, K) and (G, K, N) are a batch. (M, K) and (G, K, N): ``offs``
        divides the rows; the result is (M, N), with zeros in rows outside of all groups. (G, M, K) and (K,
        N): it divides the columns, and the result is (M, N). (M, K) and (K, N): it divides K, and the result
        is (G, M, N). Strides may be any, where PyTorch asks for multiples of 16 bytes.
        offs: int32, the end of each group.

    Raises:
        RuntimeError: shapes or dtypes that do not fit, or a missing or superfluous ``offs``.
    """
    return _grouped_mm(mat_a, mat_b, offs, bias, out_dtype)


def _grouped(a, b, offs, flat_a: bool, flat_b: bool):
    if not flat_a and not flat_b:
        return t.bmm(a, b)
    if flat_a and flat_b:
        return t.stack([a[:, i:j] @ b[i:j] for i, j in _ranges(offs, a.shape[1])])
    if flat_a:
        groups = _ranges(offs, a.shape[0])
        parts = [a[i:j] @ b[g] for g, (i, j) in enumerate(groups)]
        rest = a.shape[0] - (groups[-1][1] if groups else 0)
        return t.cat([*parts, a.new_zeros(rest, b.shape[-1])]) if rest else t.cat(parts)
    groups = _ranges(offs, b.shape[1])
    parts = [a[g] @ b[:, i:j] for g, (i, j) in enumerate(groups)]
    rest = b.shape[1] - (groups[-1][1] if groups else 0)
    return t.cat([*parts, b.new_zeros(a.shape[1], rest)], 1) if rest else t.cat(parts, 1)
