"""Weights that carry a matrix of LoRA, so that a converter of weights also puts the matrix where it belongs.

A converter takes fused weights apart by rows, and joins the parts of tensor parallel ranks by rows or by columns. The rows of B
belong to the rows of a weight, and the columns of A to its columns. So a matrix is written into the first columns, or rows, of a
tensor of the weight's shape. The two after them have the number of the layer, by which the other matrix is found again, and the
rest is zero, which shows that the converter only moved rows or columns.
"""

from __future__ import annotations

from typing import Any

# The layers whose matrices can be put into an adapter of peft -> whether tensor parallelism divides the weight's rows.
# Where it does, every rank has the whole A; else every rank has the whole B.
DIVIDED_BY_ROWS = {"linear_qkv": True, "linear_fc1": True, "linear_proj": False, "linear_fc2": False}
_BASE = 128  # of the digits of a number; bfloat16 has integers up to 256
_DIGITS = 2


def encode(weight: Any, matrix: Any, number: int, by_rows: bool) -> Any:
    """A tensor with the shape of `weight` (rows, columns) that carries `matrix` and `number`.

    `matrix` is B, of shape (rows, rank), if the weight is divided by rows, else A, of shape (rank, columns).

    Raises:
        ValueError: the weight is too small, the number too large, or the types differ.
    """
    if not by_rows:
        return encode(weight.T, matrix.T, number, True).T.contiguous()
    rank = matrix.shape[1]
    if weight.shape[0] != matrix.shape[0] or weight.shape[1] < rank + _DIGITS:
        raise ValueError(f"a weight of {tuple(weight.shape)} cannot carry a matrix of {tuple(matrix.shape)}")
    if weight.dtype != matrix.dtype:
        raise ValueError(f"the weight is {weight.dtype} and the matrix {matrix.dtype}")
    if not 0 <= number < _BASE * (_BASE - 1):
        raise ValueError(f"the number {number} is too large")
    found = weight.new_zeros(weight.shape)
    found[:, :rank] = matrix
    found[:, rank] = 1 + number // _BASE  # never zero, so that no tensor of zeros looks like a code
    found[:, rank + 1] = number % _BASE
    return found


def decode(code: Any, rank: int) -> tuple[int, bool, Any] | None:
    """The number, whether the weight is divided by rows, and the matrix that a tensor carries; None if it carries none."""
    for by_rows, tensor in ((True, code), (False, code.T)) if code.ndim == 2 else ():
        if tensor.shape[1] >= rank + _DIGITS:
            digits, rest = tensor[:, rank : rank + _DIGITS], tensor[:, rank + _DIGITS :]
            if bool((digits == digits[:1]).all()) and not bool(rest.any()) and int(digits[0, 0]) > 0:
                matrix = tensor[:, :rank]
                number = (int(digits[0, 0]) - 1) * _BASE + int(digits[0, 1])
                return number, by_rows, (matrix if by_rows else matrix.T).contiguous()
    return None
