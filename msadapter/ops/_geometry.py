"""Sizes and strides of views, computed on plain lists as in PyTorch's view functions."""

from __future__ import annotations


def wrap_dim(dim: int, ndim: int) -> int:
    """Return `dim` counted from the front. A 0-dimensional tensor counts as 1-dimensional.

    A value out of range raises IndexError.
    """
    n = ndim or 1
    if -n <= dim < n:
        return dim + n if dim < 0 else dim
    raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {dim})")


def wrap_dims(dims, ndim: int) -> list[int]:
    """Return all dims counted from the front. A repeated one raises RuntimeError."""
    out = []
    for d in dims:
        d = wrap_dim(d, ndim)
        if d in out:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        out.append(d)
    return out


def as_list(dims) -> list[int]:
    """Return one int or a sequence of ints as a list."""
    return list(dims) if isinstance(dims, (list, tuple)) else [int(dims)]


def numel(sizes) -> int:
    n = 1
    for s in sizes:
        n *= s
    return n


def is_dense(sizes, strides) -> bool:
    """Return whether a tensor fills its memory without gaps and overlaps, in whatever order of dims."""
    expected = 1
    for step, size in sorted((step, size) for step, size in zip(strides, sizes, strict=True) if size != 1):
        if step != expected:
            return False
        expected *= size
    return True


def contiguous_strides(sizes) -> list[int]:
    strides, step = [0] * len(sizes), 1
    for d in range(len(sizes) - 1, -1, -1):
        strides[d] = step
        step *= sizes[d] or 1
    return strides


def infer_size(sizes, count: int) -> list[int]:
    """Replace a size of -1 so that the sizes hold `count` elements. RuntimeError if that is impossible."""
    known, hole = 1, -1
    for i, s in enumerate(sizes):
        if s == -1:
            if hole >= 0:
                raise RuntimeError("only one dimension can be inferred")
            hole = i
        elif s < 0:
            raise RuntimeError(f"invalid shape dimension {s}")
        else:
            known *= s
    if hole < 0:
        if known == count:
            return list(sizes)
    elif known == 0 and count == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(sizes)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    elif known and count % known == 0:
        out = list(sizes)
        out[hole] = count // known
        return out
    raise RuntimeError(f"shape '{list(sizes)}' is invalid for input of size {count}")


def view_strides(old_sizes, old_strides, new_sizes) -> list[int] | None:
    """Return the strides that show the same elements with `new_sizes`, or None if this needs a copy."""
    if numel(old_sizes) == 0:
        return list(old_strides) if list(old_sizes) == list(new_sizes) else contiguous_strides(new_sizes)
    # runs of old dims without gaps between them, outermost first: (number of elements, stride of the
    # innermost dim)
    runs: list[list[int]] = []
    for size, stride in zip(old_sizes, old_strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == stride * size:
            runs[-1] = [runs[-1][0] * size, stride]
        else:
            runs.append([size, stride])
    out = [0] * len(new_sizes)
    run = len(runs) - 1
    left, step = runs[run] if runs else (1, 1)
    for d in range(len(new_sizes) - 1, -1, -1):
        size = new_sizes[d]
        if size == 1:
            out[d] = step
            continue
        if left == 1:
            run -= 1
            left, step = runs[run]
        if left % size:
            return None
        out[d] = step
        left //= size
        step *= size
    return out


def dense(sizes, strides) -> bool:
    """Return whether the elements fill their memory without gaps and overlaps, in any order of dims."""
    expected = 1
    for stride, size in sorted((st, s) for s, st in zip(sizes, strides, strict=True) if s != 1):
        if stride != expected:
            return False
        expected *= size
    return True
