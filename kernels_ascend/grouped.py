"""Matrix products of groups of rows, and products that are added to a float32 gradient."""

from __future__ import annotations

from dataclasses import dataclass

import msadapter
from msadapter.ops import on_ascend, t

from ._mapping import ascend
from .quantized import dequantized_weight

NO_GROUPS, ROWS, INNER = -1, 0, 2  # values of group_type: which dimension is divided into groups
ENDS, COUNTS = 0, 1  # values of group_list_type: group_list has the ends or the sizes of groups
_ACTIVATIONS = {
    0: lambda x: x,
    1: lambda x: t.relu(x),
    2: lambda x: t.gelu(x, approximate="tanh"),
    4: lambda x: x * t.sigmoid(1.702 * x),
    5: lambda x: t.silu(x),
}


def bounds(group_list, kind: int, total: int) -> list[tuple[int, int]]:
    """The ranges of rows of the groups.

    Raises:
        RuntimeError: the ends decrease, or exceed `total`.
    """
    numbers = [int(n) for n in (group_list.tolist() if hasattr(group_list, "tolist") else group_list)]
    if kind == COUNTS:
        ends, at = [], 0
        for n in numbers:
            at += n
            ends.append(at)
    elif kind == ENDS:
        ends = numbers
    else:
        raise RuntimeError(f"group_list_type must be 0 or 1, but got {kind}")
    starts = [0, *ends[:-1]]
    if any(b < a for a, b in zip(starts, ends, strict=True)) or (ends and ends[-1] > total):
        raise RuntimeError(
            f"group_list {numbers} must divide {total} rows into groups: ends must ascend and not exceed the number of rows"
        )
    return list(zip(starts, ends, strict=True))


def _weights(weight) -> list:
    """One matrix per group, from a list of matrices or one tensor (E, K, N)."""
    return list(weight[0].unbind(0)) if len(weight) == 1 and weight[0].dim() == 3 else list(weight)


def _with_rest(parts: list, rows: int):
    """Concatenates the parts and appends zeros for rows that are in no group."""
    out = t.cat(parts, 0) if len(parts) > 1 else parts[0]
    return out if len(out) == rows else t.cat([out, out.new_zeros(rows - len(out), out.shape[1])], 0)


def _product(x, weight, bias):
    out = t.matmul(x, weight)
    return out if bias is None else out + bias.to(out.dtype)


def _vectors(numbers) -> list:
    """The vectors of the groups, one for each, given as (E, N) or as a list."""
    return list(numbers[0].unbind(0)) if len(numbers) == 1 and numbers[0].dim() == 2 else list(numbers)


def _vector(numbers, group: int):
    """The vector of a group, or None if there are no vectors."""
    return _vectors(numbers)[group] if numbers else None


def _of_rows(x: list, weight: list, bias, group_list, kind: int, joined: bool, quantized=None):
    matrices = _weights(weight)
    biases = _vectors(bias) if bias else [None] * len(matrices)
    if len(x) == 1:
        if group_list is None:
            raise RuntimeError("npu_grouped_matmul: one x with group_type 0 needs group_list")
        ranges = bounds(group_list, kind, len(x[0]))
        pieces = [x[0][a:b] for a, b in ranges]
    else:
        pieces, ranges = x, [(0, len(one)) for one in x]
    if len(pieces) != len(matrices) or len(biases) != len(matrices):
        raise RuntimeError(
            f"npu_grouped_matmul: there must be one weight and one bias for each of the {len(pieces)} groups, but got "
            f"{len(matrices)} weights and {len(biases)} biases"
        )
    if quantized is None:
        found = [_product(*one) for one in zip(pieces, matrices, biases, strict=True)]
    else:
        found = [
            quantized.product(i, r, *one)
            for i, (r, *one) in enumerate(zip(ranges, pieces, matrices, biases, strict=True))
        ]
    return [_with_rest(found, sum(len(one) for one in x))] if joined else found


@dataclass
class Quantized:
    """The scales of int8 operands of a grouped product.

    For int8 @ int8, `scale` multiplies the columns of the product and `rows`, (M,), its rows. For float @ int8 the weight
    is (int8 + weight_offset) * weight_scale. Scales and offsets are (E, N) or a list of (N,).
    """

    scale: list | None = None
    rows: list | None = None
    weight_scale: list | None = None
    weight_offset: list | None = None

    def check(self, x: list, weight: list, groups: int) -> None:
        """Raises RuntimeError if the dtypes or the numbers of vectors do not match."""
        both = x[0].dtype == weight[0].dtype == msadapter.int8
        if weight[0].dtype != msadapter.int8 or (both and not self.scale) or not (both or self.weight_scale):
            raise RuntimeError(
                "npu_grouped_matmul: int8 x and weight need scale, and an int8 weight alone needs antiquant_scale, but got "
                f"{x[0].dtype} and {weight[0].dtype}"
            )
        for name in ("scale", "weight_scale", "weight_offset"):
            given = getattr(self, name)
            if given and len(_vectors(given)) != groups:
                raise RuntimeError(
                    f"npu_grouped_matmul: there must be one scale for each of the {groups} groups, but got "
                    f"{len(_vectors(given))}"
                )
        if self.rows and (len(self.rows) != 1 or self.rows[0].shape != (len(x[0]),)):
            raise RuntimeError(
                f"npu_grouped_matmul: per_token_scale must hold one number for each of the {len(x[0])} rows"
            )

    def product(self, group: int, rows: tuple[int, int], x, weight, bias):
        """The product of one group in float32. Integers are summed exactly."""
        if self.scale:
            out = t.matmul(x.to(msadapter.float64), weight.to(msadapter.float64))
            out = out if bias is None else out + bias
            out = out.to(msadapter.float32) * _vectors(self.scale)[group].to(msadapter.float32)
            return out if not self.rows else out * self.rows[0][slice(*rows)].unsqueeze(1)
        scale, offset = (_vector(one, group) for one in (self.weight_scale, self.weight_offset))
        wide = dequantized_weight(weight, scale, offset, msadapter.float32)
        return _product(x.to(msadapter.float32), wide, bias)


def _of_inner(x: list, weight: list, group_list, kind: int):
    if len(x) != 1 or len(weight) != 1 or group_list is None:
        raise RuntimeError("npu_grouped_matmul: group_type 2 takes one x, one weight and group_list")
    a, b = x[0], weight[0]
    return [t.stack([t.matmul(a[:, i:j], b[i:j]) for i, j in bounds(group_list, kind, len(b))])]


def _check_supported(unsupported, output_dtype, act_type, split_item) -> None:
    """Raises an error for arguments of npu_grouped_matmul that are not supported or not valid."""
    if unsupported or output_dtype == msadapter.int8:
        raise NotImplementedError(
            "torch_npu.npu_grouped_matmul: int8 results and activations are not supported (docs/coverage.md)"
        )
    if act_type not in _ACTIVATIONS:
        raise NotImplementedError(
            f"torch_npu.npu_grouped_matmul: act_type {act_type} is not supported (docs/coverage.md)"
        )
    if split_item not in (0, 1, 2, 3):
        raise RuntimeError(f"npu_grouped_matmul: split_item must be from 0 to 3, but got {split_item}")


def _checked_quantized(quantized, x, weight, kind: int, output_dtype):
    """Checks the operands of a quantized product and returns the dtype of the result."""
    if kind != ROWS:
        raise RuntimeError(f"npu_grouped_matmul: quantized operands need group_type 0, but got {kind}")
    quantized.check(x, weight, len(_weights(weight)))
    if quantized.scale and output_dtype is None:
        raise RuntimeError("npu_grouped_matmul: int8 x needs output_dtype: float16, bfloat16 or float32")
    return output_dtype or x[0].dtype


def _by_kind(x, weight, bias, kind: int, group_list, list_type: int, single: bool, quantized) -> list:
    """Computes the products of npu_grouped_matmul for its group_type `kind` with table operators."""
    if kind == INNER:
        if bias:
            raise RuntimeError("npu_grouped_matmul: group_type 2 takes no bias")
        return _of_inner(x, weight, group_list, list_type)
    if kind == ROWS:
        return _of_rows(x, weight, bias, group_list, list_type, single, quantized)
    if kind != NO_GROUPS:
        raise RuntimeError(f"npu_grouped_matmul: group_type must be -1, 0 or 2, but got {kind}")
    if len(x) != len(weight) or len(bias or x) != len(x):
        raise RuntimeError(
            f"npu_grouped_matmul: without groups, x, weight and bias must have the same length, but have {len(x)}, "
            f"{len(weight)} and {len(bias or x)} tensors"
        )
    return [_product(*one) for one in zip(x, weight, bias or [None] * len(x), strict=True)]


def npu_grouped_matmul(
    x,
    weight,
    *,
    bias=None,
    scale=None,
    offset=None,
    antiquant_scale=None,
    antiquant_offset=None,
    per_token_scale=None,
    group_list=None,
    activation_input=None,
    activation_quant_scale=None,
    activation_quant_offset=None,
    split_item=0,
    group_type=None,
    group_list_type=0,
    act_type=0,
    output_dtype=None,
    tuning_config=None,
):
    """Computes one matrix product per group.

    Args:
        x, weight: lists of matrices; a single weight may be (E, K, N).
        group_type: None or -1 computes x[i] @ weight[i]. 0 divides the rows of a single x into groups. 2 divides the columns
            of a single x and the rows of a single weight; the result is (E, M, N).
        group_list: ends of the groups (group_list_type 0) or their sizes (1); int64 tensor or list.
        split_item: 0 and 1 return one tensor per group, 2 and 3 a single tensor.

        scale, per_token_scale: scales if x and weight are int8. antiquant_scale, antiquant_offset: scales if only weight
            is int8. Both need group_type 0. output_dtype: dtype of the result, required with scale.
        act_type: the activation: 0 none, 1 relu, 2 gelu (tanh), 4 fast gelu, 5 silu.

    Returns:
        A list of tensors. Rows that are in no group are zero.

    Raises:
        RuntimeError: the operands do not match. NotImplementedError: int8 results or activations.
    """
    unsupported = offset or activation_input or activation_quant_scale or activation_quant_offset
    _check_supported(unsupported, output_dtype, act_type, split_item)
    x, weight = list(x), list(weight)
    kind = NO_GROUPS if group_type is None else group_type
    quantized = None
    if scale or antiquant_scale or per_token_scale or antiquant_offset:
        quantized = Quantized(scale, per_token_scale, antiquant_scale, antiquant_offset)
        output_dtype = _checked_quantized(quantized, x, weight, kind, output_dtype)
    learned = msadapter.is_grad_enabled() and any(one.requires_grad for one in (*x, *weight, *(bias or ())))
    if on_ascend(x[0]) and not learned:
        if group_list is not None and not hasattr(group_list, "tolist"):
            group_list = msadapter.tensor(group_list, dtype=msadapter.int64, device=x[0].device)
        made = ascend(
            "GroupedMatmulV4",
            x=x,
            weight=weight,
            bias=bias,
            scale=scale,
            offset=None,
            antiquant_scale=antiquant_scale,
            antiquant_offset=antiquant_offset,
            pre_token_scale=per_token_scale,
            group_list=group_list,
            activation_input=None,
            activation_quant_scale=None,
            activation_quant_offset=None,
            split_item=3 if split_item in (2, 3) else 0,  # MindSpore takes these two of the four
            group_type=kind,
            group_list_type=group_list_type,
            act_type=act_type,
            output_dtype=output_dtype,
        )
        return [made] if isinstance(made, msadapter.Tensor) else list(made)
    single = split_item in (2, 3)
    found = _by_kind(x, weight, bias, kind, group_list, group_list_type, single, quantized)
    found = [_ACTIVATIONS[act_type](one) for one in found]
    return found if output_dtype is None else [one.to(output_dtype) for one in found]


def _accumulate(into, product) -> None:
    with msadapter.no_grad():
        into.add_(product.reshape(into.shape).to(into.dtype))


def matmul_add(x, dy, grad) -> None:
    """Adds x^T @ dy to grad in place, computed in grad's dtype (float32).

    x is (rows, M), dy is (rows, N), grad is (M, N) or has M * N elements. Without rows, nothing happens.
    """
    if not x.numel() or not dy.numel():
        return
    with msadapter.no_grad():  # a composite on an NPU too, because MindSpore has its operator in graphs alone
        _accumulate(grad, t.matmul(x.to(grad.dtype).t(), dy.to(grad.dtype)))


def npu_matmul_add_fp32(total_input, grad_output, grad) -> None:
    """Adds grad_output^T @ total_input to grad in place, in float32. If a size is 0, nothing happens."""
    matmul_add(grad_output, total_input, grad)


def _add_of_groups(grad, x, dy, group_list, kind: int) -> None:
    """Adds x_e^T @ dy_e to grad[e] in place for each group e, computed in grad's dtype."""
    with msadapter.no_grad():
        wide, dy = x.to(grad.dtype), dy.to(grad.dtype)
        parts = [t.matmul(wide[a:b].t(), dy[a:b]) for a, b in bounds(group_list, kind, len(x))]
        _accumulate(grad, t.stack(parts))


def npu_groupmatmul_add_fp32(x, dy, group_list, grad) -> None:
    """Adds x_e^T @ dy_e to grad[e] in place for each group e.

    x is (rows, M), dy is (rows, N), group_list has the ends of the groups, grad has E * M * N elements.
    """
    _add_of_groups(grad, x, dy, group_list, ENDS)


def npu_grouped_matmul_add_(
    self, x, weight, group_list, *, transpose_x=True, transpose_weight=False, group_type=2, group_list_type=0
):
    """Adds x_e^T @ weight_e to self[e] in place for each group e of rows, and returns self.

    x is (rows, M), weight is (rows, N), self has E * M * N elements, such as (E, M, N), and usually is float32. group_list has the
    ends of the groups (group_list_type 0) or their sizes (1).

    Raises:
        RuntimeError: a group_list that does not divide the rows, or another value of transpose_x, transpose_weight or group_type
            than the default, which the device's operator does not accept either.
    """
    if not transpose_x or transpose_weight or group_type != INNER:
        raise RuntimeError(
            "npu_grouped_matmul_add_: transpose_x must be True, transpose_weight False and group_type 2, but got "
            f"{transpose_x}, {transpose_weight} and {group_type}"
        )
    _add_of_groups(self, x, weight, group_list, group_list_type or ENDS)
    return self


def gmm(x, weight, bias, group_list, group_type, group_list_type) -> list:
    """The forward of MindSpeed's npu_gmm. x, weight and the result are lists of one tensor.

    A group_list that is a Python list has the groups' ends; for it MindSpeed's function ignores group_list_type.
    """
    if isinstance(group_list, list):
        group_list_type = ENDS
    return npu_grouped_matmul(
        x,
        weight,
        bias=bias or None,
        group_list=group_list,
        split_item=3,
        group_type=group_type or 0,
        group_list_type=group_list_type or 0,
    )


def gmm_backward(grad, x, weight, group_list, group_list_type) -> tuple[list, list, list]:
    """The gradients of gmm with group_type 0: ([x], [weight], [])."""
    dx = gmm_backward_fusion(grad, weight, group_list, group_list_type)[0]
    dw = gmm([one.t() for one in x], grad, None, group_list, INNER, group_list_type)
    return dx, [d.reshape(w.shape) for d, w in zip(dw, weight, strict=True)], []


def gmm_backward_fusion(grad, weight, group_list, group_list_type) -> tuple[list, list, list]:
    """The gradient of x only. The caller adds the weight's gradient to its main_grad."""
    turned = [w.transpose(-2, -1) for w in weight]
    return gmm(grad, turned, None, group_list, ROWS, group_list_type), [], []
