"""Simulated aclnn operators against numpy, in several types, layouts and seeds."""

import zlib

import numpy as np
import pytest

from tests.simulator.device import (
    F32,
    I8,
    I32,
    TYPES,
    Bf16,
    Bools,
    InPlace,
    Ints,
    List,
    Out,
    Refused,
    Scalar,
    from_bits,
)

TOLERANCE = {"float32": 2e-5, "float64": 1e-12, "float16": 2e-3, "bfloat16": 2e-2}


def draw(name, shape, dtype="float32", low=-3.0, high=3.0):
    """Numbers that depend on a name, rounded to a type: the operand, and the same numbers as numpy's float64 or int64."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    values = rng.uniform(low, high, shape)
    if dtype == "bfloat16":
        operand = Bf16.of(values)
        return operand, operand.values.astype(np.float64)
    if dtype == "bool":
        array = values > (low + high) / 2
    else:
        array = values.astype(dtype)
    return array, array.astype(np.int64 if array.dtype.kind in "iub" else np.float64)


def close(found, expected, dtype="float32"):
    tolerance = TOLERANCE.get(dtype, 0)
    np.testing.assert_allclose(
        np.asarray(found, np.float64), np.asarray(expected, np.float64), tolerance, tolerance
    )


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


UNARY = {
    "Exp": np.exp,
    "Expm1": np.expm1,
    "Sin": np.sin,
    "Cos": np.cos,
    "Tanh": np.tanh,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Floor": np.floor,
    "Ceil": np.ceil,
    "Trunc": np.trunc,
    "Round": np.rint,
    "Abs": np.abs,
    "Neg": np.negative,
    "Sigmoid": sigmoid,
    "Silu": lambda x: x * sigmoid(x),
    "Relu": lambda x: np.maximum(x, 0),
    "Hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Erf": np.vectorize(__import__("math").erf),
}
POSITIVE = {
    "Log": np.log,
    "Log2": np.log2,
    "Log10": np.log10,
    "Log1p": np.log1p,
    "Sqrt": np.sqrt,
    "Rsqrt": lambda x: 1 / np.sqrt(x),
    "Reciprocal": lambda x: 1 / x,
    "Acosh": lambda x: np.arccosh(x),
}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", [*UNARY, *POSITIVE])
def test_functions_of_one_tensor(npu, name, dtype):
    expected = (UNARY | POSITIVE)[name]
    operand, x = draw(name, (3, 5), dtype, *((1.1, 4) if name in POSITIVE else (-3, 3)))
    close(npu.run(name, operand, Out((3, 5), dtype)), expected(x), dtype)


def test_views_are_read_and_written_through_their_strides(npu):
    base = np.arange(60, dtype=np.float32).reshape(5, 12)
    view = base[1::2, ::-3]  # steps of two rows, and backwards
    close(npu.run("Neg", view, Out(view.shape)), -view)
    close(
        npu.run("InplaceMul", InPlace(base.T[2:5]), np.float32([[2], [3], [4]])),
        base.T[2:5] * [[2], [3], [4]],
    )


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "int32", "uint8"])
@pytest.mark.parametrize(
    "name, expected",
    [
        ("Mul", np.multiply),
        ("Maximum", np.maximum),
        ("Minimum", np.minimum),
        ("FloorDivide", np.floor_divide),
        ("FmodTensor", np.fmod),
    ],
)
def test_arithmetic_of_two_tensors(npu, name, expected, dtype):
    low = 1 if dtype == "uint8" else -9
    a, x = draw(name + "a", (4, 1, 3), dtype, low, 9)
    b, y = draw(name + "b", (2, 3), dtype, 1, 9)
    close(npu.run(name, a, b, Out((4, 2, 3), dtype)), expected(x, y), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64"])
def test_sums_with_a_factor(npu, dtype):
    (a, x), (b, y) = draw("a", (2, 3), dtype, -9, 9), draw("b", (3,), dtype, -9, 9)
    close(npu.run("Add", a, b, Scalar(2, dtype), Out((2, 3), dtype)), x + 2 * y, dtype)
    close(npu.run("Sub", a, b, Scalar(3, dtype), Out((2, 3), dtype)), x - 3 * y, dtype)
    close(npu.run("InplaceAdds", InPlace(a.copy()), Scalar(5, dtype), Scalar(2, dtype)), x + 10, dtype)
    close(npu.run("Rsubs", a, Scalar(5, dtype), Scalar(2, dtype), Out((2, 3), dtype)), 5 - 2 * x, dtype)


def test_whole_numbers_are_exact_beyond_float64(npu):
    big = np.array([2**53 + 1, -(2**62) - 1], np.int64)
    one = np.array([2, 4], np.int64)
    assert npu.run("Add", big, one, Scalar(1, "int64"), Out((2,), "int64")).tolist() == [
        2**53 + 3,
        -(2**62) + 3,
    ]
    assert npu.run("EqTensor", big, big - 1, Out((2,), "bool")).tolist() == [False, False]


@pytest.mark.parametrize("name", ["Eq", "Ne", "Lt", "Le", "Gt", "Ge"])
def test_comparisons(npu, name):
    a, b = np.array([1, 2, np.nan, 3], np.float32), np.array([1, 3, np.nan, 2], np.float32)
    expected = {"Eq": a == b, "Ne": a != b, "Lt": a < b, "Le": a <= b, "Gt": a > b, "Ge": a >= b}[name]
    assert npu.run(name + "Tensor", a, b, Out((4,), "bool")).tolist() == expected.tolist()


@pytest.mark.parametrize("axes, keep", [([0], False), ([1, 2], True), ([], False), ([-1], True)])
def test_reductions(npu, axes, keep):
    a, x = draw("reduce", (3, 4, 5))
    along = tuple(axes) or None
    shape = np.sum(x, along, keepdims=keep).shape
    for name, expected, more in [
        ("ReduceSum", np.sum, [I32(0)]),
        ("Mean", np.mean, [I32(0)]),
        ("Amax", np.max, []),
        ("Amin", np.min, []),
        ("LogSumExp", lambda v, along, keepdims: np.log(np.sum(np.exp(v), along, keepdims=keepdims)), []),
    ]:
        close(npu.run(name, a, Ints(axes), keep, *more, Out(shape)), expected(x, along, keepdims=keep))
    deviation = npu.run("Std", a, Ints(axes), 1, keep, Out(shape))
    close(deviation, np.std(x, along, ddof=1, keepdims=keep))


def test_sums_of_whole_numbers_and_products(npu):
    a, x = draw("whole", (4, 6), "int32", -50, 50)
    assert npu.run("ReduceSum", a, Ints([1]), False, I32(9), Out((4,), "int64")).tolist() == x.sum(1).tolist()
    close(npu.run("ProdDim", a, 0, False, I32(9), Out((6,), "int64")), x.prod(0))
    close(npu.run("Cumsum", a, 1, I32(9), Out((4, 6), "int64")), x.cumsum(1))


def test_places_of_extremes(npu):
    a = np.float32([[1, 5, 5], [np.nan, 7, np.nan]])
    value, index = npu.run("MaxDim", a, 1, False, Out((2,)), Out((2,), "int64"))
    assert index.tolist() == [1, 0] and value[0] == 5 and np.isnan(value[1])
    assert npu.run("ArgMin", a[:1], 1, True, Out((1, 1), "int64")).tolist() == [[0]]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(
    "left, right",
    [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((2, 1, 3, 4), (7, 4, 2))],
)
def test_products(npu, left, right, dtype):
    (a, x), (b, y) = draw("left", left, dtype), draw("right", right, dtype)
    expected = x @ y
    close(npu.run("Matmul", a, b, Out(expected.shape, dtype), I8(0)), expected, dtype)


def test_sums_with_products(npu):
    (a, x), (b, y), (c, z) = draw("a", (3, 4)), draw("b", (4, 5)), draw("c", (5,))
    close(npu.run("Addmm", c, a, b, Scalar(0.5), Scalar(2), Out((3, 5)), I8(0)), 0.5 * z + 2 * (x @ y))
    nan = np.full((3, 5), np.nan, np.float32)
    close(npu.run("InplaceAddmm", InPlace(nan), a, b, Scalar(0), Scalar(1), I8(0)), x @ y)
    close(npu.run("Mm", a.T.copy().T, b, Out((3, 5)), I8(0)), x @ y)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_softmax_and_its_gradient(npu, dtype):
    (a, x), (g, d) = draw("softmax", (3, 4, 5), dtype), draw("gradient", (3, 4, 5), dtype)
    e = np.exp(x - x.max(1, keepdims=True))
    y = e / e.sum(1, keepdims=True)
    close(npu.run("Softmax", a, 1, Out(x.shape, dtype)), y, dtype)
    close(npu.run("LogSoftmax", a, 1, Out(x.shape, dtype)), np.log(y), dtype)
    close(
        npu.run("SoftmaxBackward", g, y.astype(np.float32), 1, Out(x.shape, "float32")),
        y * (d - (d * y).sum(1, keepdims=True)),
        dtype,
    )


def numeric_gradient(f, x, g):
    """The gradient of sum(g * f(x)) by central differences."""
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-5
        result[place] = ((f(x + step) - f(x - step)) * g).sum() / 2e-5
    return result


def layer_norm(x, w, b, eps=1e-5):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * w + b


def rms_norm(x, w, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * w


def test_layer_norm(npu):
    (a, x), (w, v), (b, c), (g, d) = (
        draw(n, s) for n, s in (("x", (2, 3, 4)), ("w", (4,)), ("b", (4,)), ("g", (2, 3, 4)))
    )
    out, mean, rstd = npu.run(
        "LayerNorm", a, Ints([4]), w, b, 1e-5, Out(x.shape), Out((2, 3, 1)), Out((2, 3, 1))
    )
    close(out, layer_norm(x, v, c))
    dx, dw, db = npu.run(
        "LayerNormBackward",
        g,
        a,
        Ints([4]),
        mean,
        rstd,
        w,
        b,
        Bools([1, 1, 1]),
        Out(x.shape),
        Out((4,)),
        Out((4,)),
    )
    close(dx, numeric_gradient(lambda t: layer_norm(t, v, c), x, d), "float16")
    close(dw, (d * layer_norm(x, 1, 0)).sum((0, 1)))
    close(db, d.sum((0, 1)))


def test_root_mean_square_norm(npu):
    (a, x), (w, v), (g, d), (r, z) = (
        draw(n, s) for n, s in (("x", (3, 4)), ("w", (4,)), ("g", (3, 4)), ("r", (3, 4)))
    )
    out, rstd = npu.run("RmsNorm", a, w, 1e-6, Out((3, 4)), Out((3, 1)))
    close(out, rms_norm(x, v))
    dx, dw = npu.run("RmsNormGrad", g, a, rstd, w, Out((3, 4)), Out((4,)))
    close(dx, numeric_gradient(lambda t: rms_norm(t, v), x, d), "float16")
    close(dw, (d * rms_norm(x, 1)).sum(0))
    added = npu.run("AddRmsNorm", a, r, w, 1e-6, Out((3, 4)), Out((3, 1)), Out((3, 4)))
    close(added[0], rms_norm(x + z, v))
    close(added[2], x + z)


GRADIENTS = {
    "SigmoidBackward": (sigmoid, True, []),
    "TanhBackward": (np.tanh, True, []),
    "SeluBackward": (
        lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
        True,
        [],
    ),
    "SiluBackward": (lambda x: x * sigmoid(x), False, []),
    "GeluBackward": (lambda x: x * (1 + np.vectorize(__import__("math").erf)(x / 2**0.5)) / 2, False, []),
    "MishBackward": (lambda x: x * np.tanh(np.log1p(np.exp(x))), False, []),
    "HardswishBackward": (lambda x: x * np.clip(x / 6 + 0.5, 0, 1), False, []),
    "SoftplusBackward": (lambda x: np.log1p(np.exp(2 * x)) / 2, False, [Scalar(2), Scalar(20)]),
    "LogSigmoidBackward": (lambda x: np.log(sigmoid(x)), False, [None]),
    "LeakyReluBackward": (lambda x: np.where(x > 0, x, 0.1 * x), False, [Scalar(0.1), False]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_activations(npu, name):
    f, takes_result, more = GRADIENTS[name]
    (a, x), (g, d) = draw(name, (4, 5), "float32", -2.7, 2.7), draw("g", (4, 5))
    given = f(x).astype(np.float32) if takes_result else a
    close(npu.run(name, g, given, *more, Out((4, 5))), numeric_gradient(f, x, d), "float16")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_gated_units(npu, dtype):
    (a, x), (g, d) = draw("gated", (3, 8), dtype), draw("g", (3, 4), dtype)

    def swiglu(x):
        return x[:, :4] * sigmoid(x[:, :4]) * x[:, 4:]

    close(npu.run("SwiGlu", a, -1, Out((3, 4), dtype)), swiglu(x), dtype)
    close(npu.run("SwiGluGrad", g, a, 1, Out((3, 8), dtype)), numeric_gradient(swiglu, x, d), dtype)
    close(npu.run("Glu", a, 1, Out((3, 4), dtype)), x[:, :4] * sigmoid(x[:, 4:]), dtype)


def convolve(x, w, stride, padding, dilation, groups):
    """A convolution of two spatial axes, window by window."""
    x = np.pad(x, ((0, 0), (0, 0), (padding,) * 2, (padding,) * 2))
    high, wide = (dilation * (size - 1) + 1 for size in w.shape[2:])
    rows, columns = (
        (size - window) // stride + 1 for size, window in zip(x.shape[2:], (high, wide), strict=True)
    )
    out = np.zeros((len(x), len(w), rows, columns))
    per, channels = len(w) // groups, w.shape[1]
    for o in range(len(w)):
        part = x[:, o // per * channels :][:, :channels]
        for i in range(rows):
            for j in range(columns):
                window = part[:, :, i * stride :, j * stride :][:, :, :high:dilation, :wide:dilation]
                out[:, o, i, j] = (window * w[o]).sum((1, 2, 3))
    return out


@pytest.mark.parametrize("stride, padding, dilation, groups", [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)])
def test_convolutions(npu, stride, padding, dilation, groups):
    (a, x), (b, w), (c, z) = draw("x", (2, 4, 6, 5)), draw("w", (4, 4 // groups, 3, 2)), draw("c", (4,))
    expected = convolve(x, w, stride, padding, dilation, groups)
    how = [Ints([n] * 2) for n in (stride, padding, dilation)]
    out = npu.run("Convolution", a, b, c, *how, False, Ints([0, 0]), groups, Out(expected.shape), I8(0))
    close(out, expected + z[:, None, None])
    g, d = draw("g", expected.shape)
    dx, dw, db = npu.run(
        "ConvolutionBackward", g, a, b, None, *how, False, Ints([0, 0]), I32(groups), Bools([1, 1, 1]), I8(0), Out(x.shape),
        Out(w.shape), Out((4,)),
    )  # fmt: skip
    close(dx, numeric_gradient(lambda t: convolve(t, w, stride, padding, dilation, groups), x, d), "float16")
    close(dw, numeric_gradient(lambda t: convolve(x, t, stride, padding, dilation, groups), w, d), "float16")
    close(db, d.sum((0, 2, 3)))
    # the transposed convolution is the gradient with respect to the input
    more = [
        (n - (k - 1) * dilation - 1 + 2 * padding) % stride
        for n, k in zip(x.shape[2:], w.shape[2:], strict=True)
    ]
    close(npu.run("Convolution", g, b, None, *how, True, Ints(more), groups, Out(x.shape), I8(0)), dx)


def test_distances(npu):
    (a, x), (b, y) = draw("a", (2, 3, 4)), draw("b", (5, 4))
    for p in (1.0, 2.0, np.inf):
        expected = np.linalg.norm(x[:, :, None] - y[None, None], p, -1)
        close(npu.run("Cdist", a, b, F32(p), 2, Out((2, 3, 5))), expected)


def test_losses(npu):
    (a, x), target = draw("logits", (4, 5)), np.array([1, 0, 4, 2])
    logs = x - np.log(np.exp(x).sum(1, keepdims=True))
    loss, log_probability, *_ = npu.run(
        "CrossEntropyLoss", a, target, None, "mean", -100, 0.0, 0.0, False, Out((1,)), Out((4, 5)), None, None
    )
    close(loss, [-logs[range(4), target].mean()])
    gradient = npu.run(
        "CrossEntropyLossGrad", np.ones(1, np.float32), log_probability, target, None, None, None, "mean", -100, 0.0, 0.0,
        Out((4, 5)),
    )  # fmt: skip
    expected = np.exp(logs)
    expected[range(4), target] -= 1
    close(gradient, expected / 4)
    target[1] = -100
    weight = np.float32([1, 2, 3, 4, 5])
    nll, total = npu.run("NLLLoss", logs.astype(np.float32), target, weight, 1, -100, Out(()), Out(()))
    kept = [0, 2, 3]
    close(total, weight[target[kept]].sum())
    close(nll, -(logs[kept, target[kept]] * weight[target[kept]]).sum() / total)
    close(npu.run("MseLoss", a, a[::-1].copy(), 1, Out(())), ((x - x[::-1]) ** 2).mean())


# ---- indices
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("index_type", ["int64", "int32"])
def test_gathering_and_scattering(npu, dtype, index_type):
    a, _ = draw("table", (4, 5), dtype, -9, 9)
    rows = np.array([3, 0, 3], index_type)
    assert (npu.run("IndexSelect", a, 0, rows, Out((3, 5), dtype)) == a[rows]).all()
    assert (npu.run("Embedding", a, rows.reshape(3, 1), Out((3, 1, 5), dtype)) == a[rows.reshape(3, 1)]).all()
    index = np.array([[0, 4], [2, 1]], index_type)
    assert (
        npu.run("Gather", a, 1, index, Out((2, 2), dtype)) == np.take_along_axis(a[:2], index.astype(int), 1)
    ).all()
    source, _ = draw("source", (2, 2), dtype, -9, 9)
    expected = a.copy()
    np.put_along_axis(expected[:2], index.astype(int), source, 1)
    assert (npu.run("Scatter", a, 1, index, source, 0, Out((4, 5), dtype)) == expected).all()


def test_adding_at_indices(npu):
    (a, x), (s, y) = draw("a", (4, 3)), draw("s", (5, 3))
    index = np.array([0, 3, 0, 0, 2])
    expected = x.copy()
    np.add.at(expected, index, 2 * y)
    close(npu.run("IndexAdd", a, 0, index, s, Scalar(2), Out((4, 3))), expected)
    gradient = npu.run("EmbeddingDenseBackward", s, index, 4, 2, False, Out((4, 3)))
    expected = np.zeros((4, 3))
    np.add.at(expected, index[:4], y[:4])  # the last index is the padding
    close(gradient, expected)


@pytest.mark.parametrize("places", [(0, 1), (0, 2), (1,), (2, 0)])
def test_lists_of_indices(npu, places):
    a, x = draw("indexed", (4, 5, 6))
    given = [None] * 3
    for k, axis in enumerate(places):
        given[axis] = np.array([[1, 3], [-1, 0]]) if k == 0 else np.array([2, -2])
    key = tuple(slice(None) if one is None else one for one in given)
    expected = x[key]
    close(npu.run("Index", a, List(given), Out(expected.shape)), expected)
    values, v = draw("values", expected.shape)
    summed = x.copy()
    np.add.at(summed, key, v)
    close(npu.run("IndexPutImpl", InPlace(a.copy()), List(given), values, True, False), summed)


def test_results_whose_shape_depends_on_the_data(npu):
    a, x = draw("mask", (3, 4))
    mask = a > 0
    close(npu.run("MaskedSelect", a, mask, Out((12,))), x[mask])
    assert npu.run("Nonzero", mask, Out((12, 2), "int64")).tolist() == np.argwhere(mask).tolist()
    numbers = np.array([3, 1, 3, 2, 1], np.int32)
    values, inverse, counts = npu.run(
        "Unique2", numbers, True, True, True, Out((5,), "int32"), Out((5,), "int64"), Out((5,), "int64")
    )
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3], [2, 0, 2, 1, 0], [2, 1, 2])


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("descending", [False, True])
def test_sorting(npu, descending, dtype):
    a, x = draw("sort", (3, 7), dtype, -4, 4)
    order = np.argsort(-x if descending else x, axis=1, kind="stable")
    values, places = npu.run("Sort", a, True, 1, descending, Out((3, 7), dtype), Out((3, 7), "int64"))
    assert places.tolist() == order.tolist() and (values == np.take_along_axis(a, order, 1)).all()
    values, places = npu.run("Topk", a, 2, -1, descending, True, Out((3, 2), dtype), Out((3, 2), "int64"))
    assert places.tolist() == order[:, :2].tolist()


# ---- joining, filling, moving
def test_shapes(npu):
    (a, x), (b, y) = draw("a", (2, 3)), draw("b", (2, 4))
    close(npu.run("Cat", List([a, b]), 1, Out((2, 7))), np.concatenate([x, y], 1))
    close(npu.run("Stack", List([a, a]), -1, Out((2, 3, 2))), np.stack([x, x], -1))
    parts = npu.run("SplitWithSize", b, Ints([1, 3]), 1, List([Out((2, 1)), Out((2, 3))]))
    close(np.concatenate(parts, 1), y)
    close(npu.run("Permute", a, Ints([1, 0]), Out((3, 2))), x.T)
    close(npu.run("Repeat", a, Ints([2, 1, 3]), Out((2, 2, 9))), np.tile(x, (2, 1, 3)))
    close(npu.run("Roll", b, Ints([1, -2]), Ints([0, 1]), Out((2, 4))), np.roll(y, (1, -2), (0, 1)))
    close(npu.run("Flip", b, Ints([1]), Out((2, 4))), y[:, ::-1])
    close(npu.run("Tril", b, 1, Out((2, 4))), np.tril(y, 1))
    close(
        npu.run("ConstantPadNd", a, Ints([1, -1, 0, 2]), Scalar(9), Out((4, 3))),
        np.pad(x, ((0, 2), (1, 0)), constant_values=9)[:, :3],
    )
    close(npu.run("SWhere", x > 0, a, np.float32(5).reshape(1), Out((2, 3))), np.where(x > 0, x, 5))
    close(npu.run("Arange", Scalar(3), Scalar(0), Scalar(-0.5), Out((6,))), np.arange(3, 0, -0.5))
    close(npu.run("InplaceMaskedFillScalar", InPlace(a.copy()), x > 0, Scalar(-7)), np.where(x > 0, -7, x))


@pytest.mark.parametrize("target", ["int32", "float16", "bfloat16", "bool", "uint8"])
def test_conversion(npu, target):
    values = np.float32([0, 1.75, -2.25, 100])
    found = npu.run("Cast", values, I32(TYPES[target]), Out((4,), target))
    expected = {"bfloat16": values, "bool": values != 0, "uint8": [0, 1, 254, 100]}.get(target)
    assert found.tolist() == list(values.astype(target) if expected is None else expected)


# ---- random numbers
def test_random_numbers_follow_seed_and_offset(npu):
    def normal(seed, offset):
        return npu.run("InplaceNormal", InPlace(np.zeros(4000, np.float32)), F32(1), F32(2), seed, offset)

    first = normal(5, 0)
    assert (first == normal(5, 0)).all()
    assert (first != normal(5, 4)).any() and (first != normal(6, 0)).any()
    assert abs(first.mean() - 1) < 0.15 and abs(first.std() - 2) < 0.15
    uniform = npu.run("InplaceUniform", InPlace(np.zeros(4000, np.float32)), -1.0, 3.0, 5, 0)
    assert -1 <= uniform.min() < -0.9 and 2.9 < uniform.max() < 3 and abs(uniform.mean() - 1) < 0.1
    assert sorted(npu.run("Randperm", 50, 5, 0, Out((50,), "int64"))) == list(range(50))


def test_dropout(npu):
    a = np.ones(1000, np.float32)
    mask = npu.run("DropoutGenMaskV2", Ints([1000]), 0.25, 7, 0, I32(0), Out((128,), "uint8"))
    dropped = npu.run("DropoutDoMask", a, mask, 0.25, Out((1000,)))
    kept = np.unpackbits(mask, bitorder="little")[:1000]
    close(dropped, kept / 0.75)
    assert abs(kept.mean() - 0.75) < 0.06


# ---- optimizers and lists
def test_adam(npu):
    (p, x), (g, d) = draw("p", (5,)), draw("g", (5,))
    m, v, step = np.zeros(5, np.float32), np.zeros(5, np.float32), np.zeros(1, np.int64)
    weights, first, second = x, 0, 0
    for t in (1, 2, 3):
        p, m, v = npu.run(
            "ApplyAdamWV2", InPlace(p), InPlace(m), InPlace(v), None, g, step, F32(0.1), F32(0.9), F32(0.99), F32(0.01),
            F32(1e-8), False, False,
        )  # fmt: skip
        step += 1
        first, second = 0.9 * first + 0.1 * d, 0.99 * second + 0.01 * d * d
        weights = weights * (1 - 0.1 * 0.01)
        weights = weights - 0.1 * (first / (1 - 0.9**t)) / (np.sqrt(second / (1 - 0.99**t)) + 1e-8)
        close(p, weights, "float16")


def test_lists_of_tensors(npu):
    (a, x), (b, y) = draw("a", (2, 3)), draw("b", (4,))
    found = npu.run("ForeachMulScalar", List([a, b]), np.float32([3]), List([Out((2, 3)), Out((4,))]))
    close(found[0], 3 * x)
    close(found[1], 3 * y)
    norms = npu.run("ForeachNorm", List([a, b]), np.float32([2]), List([Out(()), Out(())]))
    close(norms, [np.linalg.norm(x), np.linalg.norm(y)])


# ---- refusals
@pytest.mark.parametrize(
    "name, arguments, reason",
    [
        ("Add", [np.ones(2, np.float32), np.ones(3, np.float32), Scalar(1), Out((2,))], "do not broadcast"),
        ("Add", [np.ones(2, np.float32), np.ones(2, np.float32), Scalar(1), Out((3,))], "must have (2)"),
        ("Add", [np.ones(2, np.float32), np.ones(2, np.float32), Scalar(1), Out((2,), "int32")], "cannot be written as INT32"),
        ("Add", [np.ones(2, np.int32), np.ones(2, np.int32), Scalar(0.5), Out((2,), "int32")], "whole numbers"),
        ("Matmul", [np.ones((2, 2)), np.ones((2, 2)), Out((2, 2), "float64"), I8(0)], "is DOUBLE; taken are"),
        ("Matmul", [np.ones((2, 2), np.float32)] * 2 + [Out((2, 2)), I8(9)], "cubeMathType"),
        ("Silu", [np.ones(2, np.float64), Out((2,), "float64")], "is DOUBLE"),
        ("Std", [np.ones((2, 2), np.float64), Ints([0]), 1, False, Out((2,), "float64")], "is DOUBLE"),
        ("Softmax", [np.ones(2, np.int32), 0, Out((2,), "int32")], "is INT32"),
        ("Gather", [np.ones(2, np.float32), 0, np.zeros(2, np.float32), Out((2,))], "is FLOAT"),
        ("ReduceSum", [np.ones(2, np.float32), Ints([3]), False, I32(0), Out(())], "no axis 3"),
        ("Neg", [np.ones((1,) * 9, np.float32), Out((1,) * 9)], "at most 8"),
        ("Abs", [np.ones(2, np.complex64), Out((2,))], "is COMPLEX64"),
    ],
)  # fmt: skip
def test_refusals_name_the_operator_the_reason_and_the_document(npu, name, arguments, reason):
    npu.refuses(name, arguments, reason)


def test_a_missing_argument_is_named(npu):
    with pytest.raises(Refused, match="'other' is missing") as error:
        npu.run("Mul", np.ones(2, np.float32), None, Out((2,)))
    assert error.value.status == 161001


def test_an_operator_that_is_not_simulated_is_not_exported(npu):
    with pytest.raises(AttributeError):
        npu.run("NoSuchOperator", Out((1,)))


def test_bfloat16_is_rounded_to_the_nearest_even():
    assert from_bits(Bf16.of([1 + 2**-8, 1 + 3 * 2**-8]).bits).tolist() == [1, 1 + 2**-6]
