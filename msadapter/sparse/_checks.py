"""Checks of the parts of compressed tensors, and of the arguments of conversions, with PyTorch's texts."""

from __future__ import annotations

from ..tensor._rare_methods import layout_title

ROWS = {"sparse_csr", "sparse_bsr"}  # the compressed layouts whose lines are rows
BLOCKED = {"sparse_bsr", "sparse_bsc"}  # those whose values are blocks


def title(name: str) -> str:
    """Return the name of a layout as errors have it: Strided, Sparse or SparseCsr."""
    return name.removesuffix("_coo").title().replace("_", "")


def index_names(name: str) -> tuple[str, str]:
    """Return the names of the two index tensors of a compressed layout."""
    return ("crow_indices", "col_indices") if name in ROWS else ("ccol_indices", "row_indices")


def _require(condition, text: str) -> None:
    if not condition:
        raise RuntimeError(text)


def check_ranks(name: str, outer, inner, values) -> None:
    """RuntimeError unless the parts have dims that fit each other."""
    first, second = index_names(name)
    block = 2 if name in BLOCKED else 0
    _require(outer.ndim >= 1, f"{first} must have dimensionality >= 1 but got {outer.ndim}")
    _require(
        outer.ndim == inner.ndim,
        f"{first} and {second} dimensionalities must be equal but got {outer.ndim} and {inner.ndim}, respectively",
    )
    _require(
        values.ndim > outer.ndim - 1 + block,
        f"values must have dimensionality > sum of batch and block dimensionalities (={outer.ndim - 1} + {block}) "
        f"but got {values.ndim}",
    )


def _check_shapes(name: str, outer, inner, values, size) -> tuple[int, int]:
    """Check everything but the numbers of the indices. Returns the number of lines and the places in each."""
    first, second = index_names(name)
    for part, what in ((inner, second), (outer, first)):
        _require(part.stride()[-1] == 1, f"expected {what} to be a contiguous tensor per batch")
    count, block = outer.ndim - 1, 2 if name in BLOCKED else 0
    dense = values.ndim - count - block - 1
    _require(
        len(size) == count + 2 + dense,
        f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={count} + 2 + {dense}) but got "
        f"{len(size)}",
    )
    batches = [list(x[:count]) for x in (outer.shape, inner.shape, values.shape, size)]
    _require(
        all(b == batches[-1] for b in batches),
        f"all batch dimensions of {first} (={batches[0]}), {second} (={batches[1]}), and values (={batches[2]}) must be equal "
        f"to tensor batch dimensions (={batches[3]})",
    )
    sizes = [max(1, n) for n in values.shape[count + 1 : count + 3]] if block else [1, 1]
    for i, n in enumerate(sizes):
        _require(
            size[count + i] % n == 0,
            f"tensor shape[{count + i}] (={size[count + i]}) must be divisible with blocksize[{i}] (={n}) as defined by values "
            "shape",
        )
    lines, width = (size[count] // sizes[0], size[count + 1] // sizes[1])
    lines, width = (lines, width) if name in ROWS else (width, lines)
    _require(
        outer.shape[-1] == lines + 1,
        f"{first}.shape[-1] must be equal to the number of {'rows' if name in ROWS else 'columns'} + 1 (={lines + 1}), but "
        f"got {outer.shape[-1]}",
    )
    nnz = values.shape[count]
    _require(
        inner.shape[-1] == nnz,
        f"{second}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{count}], but got {inner.shape[-1]}",
    )
    return lines, width


def _check_dtypes(name: str, outer, inner) -> None:
    first, second = index_names(name)
    shown = [part.dtype.scalar_name for part in (outer, inner)]
    _require(
        outer.dtype is inner.dtype,
        f"{first} and {second} must have the same dtype, bot got {shown[0]} and {shown[1]}, respectively",
    )
    _require(
        outer.dtype.name in ("int32", "int64"),
        f"{first} and {second} dtype must be Int or Long, but got {shown[0]}",
    )


def check_parts(name: str, outer, inner, values, size) -> None:
    """RuntimeError unless these are the parts of a tensor of a compressed layout."""
    check_ranks(name, outer, inner, values)
    lines, width = _check_shapes(name, outer, inner, values, size)
    _check_dtypes(name, outer, inner)
    first, second = index_names(name)
    nnz, wide, long = inner.shape[-1], ("ncols" if name in ROWS else "nrows"), outer.long()
    _require(bool((long[..., 0] == 0).all()), f"`{first}[..., 0] == 0` is not satisfied.")
    _require(bool((long[..., -1] == nnz).all()), f"`{first}[..., -1] == nnz` is not satisfied.")
    steps = long[..., 1:] - long[..., :-1]
    _require(
        bool(((steps >= 0) & (steps <= width)).all()),
        f"`0 <= {first}[..., 1:] - {first}[..., :-1] <= {wide}` is not satisfied.",
    )
    _require(bool(((inner >= 0) & (inner < width)).all()), f"`0 <= {second} < {wide}` is not satisfied.")
    if nnz < 2 or not inner.numel():
        return
    # Two neighbours in a line must rise. The last value of a line and the first of the next one need not.
    flat = inner.reshape(-1, nnz)
    rises = flat[:, 1:] > flat[:, :-1]
    ends = long.reshape(len(flat), -1)[:, 1:-1]
    for row, starts in zip(rises, ends, strict=True):
        inside = starts[(starts > 0) & (starts < nnz)] - 1
        row[inside] = True
    _require(
        bool(rises.all()),
        f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., "
        f"{'nrows' if name in ROWS else 'ncols'} are sorted and distinct along the last dimension values` is not satisfied.",
    )


def conversion_name(method: str, tensor) -> str:
    """Return the name that PyTorch's errors give to a conversion, such as dense_to_sparse_csr for the method to_sparse_csr."""
    if tensor.layout._name == "strided":
        return f"dense_{method}"
    if tensor.layout._name != "sparse_coo":
        return f"sparse_compressed_{method}"
    return "sparse_coo_to_sparse" if method == "to_sparse" else f"coo_{method}"


def check_conversion(what: str, tensor, name: str, blocksize, dense_dim=None) -> None:
    """RuntimeError unless a conversion of the tensor to the layout ``name`` has these arguments.

    Args:
        what: the name of the conversion, for the text.
    """
    kinds = f"conversion from {layout_title(tensor)} to {title(name)}"
    if blocksize is not None:
        _require(
            len(blocksize) == 2,
            f"{what}: blocksize needs to be a tuple of size 2, but got {len(blocksize)}",
        )
        _require(
            min(blocksize) > 0,
            f"{what}: blocksize needs to be positive, but got {list(blocksize)}",
        )
        _require(name in BLOCKED, f"{what}: {kinds} with blocksize argument given is not supported")
    elif name in BLOCKED and tensor.layout._name not in BLOCKED:
        raise RuntimeError(f"{what}: {kinds} without blocksize argument given is not supported")
    if dense_dim is not None and tensor.layout._name != "strided":
        raise RuntimeError(f"{what}: {kinds} with dense_dim argument given is not supported")
