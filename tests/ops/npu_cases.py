"""Calls for which an NPU has no operator: the bodies that are used there are compared with PyTorch's results.

A call is (name of the declaration, PyTorch's call, the body's arguments). PyTorch's call takes torch and these arguments.
"""

from __future__ import annotations

import math

NUMBERS = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.25, 1e-3, -7.0, math.inf, -math.inf, math.nan]
FLOATS = ("float32", "float64", "float16", "bfloat16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")


def _numbers(torch, dtype, *shape, turn=0, finite=False):
    """Numbers of a dtype; `turn` shifts the list, so that operands meet in other pairs."""
    kind = getattr(torch, dtype)
    source = [v for v in NUMBERS if not finite or math.isfinite(v)]
    source = source if kind.is_floating_point else [0, 1, 5, 12, 9, 4, 6, 100, 7]
    if dtype in ("int64", "int32", "int16", "int8"):
        source = [v * (-1) ** k for k, v in enumerate(source)]
    if dtype == "bool":
        source = [True, False, False]
    count = math.prod(shape)
    return torch.tensor([source[(k + turn) % len(source)] for k in range(count)], dtype=kind).reshape(shape)


def _pairs(torch, dtype, finite=False):
    """Every number with every number."""
    row = _numbers(torch, dtype, len(NUMBERS), finite=finite)
    return [part.reshape(-1) for part in torch.broadcast_tensors(row, row.reshape(-1, 1))]


def _distinct(torch, dtype, *shape, seed=0):
    values = ((torch.arange(math.prod(shape), dtype=torch.float64) * 0.7 + seed + 0.4).sin() * 9).reshape(
        shape
    )
    return values.abs().to(getattr(torch, dtype)) if dtype == "uint8" else values.to(getattr(torch, dtype))


def _unary():
    made = {}
    takes = {
        "isnan": (*FLOATS, *INTEGERS, "bool"), "isposinf": (*FLOATS, *INTEGERS, "bool"),
        "signbit": (*FLOATS, *INTEGERS, "bool"), "sgn": (*FLOATS, "int64", "int32", "int16"),
        "angle": FLOATS, "special.entr": ("float32", "float16", "bfloat16"),
        "_ndtr": ("float32", "float16", "bfloat16"),
    }  # fmt: skip
    for name, dtypes in takes.items():
        public = {"_ndtr": "special.ndtr"}.get(name, name)
        for dtype in dtypes:

            def call(torch, x, public=public):
                space, _, last = public.rpartition(".")
                return getattr(getattr(torch, space) if space else torch, last)(x)

            made[f"{name} {dtype}"] = (
                name,
                call,
                lambda torch, dtype=dtype: (_numbers(torch, dtype, 12),),
                {},
            )
    return made


def _binary():
    made = {}
    takes = {
        "copysign": FLOATS, "heaviside": (*FLOATS, *INTEGERS), "fmax": (*FLOATS, *INTEGERS), "fmin": (*FLOATS, *INTEGERS),
        "hypot": ("float32", "float16", "bfloat16"), "lcm": INTEGERS, "nextafter": ("float32", "float64"),
        "special.xlog1py": ("float32", "float64"),
    }  # fmt: skip
    for name, dtypes in takes.items():
        for dtype in dtypes:

            def call(torch, *args, name=name):
                return getattr(torch.special if "." in name else torch, name.split(".")[-1])(*args)

            made[f"{name} {dtype}"] = (name, call, lambda torch, dtype=dtype: _pairs(torch, dtype), {})

    def further(key, name, args):
        made[key] = (name, made[f"{name} float32"][1], args, {})

    for number in (-2.0, -0.0, 0.0, 3):
        further(
            f"copysign number {number}",
            "copysign",
            lambda torch, n=number: (_numbers(torch, "float32", 12), n),
        )
    for number in (0.0, 2.0, -0.5):
        further(
            f"xlog1py number {number}",
            "special.xlog1py",
            lambda torch, n=number: (_numbers(torch, "float32", 12), n),
        )
        further(
            f"xlog1py of {number}",
            "special.xlog1py",
            lambda torch, n=number: (n, _numbers(torch, "float32", 12)),
        )
    for name in ("heaviside", "fmax", "hypot", "nextafter"):
        further(
            f"{name} broadcast", name,
            lambda torch: (_numbers(torch, "float32", 3, 1), _numbers(torch, "float32", 4, turn=3)),
        )  # fmt: skip
    further(
        "nextafter strided",
        "nextafter",
        lambda torch: (_numbers(torch, "float32", 4, 3).t(), _numbers(torch, "float32", 3, 4, turn=5)),
    )
    further(
        "hypot large",
        "hypot",
        lambda torch: (torch.tensor([3e38, 1e-30, 3e30]), torch.tensor([1e38, 1e-30, 4e30])),
    )
    for dtype in INTEGERS:
        shifts = (
            [0, 1, 2, 3, 6, 7, 8, 15, 31, 40, 62, 63, 64, 100, -1]
            if dtype == "int64"
            else [0, 1, 2, 3, 6, 7, 7, 7]
        )

        def operands(torch, dtype=dtype, shifts=shifts):
            kind = getattr(torch, dtype)
            limits = torch.iinfo(kind)
            values = torch.tensor([limits.min, limits.max, 0, 5, 100], dtype=kind).reshape(-1, 1)
            return values.expand(5, len(shifts)), torch.tensor(shifts, dtype=kind).expand(5, len(shifts))

        made[f"bitwise_right_shift {dtype}"] = (
            "bitwise_right_shift", lambda torch, a, b: torch.bitwise_right_shift(a, b), operands, {},
        )  # fmt: skip
    for number in (0, 1, 5, 63, 64):
        made[f"bitwise_right_shift number {number}"] = (
            "bitwise_right_shift",
            lambda torch, a, b: torch.bitwise_right_shift(a, b),
            lambda torch, n=number: (torch.tensor([-(2**63), 2**63 - 1, -1, 0, 77]), n),
            {},
        )
    return made


def _with_options():
    made = {}
    for eps in (None, 0.0, 0.2):
        for dtype in ("float32", "float64"):

            def values(torch, dtype=dtype):
                return torch.tensor(
                    [-0.5, 0.0, 0.1, 0.2, 0.5, 0.8, 0.9, 1.0, 1.5, math.nan], dtype=getattr(torch, dtype)
                )

            made[f"logit {dtype} {eps}"] = (
                "logit", lambda torch, x, eps: torch.logit(x, eps), lambda torch, e=eps, v=values: (v(torch), e), {},
            )  # fmt: skip
        made[f"_logit_backward {eps}"] = (
            "_logit_backward",
            lambda torch, g, x, eps: torch.ops.aten.logit_backward(g, x, eps),
            lambda torch, e=eps, v=values: (_distinct(torch, "float32", 10), v(torch, "float32"), e),
            {},
        )
    for dtype in ("float32", "float16"):
        for form, alpha, scale, slope in (
            ("elu", 0.7, 1.0, 1.0), ("selu", 1.6732632423543772, 1.0507009873554805, 1.0), ("celu", 1.4, 1.0, 1 / 1.4)
        ):  # fmt: skip
            made[f"_scaled_elu {dtype} {form}"] = (
                "_scaled_elu",
                lambda torch, x, alpha, scale, slope, form=form: getattr(torch.nn.functional, form)(
                    x, **({} if form == "selu" else {"alpha": alpha})
                ),
                lambda torch, d=dtype, o=(alpha, scale, slope): (_numbers(torch, d, 12), *o), {},
            )  # fmt: skip
            for is_result in (False, True):
                made[f"_scaled_elu_backward {dtype} {form} {is_result}"] = (
                    "_scaled_elu_backward",
                    lambda torch, g, x, a, r, s, i: torch.ops.aten.elu_backward(g, a, s, i, r, x),
                    lambda torch, d=dtype, a=alpha, s=scale, i=slope, r=is_result: (
                        _distinct(torch, d, 5), torch.tensor([-0.6, -0.1, 0.0, 0.2, 3.0], dtype=getattr(torch, d)), a, r, s, i
                    ),
                    {},
                )  # fmt: skip
    return made


def _along():
    made = {}
    for dim in (0, 1, -1):
        for dtype in (*FLOATS, "int64", "int8", "bool"):
            made[f"cumprod {dtype} {dim}"] = (
                "cumprod", lambda torch, x, dim, dtype: torch.cumprod(x, dim, dtype=dtype),
                lambda torch, d=dtype, dim=dim: (_distinct(torch, d, 3, 5), dim), {"dtype": None},
            )  # fmt: skip
        for dtype in ("float32", "float16", "bfloat16"):
            made[f"logcumsumexp {dtype} {dim}"] = (
                "logcumsumexp", lambda torch, x, dim: torch.logcumsumexp(x, dim),
                lambda torch, d=dtype, dim=dim: (_distinct(torch, d, 3, 5), dim), {},
            )  # fmt: skip
        for keep in (False, True):
            for dtype in ("float32", "float16", "int64", "uint8"):
                for name in ("mode", "nanmedian"):
                    made[f"{name} {dtype} {dim} {keep}"] = (
                        "mode" if name == "mode" else "_nanmedian_dim",
                        lambda torch, x, dim, keep, name=name: _values_at(torch, x, dim, keep, getattr(torch, name)(x, dim, keep)),
                        lambda torch, d=dtype, dim=dim, keep=keep, n=name: (_repeated(torch, d, n != "mode"), dim, keep), {},
                    )  # fmt: skip
    made["cumprod to another dtype"] = (
        "cumprod",
        lambda torch, x, dim, dtype: torch.cumprod(x, dim, dtype=getattr(torch, dtype)),
        lambda torch: (_distinct(torch, "int64", 3, 5), 1),
        {"dtype": "bfloat16"},
    )
    rows = [[-math.inf, -math.inf, 1.0, 2.0], [1.0, math.inf, 0.0, -math.inf], [0.0, -100.0, 100.0, 99.0]]
    made["logcumsumexp infinities"] = (
        "logcumsumexp",
        lambda torch, x, dim: torch.logcumsumexp(x, dim),
        lambda torch: (torch.tensor(rows), 1),
        {},
    )
    for dtype in ("float32", "bfloat16", "int64"):
        made[f"_nanmedian_all {dtype}"] = (
            "_nanmedian_all", lambda torch, x: torch.nanmedian(x), lambda torch, d=dtype: (_repeated(torch, d),), {},
        )  # fmt: skip
    made["_nanmedian_all of NaN"] = (
        "_nanmedian_all", lambda torch, x: torch.nanmedian(x), lambda torch: (torch.tensor([math.nan, math.nan]),), {},
    )  # fmt: skip
    return made


def _repeated(torch, dtype, with_nan=True):
    """Rows with repeated numbers, and NaN among them."""
    rows = [[3, 1, 1, 2, 3, 3], [2, 2, 5, 5, 4, 1], [7, 6, 5, 4, 3, 2], [1, 1, 1, 1, 1, 2]]
    x = torch.tensor(rows, dtype=getattr(torch, dtype))
    if with_nan and x.is_floating_point():
        x[1, 2] = math.nan
        x[2, :5] = math.nan
    return x


def _values_at(torch, x, dim, keep, found):
    """The values of a result, and whether the indices lead to them: of equal numbers any index is right."""
    values, indices = found
    kept = indices if keep else indices.unsqueeze(dim)
    there = torch.gather(x, dim, kept)
    there = there if keep else there.squeeze(dim)
    return (
        values,
        str(indices.dtype),
        bool(((there == values) | ((there != there) & (values != values))).all()),
    )


def _by_index():
    made = {}
    for dtype in ("float32", "float16", "int64", "int32"):
        for invert in (False, True):
            made[f"_isin {dtype} {invert}"] = (
                "_isin", lambda torch, e, t, invert: torch.isin(e, t, invert=invert),
                lambda torch, d=dtype, i=invert: (_numbers(torch, d, 3, 4), _numbers(torch, d, 5, turn=2), i), {},
            )  # fmt: skip
        for dim in (0, 1, -2):
            made[f"index_copy {dtype} {dim}"] = (
                "index_copy", lambda torch, x, *rest: torch.index_copy(x, *rest),
                lambda torch, d=dtype, dim=dim: (
                    _distinct(torch, d, 3, 4), dim, torch.tensor([2, 0]),
                    _distinct(torch, d, *((3, 2) if dim == 1 else (2, 4)), seed=1),
                ), {},
            )  # fmt: skip
            for keep in (True, False):
                for how in ("sum", "mean"):
                    made[f"scatter_reduce {dtype} {dim} {how} {keep}"] = (
                        "scatter_reduce",
                        lambda torch, x, dim, index, src, how, include_self: torch.scatter_reduce(
                            x, dim, index, src, how, include_self=include_self
                        ),
                        lambda torch, d=dtype, dim=dim, how=how: (
                            _distinct(torch, d, 3, 4), dim, torch.tensor([[0, 2, 2], [1, 0, 2]]),
                            _distinct(torch, d, 2, 3, seed=1), how,
                        ), {"include_self": keep},
                    )  # fmt: skip
                made[f"index_reduce {dtype} {dim} {keep}"] = (
                    "index_reduce",
                    lambda torch, x, dim, index, src, how, include_self: torch.index_reduce(
                        x, dim, index, src, how, include_self=include_self
                    ),
                    lambda torch, d=dtype, dim=dim: (
                        _distinct(torch, d, 3, 4), dim, torch.tensor([2, 0, 2]),
                        _distinct(torch, d, *((3, 3) if dim == 1 else (3, 4)), seed=1), "mean",
                    ), {"include_self": keep},
                )  # fmt: skip
        for accumulate in (False, True):
            indices = [[4, -1], [0, 4]] if accumulate else [[4, -1], [0, -7]]
            made[f"put {dtype} {accumulate}"] = (
                "put", lambda torch, x, *rest: torch.put(x, *rest),
                lambda torch, d=dtype, a=accumulate, i=indices: (
                    _distinct(torch, d, 3, 4), torch.tensor(i), _distinct(torch, d, 2, 2, seed=1), a
                ), {},
            )  # fmt: skip
    return made


def _systems():
    made = {}
    for upper in (False, True):
        for left in (False, True):
            for unit in (False, True):
                for lead in ((), (2,)):

                    def operands(torch, lead=lead, left=left):
                        a = _distinct(torch, "float32", *lead, 3, 3) / 9 + 2 * torch.eye(3)
                        return a, _distinct(torch, "float32", *lead, *((3, 2) if left else (2, 3)), seed=1)

                    made[f"solve_triangular {upper} {left} {unit} {lead}"] = (
                        "linalg.solve_triangular", lambda torch, a, b, **o: torch.linalg.solve_triangular(a, b, **o),
                        operands, {"upper": upper, "left": left, "unitriangular": unit},
                    )  # fmt: skip
    return made


def _gradient(torch, function, x, g):
    x = x.clone().requires_grad_()
    return torch.autograd.grad(function(x), x, g)[0]


def _gradients():
    made = {}
    for mean in (False, True):
        made[f"_bags_backward {mean}"] = (
            "_bags_backward",
            lambda torch, g, i, s, rows, m: _gradient(
                torch, lambda w: torch.nn.functional.embedding_bag(i, w, s, mode="mean" if m else "sum"),
                torch.zeros(rows, g.shape[1]), g,
            ),
            lambda torch, mean=mean: (
                _distinct(torch, "float32", 4, 3), torch.tensor([4, 0, 0, 2, 1, 4]), torch.tensor([0, 3, 3, 4]), 5, mean
            ), {},
        )  # fmt: skip
    for shift in (0, 1, 3):
        made[f"_conv_tbc {shift}"] = (
            "_conv_tbc", lambda torch, x, w, b, shift, length: torch.conv_tbc(x, w, b, shift),
            lambda torch, s=shift: (
                _distinct(torch, "float32", 5, 2, 3), _distinct(torch, "float32", 3, 3, 4, seed=1),
                _distinct(torch, "float32", 4, seed=2), s, 3 + 2 * s,
            ), {},
        )  # fmt: skip
        made[f"_conv_tbc_weight_grad {shift}"] = (
            "_conv_tbc_weight_grad",
            lambda torch, g, x, taps, shift: _gradient(
                torch, lambda w: torch.conv_tbc(x, w, torch.zeros(4), shift), torch.zeros(taps, 3, 4), g
            ),
            lambda torch, s=shift: (
                _distinct(torch, "float32", 3 + 2 * s, 2, 4) / 8, _distinct(torch, "float32", 5, 2, 3, seed=1) / 8,
                3, s,
            ), {},
        )  # fmt: skip
    return made


def _padded():
    made = {}
    for mode in ("reflect", "replicate", "circular"):
        for pad in ([2, 1], [1, 2, 0, 1], [0, 0, 0, 0]):
            made[f"_pad_border {mode} {pad}"] = (
                "_pad_border", lambda torch, x, pad, mode: torch.nn.functional.pad(x, pad, mode),
                lambda torch, p=pad, m=mode: (_distinct(torch, "float32", *(2, 3, 4)[: 1 + len(p) // 2]), p, m), {},
            )  # fmt: skip
            made[f"_pad_border_backward {mode} {pad}"] = (
                "_pad_border_backward",
                lambda torch, g, sizes, pad, mode: _gradient(
                    torch, lambda x: torch.nn.functional.pad(x, pad, mode), torch.zeros(sizes), g
                ),
                lambda torch, p=pad, m=mode: (
                    _distinct(torch, "float32", *_extended([2, 3, 4][: 1 + len(p) // 2], p)),
                    [2, 3, 4][: 1 + len(p) // 2], p, m,
                ), {},
            )  # fmt: skip
    for size in ((4, 5), (4, 5, 6)):
        n = len(size)
        made[f"_max_pool_at_starts {n}"] = (
            "_max_pool_at_starts", _fractional,
            lambda torch, size=size, n=n: (
                _distinct(torch, "float32", 1, 2, *size), [torch.tensor([[[0, s - 2]] * 2]) for s in size], [2] * n
            ), {},
        )  # fmt: skip
    made["_bce_each"] = (
        "_bce_each",
        lambda torch, x, y: torch.nn.functional.binary_cross_entropy(x, y, reduction="none"),
        lambda torch: (torch.linspace(0, 1, 12).view(3, 4), torch.linspace(1, 0, 12).view(3, 4)), {},
    )  # fmt: skip
    return made


def _extended(sizes, pad):
    return [n + sum(pad[2 * i : 2 * i + 2]) for n, i in zip(sizes, reversed(range(len(sizes))), strict=True)]


def _fractional(torch, x, starts, kernel):
    """Two windows in each dim begin at its two ends, whatever the random samples are."""
    pool = getattr(torch.nn.functional, f"fractional_max_pool{len(kernel)}d")
    samples = torch.full((1, 2, len(kernel)), 0.5)
    return pool(x, kernel, output_size=[2] * len(kernel), return_indices=True, _random_samples=samples)


def _of_bits():
    made = {}
    for dtype in ("float32", "float16", "int64", "uint8"):
        for dim, keepdim in (([0, 1], False), ([1], True)):
            made[f"_xor_of_bits {dtype} {dim} {keepdim}"] = (
                "_xor_of_bits", lambda torch, x, dim, keepdim: torch.hash_tensor(x, dim, keepdim=keepdim),
                lambda torch, d=dtype, dim=dim, k=keepdim: (_numbers(torch, d, 5, 7), dim, k), {},
            )  # fmt: skip
    for dtype in ("float32", "float16", "bfloat16"):
        made[f"_ldexp_whole {dtype}"] = (
            "_ldexp_whole", lambda torch, x, n: torch.ldexp(x, n),
            lambda torch, d=dtype: (_numbers(torch, d, 3, 4), torch.arange(-2, 2)), {},
        )  # fmt: skip
    return made


def _bags():
    made = {}
    for mean in (False, True):
        for dtype in ("float32", "float64"):
            made[f"embedding_bag {dtype} {mean}"] = (
                "_bags",
                lambda torch, w, i, s, m: torch.nn.functional.embedding_bag(i, w, s, mode="mean" if m else "sum"),
                lambda torch, d=dtype, mean=mean: (
                    _distinct(torch, d, 5, 3), torch.tensor([4, 0, 0, 2, 1, 4]), torch.tensor([0, 3, 3, 4]), mean
                ), {},
            )  # fmt: skip
    return made


def _margin_and_slope(torch, x, labels):
    x = x.clone().requires_grad_()
    loss = torch.nn.functional.multilabel_margin_loss(x, labels, reduction="none")
    return loss.detach(), torch.autograd.grad(loss.sum(), x)[0]


def _losses():
    made = {}
    for limit in (0.5, 3.0):
        made[f"_clipped_each {limit}"] = (
            "_clipped_each",
            lambda torch, x, y, limit, scale: torch.nn.functional.huber_loss(x, y, reduction="none", delta=limit),
            lambda torch, limit=limit: (
                _distinct(torch, "float32", 3, 4), _distinct(torch, "float32", 3, 4, seed=1), limit, 1.0
            ), {},
        )  # fmt: skip
        made[f"_clipped_difference {limit}"] = (
            "_clipped_difference",
            lambda torch, g, x, y, limit, factor: torch.ops.aten.huber_loss_backward(g, x, y, 0, limit) * factor,
            lambda torch, limit=limit: (
                *(_distinct(torch, "float32", 3, 4, seed=k) for k in range(3)), limit, 0.25
            ), {},
        )  # fmt: skip
    made["_multilabel_margin"] = (
        "_multilabel_margin", _margin_and_slope,
        lambda torch: (
            _distinct(torch, "float32", 3, 4) / 4, torch.tensor([[0, 2, -1, 1], [3, 1, 0, 2], [-1, 0, 1, 2]])
        ), {},
    )  # fmt: skip
    for p, weighted in ((1, False), (2, True)):
        made[f"_multi_margin {p}"] = (
            "_multi_margin",
            lambda torch, x, target, p, margin, weight: torch.nn.functional.multi_margin_loss(
                x, target, int(p), margin, weight, reduction="none"
            ),
            lambda torch, p=p, weighted=weighted: (
                _distinct(torch, "float32", 3, 4) / 4, torch.tensor([2, 0, 3]), float(p), 0.75,
                _distinct(torch, "float32", 4, seed=2).abs() if weighted else None,
            ), {},
        )  # fmt: skip
    return made


def _layers():
    made = {}
    for dtype in ("float32", "float64"):
        for dim in (0, -1):
            made[f"glu {dtype} {dim}"] = (
                "nn.functional.glu",
                lambda torch, x, dim: torch.nn.functional.glu(x, dim),
                lambda torch, dtype=dtype, dim=dim: (_distinct(torch, dtype, 4, 6), dim), {},
            )  # fmt: skip
    for weighted in (False, True):
        made[f"_histogram_grid {weighted}"] = (
            "_histogram_grid",
            lambda torch, points, edges, weight: torch.histogramdd(points, edges, weight=weight).hist,
            lambda torch, weighted=weighted: (
                torch.tensor([[0.0, 1.0], [0.5, 2.0], [1.0, 1.5], [2.0, 3.0], [2.5, 1.0], [-0.5, 2.5], [1.0, 1.0]]),
                [torch.tensor([0.0, 1.0, 1.5, 2.0]), torch.tensor([1.0, 2.0, 3.0])],
                torch.linspace(0.25, 1.75, 7) if weighted else None,
            ), {},
        )  # fmt: skip
    made["_max_pool_values"] = (
        "_max_pool_values",
        lambda torch, x, *options: torch.nn.functional.max_pool1d(x, *options),
        lambda torch: (_distinct(torch, "float32", 2, 3, 11), [3], [2], [1], [1], False), {},
    )  # fmt: skip
    return made


CALLS = {
    **_unary(),
    **_binary(),
    **_with_options(),
    **_along(),
    **_by_index(),
    **_systems(),
    **_bags(),
    **_losses(),
    **_layers(),
    **_of_bits(),
    **_gradients(),
    **_padded(),
}
CASES = {
    key: lambda torch, call=call, args=args, options=options: call(torch, *args(torch), **options)
    for key, (_, call, args, options) in CALLS.items()
}
