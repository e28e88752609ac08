"""Products of float8 matrices with scales.

A scale belongs to a whole matrix, or to a row of the first matrix and to a column of the second one. As in PyTorch on a CPU, both
matrices have scales of the same kind, and the product is computed in float32.
"""

from __future__ import annotations

import enum

from .._errors import unsupported
from .._values.dtype import ALL
from ._declare import composite, op, t
from .nn_grouped import _grouped_mm

_FLOAT = ALL["float32"]


class ScalingType(enum.IntEnum):
    """The part of a matrix to which one scale belongs."""

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """The layout of scales in memory."""

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _no_derivative(name: str, arguments: str) -> dict:
    """Return the gradients of arguments of an operator that PyTorch cannot differentiate, although its result requires grad."""

    def grad(g):
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return dict.fromkeys(arguments.split(), grad)


def _float8(*matrices) -> bool:
    return all(m.dtype.name.startswith("float8") for m in matrices)


def _invalid(a, b, scale_a, scale_b) -> ValueError:
    def described(name, scale):
        if scale is None:
            return f"{name}=None"
        kind, size, stride = scale.dtype.scalar_name, list(scale.shape), list(scale.stride())
        return f"{name}.dtype()={kind}, {name}.size()={size}, {name}.stride()={stride}"

    return ValueError(
        "Invalid scaling configuration.\n"
        "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
        "- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be "
        f"({a.shape[0]}, 1) and scale_b should be (1, {b.shape[1]}), and both should be contiguous.\n"
        f"Got mat_a.dtype()={a.dtype.scalar_name}, {described('scale_a', scale_a)}, "
        f"mat_b.dtype()={b.dtype.scalar_name}, {described('scale_b', scale_b)}"
    )


def _fits(matrix, scale, whole: bool) -> bool:
    """Return whether it is a scale of the whole matrix, or has a scale for each row of it."""
    if not _float8(matrix) or scale.dtype != _FLOAT:
        return False
    if whole:
        return scale.numel() == 1
    return tuple(scale.shape) == (matrix.shape[0], 1) and scale.is_contiguous()


def _check_matrices(a, b) -> None:
    for name, matrix in (("mat1", a), ("mat2", b)):
        if matrix.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"mat_a and mat_b {_not_multiplied(a, b)}")


def _not_multiplied(a, b) -> str:
    return f"shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} and {b.shape[0]}x{b.shape[1]})"


def _product(a, b, scale_a, scale_b, bias, scale_result, out_dtype):
    out = (a.to(_FLOAT) * scale_a) @ (b.to(_FLOAT) * scale_b)
    if bias is not None:
        out.add_(bias)
    if scale_result is not None:
        out = out * scale_result.reciprocal()
    return out.to(out_dtype)


@op(
    "_scaled_mm(Tensor self, Tensor mat2, Tensor scale_a, Tensor scale_b, Tensor? bias=None, Tensor? scale_result=None, "
    "ScalarType? out_dtype=None, bool use_fast_accum=False) -> Tensor",
    forms="fo",
    out_dtype="decides",
    grad=_no_derivative("_scaled_mm", "self mat2 scale_a scale_b bias scale_result"),
)
def _scaled_mm(self, mat2, scale_a, scale_b, bias, scale_result, out_dtype, use_fast_accum):
    """Return (self * scale_a) @ (mat2 * scale_b) + bias, in the dtype of ``self`` or in ``out_dtype``.

    Args:
        scale_a, scale_b: float32. Both have one element, or their shapes are (rows of self, 1) and (1, columns of mat2).
        scale_result: float32, one element. An ``out_dtype`` of float8 stores the result divided by it.
        use_fast_accum: has no effect, as in PyTorch on a CPU.
    """
    if not any(
        _fits(self, scale_a, whole) and _fits(mat2.t(), scale_b.t(), whole) for whole in (True, False)
    ):
        raise _invalid(self, mat2, scale_a, scale_b)
    _check_matrices(self, mat2)
    if scale_result is not None and (scale_result.numel() != 1 or scale_result.dtype != _FLOAT):
        raise RuntimeError("scale_result must be a float scalar")
    if bias is not None and bias.numel() != mat2.shape[1]:
        raise RuntimeError(f"Bias must be size {mat2.shape[1]} but got {bias.numel()}")
    stored = out_dtype is not None and out_dtype.name in ("float8_e4m3fn", "float8_e5m2")
    if scale_a.numel() == 1 and scale_b.numel() == 1:
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    return _product(
        self, mat2, scale_a, scale_b, bias, scale_result if stored else None, out_dtype or self.dtype
    )


def _check_contraction(a, b, dims) -> None:
    """Raise ValueError for other dims to sum over than those of a product, whose sizes must agree too."""
    if not dims:
        if a.shape[1] != b.shape[0]:
            raise ValueError(f"mat_a and mat_b {_not_multiplied(a, b)}")
        return
    if len(dims) != 2:
        raise ValueError("contraction_dim must have exactly 2 elements")
    if a.size(dims[0]) != b.size(dims[1]):
        raise ValueError(
            f"mat_a and mat_b {_not_multiplied(a, b)} with contraction dims mat_a: {dims[0]}, mat_b: {dims[1]}"
        )


def _check_recipes(a, b, scales, recipes) -> bool:
    """Return whether the scales are those of whole matrices, and not of rows and columns.

    Raises:
        ValueError: there is not one scale for each matrix, or the recipes or the dtypes are others.
    """
    whole = [ScalingType.TensorWise] == recipes[0] == recipes[1]
    known = whole or [ScalingType.RowWise] == recipes[0] == recipes[1]
    single = all(len(s) == 1 and s[0].dtype == _FLOAT for s in scales)
    if not known or not single or not _float8(a, b):
        raise _invalid(a, b, *(s[0] if s else None for s in scales))
    return whole


def _check_whole(scale_a, scale_b) -> None:
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        if scale.numel() != 1:
            raise ValueError(f"{name} must have 1 Float element")


def _check_rows(a, b, scale_a, scale_b) -> None:
    if scale_a.size(0) != a.shape[0] or scale_a.size(1) != 1:
        raise ValueError(f"scale_a must have shape [{a.shape[0]}, 1], got [{list(scale_a.shape)}]")
    for name, scale, size in (("scale_a", scale_a, a.shape[0]), ("scale_b", scale_b, b.shape[1])):
        if scale.numel() != size:
            raise ValueError(f"{name} must have {size} Float elements, got {scale.numel()}")
    for name, scale in (("scale_a", scale_a), ("scale_b", scale_b)):
        if scale.stride(1) != 1:
            raise ValueError(f"expected {name}.stride(1) to be 1, but got {scale.stride(1)}")


@op(
    "_scaled_mm_v2(Tensor self, Tensor mat2, Tensor[] scale_a, int[] recipe_a, int[] swizzle_a, Tensor[] scale_b, "
    "int[] recipe_b, int[] swizzle_b, Tensor? bias, ScalarType? out_dtype, int[] contraction_dim=[], "
    "bool use_fast_accum=False) -> Tensor",
    forms="fo",
    out_dtype="decides",
    grad=_no_derivative("_scaled_mm_v2", "self mat2 scale_a scale_b bias"),
)
def _scaled_mm_v2(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, bias, out_dtype,
        contraction_dim, use_fast_accum):  # fmt: skip
    """Compute `torch.nn.functional.scaled_mm`, whose scales and recipes are lists here."""
    for name, matrix in (("mat_a", self), ("mat_b", mat2)):
        if matrix.ndim != 2:
            raise ValueError(f"{name} must be a matrix")
    _check_contraction(self, mat2, contraction_dim)
    if bias is not None and bias.numel() != mat2.shape[1]:
        raise ValueError(f"Bias must be size {mat2.shape[1]} but got {bias.numel()}")
    out_dtype = out_dtype or self.dtype
    if 0 in (*self.shape, mat2.shape[1]):
        return t.zeros(self.shape[0], mat2.shape[1], dtype=out_dtype, device=self.device)
    if bias is not None and bias.dtype.name not in ("float32", "bfloat16", "float16"):
        raise ValueError(f"Bias must be Float32 or BFloat16 or Half, but got {bias.dtype.scalar_name}")
    if swizzle_a and swizzle_b and (swizzle_a[0] or swizzle_b[0]):
        raise ValueError("CPU does not support swizzle.")
    whole = _check_recipes(self, mat2, (scale_a, scale_b), (list(recipe_a), list(recipe_b)))
    _check_matrices(self, mat2)
    (scale_a,), (scale_b,) = scale_a, scale_b
    if whole:
        _check_whole(scale_a, scale_b)
        scale_a, scale_b = scale_a.reshape(()), scale_b.reshape(())
    else:
        _check_rows(self, mat2, scale_a, scale_b)
    return _product(self, mat2, scale_a, scale_b, bias, None, out_dtype)


def _listed(value) -> list:
    return [] if value is None else value if isinstance(value, list) else [value]


@composite(
    "nn.functional.scaled_mm(Tensor mat_a, Tensor mat_b, any scale_a, any scale_recipe_a, "
    "any scale_b, any scale_recipe_b, any swizzle_a=None, any swizzle_b=None, Tensor? bias=None, "
    "any output_dtype=bfloat16, any contraction_dim=(), bool use_fast_accum=False) -> Tensor",
    forms="f",
)
def scaled_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a, swizzle_b, bias,
        output_dtype, contraction_dim, use_fast_accum):  # fmt: skip
    """Return (mat_a * scale_a) @ (mat_b * scale_b) + bias for matrices of float8, computed in float32.

    Args:
        scale_recipe_a, scale_recipe_b: both `ScalingType.TensorWise`, with scales of one element, or both
        `ScalingType.RowWise`, with scales of the shapes (rows of mat_a, 1) and (1, columns of mat_b).
        swizzle_a, swizzle_b: None or `SwizzleType.NO_SWIZZLE`.
    """
    numbers = [
        [one.value for one in _listed(v)] for v in (scale_recipe_a, swizzle_a, scale_recipe_b, swizzle_b)
    ]
    recipe_a, swizzle_a, recipe_b, swizzle_b = numbers
    return _scaled_mm_v2(mat_a, mat_b, _listed(scale_a), recipe_a, swizzle_a, _listed(scale_b), recipe_b, swizzle_b,
        bias, output_dtype, contraction_dim, use_fast_accum)  # fmt: skip


def _one(value):
    return value[0] if isinstance(value, (list, tuple)) and len(value) == 1 else value


def _scaled(matrix, scale, recipe, axis: int):
    """Return the matrix in float32, multiplied by one scale or by a scale for each row (axis -1) or column
    (-2).
    """
    scale, recipe = _one(scale), _one(recipe)
    wide = matrix.to(_FLOAT)
    if recipe == ScalingType.TensorWise:
        return wide * scale.reshape(())
    if recipe == ScalingType.RowWise:
        return wide * (
            scale.reshape(*wide.shape[:-1], 1) if axis == -1 else scale.reshape(*wide.shape[:-2], 1, -1)
        )
    raise _refused("scales of blocks are")


def _refused(what: str) -> NotImplementedError:
    return unsupported("torch.nn.functional.scaled_grouped_mm", f"{what} not supported")


@composite(
    "nn.functional.scaled_grouped_mm(Tensor mat_a, Tensor mat_b, any scale_a, any scale_recipe_a, "
    "any scale_b, any scale_recipe_b, any swizzle_a=None, any swizzle_b=None, Tensor? bias=None, "
    "Tensor? offs=None, any output_dtype=bfloat16, any contraction_dim=(), "
    "bool use_fast_accum=False) -> Tensor",
    forms="f",
)
def scaled_grouped_mm(mat_a, mat_b, scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a, swizzle_b,
        bias, offs, output_dtype, contraction_dim, use_fast_accum):  # fmt: skip
    """Like `grouped_mm`, for matrices with scales as in `scaled_mm`. PyTorch has it on accelerators only."""
    if any(_one(swizzle) not in (None, SwizzleType.NO_SWIZZLE) for swizzle in (swizzle_a, swizzle_b)):
        raise _refused("swizzled scales are")
    if tuple(contraction_dim):
        raise _refused("contraction_dim is")
    a = _scaled(mat_a, scale_a, scale_recipe_a, -1)
    b = _scaled(mat_b, scale_b, scale_recipe_b, -2)
    return _grouped_mm(a, b, offs, bias, None).to(output_dtype or ALL["bfloat16"])
