"""Numbers and gradients of operators whose names no other case has, and the sizes and options at which they change."""

from .op_branches import SETUP as _SETUP

SETUP = _SETUP

_SCATTERED = [
    f"g(lambda a, b: torch.{call}, x(4, 5), x(*{shape}, seed=1))"
    for call, shape in (
        ("slice_scatter(a, b, 0, 1, 3)", (2, 5)),
        ("slice_scatter(a, b, 1, -4, None, 2)", (4, 2)),
        ("slice_scatter(a, b, dim=1, end=2)", (4, 2)),
        ("slice_scatter(a, b)", (4, 5)),
        ("select_scatter(a, b, 0, -1)", (5,)),
        ("select_scatter(a, b, 1, 2)", (4,)),
        ("diagonal_scatter(a, b)", (4,)),
        ("diagonal_scatter(a, b, 1)", (4,)),
        ("diagonal_scatter(a, b, -2, 1, 0)", (3,)),
        ("slice_scatter(a, b, 0, 1, 3)", (3, 5)),
        ("select_scatter(a, b, 0, 0)", (4,)),
        ("diagonal_scatter(a, b, 1)", (3,)),
    )
] + [
    "torch.slice_scatter(x(4, 5), x(2, 5, dtype=torch.float32), 0, 1, 3)",
    "gg(lambda a, b: torch.slice_scatter(a * a, b * b, 1, 0, 4, 3), x(2, 5), x(2, 2, seed=1))",
    "gg(lambda a, b: torch.select_scatter(a * a, b * b, 1, 3), x(2, 5), x(2, seed=1))",
    "gg(lambda a, b: torch.diagonal_scatter(a * a, b * b, -1), x(3, 3), x(2, seed=1))",
]

_COPIES = [
    "g(lambda a: torch.select_copy(a, 1, -2), x(3, 4)), torch.select_copy(x(3, 4), 0, 1)._is_view()",
    "g(lambda a: torch.slice_copy(a, 1, 1, None, 2), x(3, 5)), torch.slice_copy(x(3, 4))._is_view()",
    "[p + 0 for p in torch.split_copy(x(5, 2), 2)], torch.split_copy(x(5, 2), 2)[0]._is_view()",
    "[p + 0 for p in torch.split_copy(x(5, 2), 2, 1)]",
    "torch.view_as_real_copy(c(2, 3)), torch.view_as_complex_copy(x(3, 2))",
    "[torch.triu_indices(*a) for a in ((3, 4), (4, 3), (3, 3, 1), (3, 3, -2), (0, 3), (2, 5, 4))]",
    "[torch.tril_indices(*a) for a in ((3, 4), (4, 3), (3, 3, 1), (3, 3, -2), (0, 3), (2, 5, -1))]",
    "torch.triu_indices(3, 3, dtype=torch.int32).dtype, torch.tril_indices(3, 3, 1, dtype=torch.int32)",
    "torch.triu_indices(-1, 3)",
    "g(torch.msort, x(4, 3)), torch.msort(torch.tensor([[3, 1], [2, 2]]))",
    "[torch.is_nonzero(torch.tensor(v)) for v in (0, 1.5, True, 0.0)], torch.tensor([[2]]).is_nonzero()",
    "torch.is_nonzero(x(2))",
    "torch.is_nonzero(x(0))",
    "[torch.is_neg(v) for v in (x(2), c(2))]",
    "x(2).get_device(), torch.get_device(x(2))",
]

_POINTWISE = [
    f"g(torch.{name}, {values}), torch.{name}(x(3, dtype=torch.float32)), torch.{name}(torch.tensor([0, 1]))"
    for name, values in (
        ("asin", "x(5) / 3"),
        ("acos", "x(5) / 3"),
        ("atanh", "x(5) / 3"),
        ("acosh", "x(5).abs() + 1.2"),
        ("asinh", "x(5) * 4"),
        ("sinh", "x(5) * 2"),
        ("cosh", "x(5) * 2"),
        ("tan", "x(5)"),
        ("deg2rad", "x(5) * 50"),
        ("rad2deg", "x(5)"),
    )
] + [
    f"gg(torch.{name}, x(5) / 3)" for name in ("asin", "acos", "atan", "atanh", "asinh", "sinh", "tan", "deg2rad")
] + [
    "[getattr(torch, n)(torch.tensor([-2.0, -1.0, 1.0, 2.0, float('inf'), float('nan')])) for n in "
    "('asin', 'acos', 'atanh', 'acosh', 'sinh', 'tan')]",
    "[getattr(torch, n)(c(3) / 3) for n in ('asin', 'atanh', 'sinh', 'tan')]",
    "[(torch.conj_physical(v) is v, v.conj_physical() is v, v.conj_physical_() is v) for v in (x(3), c(3))]",
    "g(torch.conj_physical, x(3)), torch.conj_physical(c(3)), torch.conj_physical(c(3)).is_conj()",
    "torch.deg2rad(torch.tensor([180, 90])).dtype, torch.rad2deg(torch.tensor([1, 2]))",
] + [
    f"a = x(5).clone(); r = F.{call}; a, r is a"
    for call in ("hardtanh_(a, -0.5, 0.7)", "selu_(a)", "celu_(a, 2.0)", "hardtanh_(a)")
]  # fmt: skip

_POOLS = [
    f"g(lambda a: [F.{name}(a, 2, return_indices=True), F.{name}_with_indices(a, 2)][1][0], x(1, 2, {shape})), "
    f"F.{name}_with_indices(x(1, 2, {shape}), 2)[1]"
    for name, shape in (
        ("max_pool1d", "7"),
        ("max_pool3d", "4, 5, 4"),
        ("adaptive_max_pool1d", "7"),
        ("adaptive_max_pool2d", "5, 4"),
        ("adaptive_max_pool3d", "4, 5, 3"),
    )
] + [
    "F.max_pool1d_with_indices(x(2, 7), 3, 2, 1, 1, True)",
    "F.max_pool3d_with_indices(x(2, 5, 5, 5), 3, 2, 1, 1, True)[1]",
    "torch.max_pool1d_with_indices(x(2, 7), 2)",
    "F.fractional_max_pool2d_with_indices(x(1, 1, 5, 5), 2, 3, _random_samples=x(1, 1, 2).sigmoid())",
    "F.fractional_max_pool2d_with_indices(x(1, 1, 5, 5), 2, None, (0.5, 0.7), _random_samples=x(1, 1, 2).sigmoid())",
    "F.fractional_max_pool3d_with_indices(x(1, 1, 5, 5, 5), 2, 3, _random_samples=x(1, 1, 3).sigmoid())",
    "g(lambda a: F.lp_pool3d(a, 2.0, 2), x(1, 1, 4, 5, 4)), F.lp_pool3d(x(1, 4, 4, 4), 3.0, 2, 1, True)",
    "g(lambda a: F.affine_grid(a, [1, 2, 3, 4]), x(1, 2, 3)), torch.affine_grid_generator(x(1, 2, 3), [1, 2, 3, 4], True)",
]

_CELLS = [
    f"g(lambda a, h, i, k, b, d: torch.{cell}(a, h, i, k, b, d), x(2, 3), x(2, 4, seed=1), x({n}, 3, seed=2), "
    f"x({n}, 4, seed=3), x({n}, seed=4), x({n}, seed=5))"
    for cell, n in (("gru_cell", 12), ("rnn_tanh_cell", 4), ("rnn_relu_cell", 4))
] + [
    "g(lambda a, h, k, i, w: sum(torch.lstm_cell(a, (h, k), i, w, x(16, seed=4), x(16, seed=5))), x(2, 3), x(2, 4, seed=1), "
    "x(2, 4, seed=6), x(16, 3, seed=2), x(16, 4, seed=3))",
    "torch.lstm_cell(x(2, 3), (x(2, 4), x(2, 4, seed=1)), x(16, 3, seed=2), x(16, 4, seed=3))",
    "torch.gru_cell(x(2, 3), x(2, 4), x(12, 3, seed=2), x(12, 4, seed=3))",
    "torch.rnn_tanh_cell(x(2, 3), x(2, 4), x(4, 3, seed=2), x(4, 4, seed=3))",
]

_RESIZED = [
    f"g(lambda a: torch.ops.aten.upsample_{mode}(a, {size}, {corners}{scales}), x(1, 2, {shape}))"
    for mode, size, shape, corners_too in (
        ("nearest1d", "[5]", "3", False),
        ("nearest2d", "[5, 2]", "3, 4", False),
        ("nearest3d", "[2, 3, 5]", "3, 2, 4", False),
        ("linear1d", "[5]", "3", True),
        ("bilinear2d", "[5, 2]", "3, 4", True),
        ("bicubic2d", "[5, 2]", "3, 4", True),
        ("trilinear3d", "[2, 3, 5]", "3, 2, 4", True),
    )
    for corners in (("False, ", "True, ") if corners_too else ("",))
    for scales in ("", ", ".join(["1.75"] * (size.count(",") + 1)))
] + [
    f"F.interpolate(x(1, 2, 4, 4), scale_factor={scale}, mode='{mode}', antialias=True, recompute_scale_factor={again}, "
    f"align_corners={corners})"
    for scale in ("1.1", "(1.0, 1.2)", "(0.9, 1.1)")
    for mode in ("bilinear", "bicubic")
    for again, corners in (("False", "False"), ("True", "False"))
]

_SIZES = [
    "[torch.empty_like(v).stride() for v in (x(4, 6).t()[::2], x(2, 3, 4).permute(2, 0, 1)[:, :, ::2], x(3, 4)[:, ::3], "
    "x(4, 3).expand(2, 4, 3), x(2, 3, 4).transpose(0, 2)[1:, ::2])]",
    "[torch.linalg.matrix_power(x(3, 3) + 3 * torch.eye(3), n) for n in range(-3, 6)]",
    *[f"torch.linalg.matrix_power(x(2, 3), {n})" for n in (-1, 0, 1, 2, 3, 4)],
    "torch.linalg.matrix_power(x(3), 1)",
    "gg(lambda a: torch.linalg.matrix_power(a, 5), x(2, 2)), gg(lambda a: torch.linalg.matrix_power(a, -2), x(2, 2))",
    "torch.empty_strided((), ()).shape, torch.empty_strided((), ()).stride(), x(1).new_empty_strided((), ()).shape",
    "torch.empty_strided((0, 2), (1, 1)).shape, torch.empty_strided((2, 0), (5, 7)).stride()",
    "torch.empty_strided((2, 3), (-1, 1))",
    "!torch.empty_strided((2,), (1, 1))",
    "torch.empty_strided((2, -3), (1, 1))",
    "torch.empty_permuted((2, 3, 4), (2, 0, 1)).stride(), torch.empty_permuted((), ()).shape",
    "o = torch.tensor([8, 12], dtype=torch.int32); r = F.grouped_mm(x(2, 3, 16, dtype=bf), x(16, 16, dtype=bf), offs=o); "
    "r[:, :12] + 0, r.shape",
    "o = torch.tensor([1, 2], dtype=torch.int32); r = F.grouped_mm(x(4, 16, dtype=bf), x(2, 16, 8, dtype=bf), offs=o); "
    "r[:2] + 0, r.shape",
] + [
    f"gg(lambda a: torch.linalg.vector_norm(a, {p}, {dim}, {keep}), x(3, 4))"
    for p in (0.5, 1, 1.5, 2, 2.5, 3, "float('inf')")
    for dim, keep in (("None", False), (1, True))
] + [f"g(lambda a: torch.linalg.vector_norm(torch.view_as_complex(a), {p}), x(3, 2))" for p in (1, 1.5, 2, 3)]  # fmt: skip

CASES = [*_SCATTERED, *_COPIES, *_POINTWISE, *_POOLS, *_CELLS, *_RESIZED, *_SIZES]
