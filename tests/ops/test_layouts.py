"""Every operator of the table gives the same answer for every memory layout of its inputs and outputs.

The outputs are `out=` and tensors changed in place. No recorded answers are needed, because the answer for
contiguous inputs is expected. NaN (integers: 113, bool: True) is between the elements, and must neither reach
a result nor be overwritten.
"""

from __future__ import annotations

import warnings

import pytest

import msadapter as torch

DTYPES = [torch.float32, torch.float64, torch.complex64, torch.int64, torch.bool]
# Shapes of the tensors of a call, and its other arguments after them.
CALLS = [
    ([(4, 4)], ()),
    ([(2, 3, 4)], ()),
    ([(3, 4)], (0,)),
    ([(3, 4)], (1,)),
    ([(4, 4), (4, 4)], ()),
    ([(3, 1), (3, 4)], ()),
    ([(2, 3, 1), (2, 1, 4)], ()),
    ([(4, 4), (4, 4), (4, 4)], ()),
]
# These results depend on the memory itself, or on random numbers that PyTorch also draws in the order of
# memory.
BY_MEMORY = {
    "as_strided",
    "as_strided_copy",
    "as_strided_",
    "resize_",
    "resize_as_",
    "view_as_complex",
    "view",
    "set_",
}
BY_CHANCE = {
    *(
        "bernoulli",
        "binomial",
        "dropout",
        "alpha_dropout",
        "feature_alpha_dropout",
        "feature_dropout",
        "multinomial",
    ),
    *(
        "normal",
        "poisson",
        "rand_like",
        "randint_like",
        "randn_like",
        "rrelu",
        "rrelu_",
        "gumbel_softmax",
        "empty_like",
    ),
    *("dropout_", "alpha_dropout_", "pca_lowrank", "svd_lowrank", "empty_strided", "new_empty", "lobpcg"),
    *(
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "native_dropout",
        "geometric",
        "cauchy",
        "exponential",
        "log_normal",
    ),
    *("uniform", "random"),
}


def laid_out(values, layout):
    """Return (base, a view of it with these values)."""
    shape = list(values.shape)
    poison = True if values.dtype is torch.bool else 113
    if values.dtype.is_floating_point or values.dtype.is_complex:
        poison = float("nan")

    def filled(sizes):
        return torch.full(sizes, poison, dtype=values.dtype)

    if layout == "every second element":
        base = filled([*shape[:-1], 2 * shape[-1]])
        view = base[..., ::2]
    elif layout == "middle of a larger tensor":
        base = filled([*shape[:1], 3, *shape[1:]])
        view = base[:, 1]
    elif layout == "off all sides":
        base = filled([n + 2 for n in shape])
        view = base[tuple(slice(1, -1) for _ in shape)]
    else:
        order = list(reversed(range(len(shape))))
        base = filled([shape[d] for d in order])
        view = base.permute(order)
    view.copy_(values)
    return base, view.detach()


LAYOUTS = ["every second element", "middle of a larger tensor", "off all sides", "transposed"]


def values_of(dtype, shape, seed):
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.randint(0, 2, shape, generator=generator).bool()
    if not dtype.is_floating_point and not dtype.is_complex:
        return torch.randint(1, 5, shape, generator=generator).to(dtype)
    values = torch.rand(shape, generator=generator, dtype=torch.float64) * 0.8 + 0.1
    return (torch.complex(values, values.flip(0)) if dtype.is_complex else values).to(dtype)


def tensors(answer):
    if isinstance(answer, torch.Tensor):
        return [answer]
    return [x for part in answer for x in tensors(part)] if isinstance(answer, (tuple, list)) else []


def difference(got, expected):
    got, expected = tensors(got), tensors(expected)
    if len(got) != len(expected):
        return f"{len(got)} tensors, not {len(expected)}"
    for x, y in zip(got, expected, strict=True):
        if x.shape != y.shape or x.dtype is not y.dtype:
            return f"{x.dtype} {list(x.shape)}, not {y.dtype} {list(y.shape)}"
        if x.layout is not torch.strided:
            x, y = x.to_dense(), y.to_dense()
        try:
            torch.testing.assert_close(x, y, equal_nan=True)
        except AssertionError as error:
            return str(error).partition("\n\n")[2].replace("\n", ", ")
    return None


def gradients(function, inputs, extra):
    inputs = [x.detach().requires_grad_(True) for x in inputs]
    outputs = [x for x in tensors(function(*inputs, *extra)) if x.requires_grad]
    if not outputs:
        return []
    sums = [(x * (x.detach() + 1)).sum() for x in outputs]
    sum(x.real if x.is_complex() else x for x in sums).backward()
    return [x.grad for x in inputs if x.grad is not None]


def attempt(call):
    """Return (the answer, None) or (None, the error)."""
    try:
        return call(), None
    except Exception as error:  # other tests check which arguments an operator takes
        return None, error


class Comparison:
    """One call of one operator in one layout."""

    def __init__(self, function, name, inputs, extra, layout, faults, counts):
        self.function, self.name, self.inputs, self.extra = function, name, inputs, extra
        self.layout, self.faults, self.counts = layout, faults, counts

    def laid(self):
        return [laid_out(x, self.layout)[1] for x in self.inputs]

    def copies(self):
        return [x.clone() for x in self.inputs]

    def check(self, what, call, expected):
        got, error = attempt(call)
        problem = repr(error) if error is not None else difference(got, expected)
        self.counts[what] += 1
        if problem is not None:
            shapes = [list(x.shape) for x in self.inputs]
            self.faults.append(
                f"{self.name} {shapes} {self.extra} {self.inputs[0].dtype}, {self.layout}: {what}: {problem[:200]}"
            )

    def run(self, expected):
        self.check("forward", lambda: self.function(*self.laid(), *self.extra), expected)
        dtype = self.inputs[0].dtype
        if dtype.is_floating_point or dtype.is_complex:
            known, error = attempt(lambda: gradients(self.function, self.copies(), self.extra))
            if error is None and known:
                self.check("gradient", lambda: gradients(self.function, self.laid(), self.extra), known)
        if isinstance(expected, torch.Tensor) and expected.dim():
            if not self.name.endswith("_"):
                self.out(expected)
            self.in_place()

    def out(self, expected):
        if (
            attempt(lambda: self.function(*self.copies(), *self.extra, out=torch.empty_like(expected)))[1]
            is not None
        ):
            return
        base, view = laid_out(torch.zeros_like(expected), self.layout)

        def call():
            self.function(*self.copies(), *self.extra, out=view)
            return view, base

        self.check("out", call, (expected, laid_out(expected, self.layout)[0]))

    def in_place(self):
        method = getattr(torch.Tensor, self.name.rpartition(".")[2] + "_", None)
        if method is None:
            return
        changed, *others = self.copies()
        _, error = attempt(lambda: method(changed, *others, *self.extra))
        if error is not None or changed.shape != self.inputs[0].shape or not changed.is_contiguous():
            return  # the operator takes other arguments, or changes the shape or the strides
        base, view = laid_out(self.inputs[0], self.layout)

        def call():
            method(view, *self.laid()[1:], *self.extra)
            return view, base

        self.check("in-place", call, (changed, laid_out(changed, self.layout)[0]))


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
def test_every_operator(dtype):
    faults, counts = [], dict.fromkeys(("forward", "gradient", "out", "in-place"), 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for space in ("torch", "nn.functional", "linalg", "fft", "special"):
            for name, function in torch.ops.namespaces[space].items():
                if name in BY_MEMORY | BY_CHANCE or name.startswith("_"):
                    continue
                for shapes, extra in CALLS:
                    inputs = [values_of(dtype, shape, i) for i, shape in enumerate(shapes)]
                    expected, error = attempt(lambda: function(*[x.clone() for x in inputs], *extra))  # noqa: B023
                    if error is not None or not tensors(expected):
                        continue
                    for layout in LAYOUTS:
                        case = Comparison(function, f"{space}.{name}", inputs, extra, layout, faults, counts)
                        case.run(expected)
    assert not faults, f"{len(faults)} differ:\n" + "\n".join(faults[:40])
    assert counts["forward"] > 2000 and counts["out"] > 1000 and counts["in-place"] > 250, counts
    assert counts["gradient"] > 2000 or not (dtype.is_floating_point or dtype.is_complex), counts


@pytest.mark.parametrize("n", [2, 3, 32, 63, 64])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "bool", "complex64"])
def test_short_rows_are_computed_as_long_ones_are(n, dtype):
    """Rows of few elements are worked through several at a time, with any mix of repeated and strided operands."""
    source = torch.Generator().manual_seed(n)

    def drawn(*shape):
        return torch.randint(-9, 9, shape, generator=source).to(getattr(torch, dtype))

    rows, columns, whole = drawn(5, 700, 1), drawn(n), drawn(5, 700, 2 * n)[..., ::2]
    turned, one = drawn(n, 700, 5).permute(2, 1, 0), drawn(5, 1, n)
    out = torch.zeros(700, 5, n + 1).to(whole.dtype).transpose(0, 1)[..., 1:]
    for a, b in (
        (rows, columns),
        (whole, rows),
        (turned, columns),
        (one, whole),
        (rows, turned),
        (one, rows),
    ):
        flat = [x.expand(5, 700, n).contiguous() for x in (a, b)]
        for f in (torch.add, torch.mul, torch.eq):
            assert torch.equal(f(a, b), f(*flat))
        assert torch.equal(torch.add(a, b, out=out), torch.add(*flat)) and not out._base[..., 0].any()
