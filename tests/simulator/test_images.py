"""Simulated operators on images against numpy: pooling, upsampling, sampling at a grid."""

import itertools

import numpy as np
import pytest

from tests.simulator.device import I8, Bools, Ints, Out, Refused
from tests.simulator.test_operators import close, draw, numeric_gradient


# ---- pooling
def blocks(x, kernel, stride, padding, ceil):
    """For each position of the result: the window with NaN in the padding, and the number of elements of the padded image in it."""
    axes = len(kernel)
    padded = np.pad(x, [(0, 0)] * (x.ndim - axes) + [(p, p) for p in padding], constant_values=np.nan)
    counts = []
    for size, k, s, p in zip(x.shape[-axes:], kernel, stride, padding, strict=True):
        starts = [
            i * s
            for i in range(size + 2 * p)
            if (i * s + k <= size + 2 * p) or (ceil and i * s < size + p and (i - 1) * s + k < size + 2 * p)
        ]
        counts.append(len(starts))
    for place in itertools.product(*map(range, counts)):
        cut = tuple(slice(i * s, i * s + k) for i, s, k in zip(place, stride, kernel, strict=True))
        yield place, padded[(..., *cut)], counts


def pool(x, kernel, stride, padding, ceil, reduce):
    result = None
    for place, block, counts in blocks(x, kernel, stride, padding, ceil):
        if result is None:
            result = np.zeros((*x.shape[: x.ndim - len(kernel)], *counts))
        result[(..., *place)] = reduce(block, tuple(range(-len(kernel), 0)))
    return result


def average(inclusive, divisor):
    def reduce(block, axes):
        count = np.prod(block.shape[-len(axes) :]) if inclusive else np.isfinite(block).sum(axes)
        return np.nansum(block, axes) / (divisor or count)

    return reduce


def places(x, kernel, stride, padding, ceil):
    """The positions of the maxima in their planes."""
    axes = len(kernel)
    index = np.broadcast_to(np.arange(np.prod(x.shape[-axes:])).reshape(x.shape[-axes:]), x.shape)
    at = pool(index + 0.0, kernel, stride, padding, ceil, lambda b, _: 0)
    pairs = zip(
        blocks(x, kernel, stride, padding, ceil),
        blocks(index + 0.0, kernel, stride, padding, ceil),
        strict=True,
    )
    for (place, block, _), (_, which, _) in pairs:
        flat, names = (b.reshape(*b.shape[:-axes], -1) for b in (block, which))
        best = np.nanargmax(flat, -1)[..., None]
        at[(..., *place)] = np.take_along_axis(names, best, -1)[..., 0]
    return at.astype(np.int64)


def back_to_places(gradient, at, shape, axes):
    result = np.zeros((*shape[: len(shape) - axes], int(np.prod(shape[len(shape) - axes :]))))
    for where in np.ndindex(gradient.shape):
        result[(*where[: len(shape) - axes], at[where])] += gradient[where]
    return result.reshape(shape)


SLIDES = [
    ((2, 3, 6, 7), (3, 2), (2, 3), (1, 0), False),
    ((3, 5, 6), (2, 4), (1, 2), (1, 2), True),
    ((2, 2, 5, 6, 4), (2, 3, 2), (2, 2, 1), (1, 1, 0), True),
]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("shape, kernel, stride, padding, ceil", SLIDES)
@pytest.mark.parametrize("inclusive, divisor", [(True, 0), (False, 0), (True, 5)])
def test_averages_of_windows(npu, shape, kernel, stride, padding, ceil, inclusive, divisor, dtype):
    a, x = draw("average", shape, dtype)

    def forward(v):
        return pool(v, kernel, stride, padding, ceil, average(inclusive, divisor))

    y = forward(x)
    more = [ceil, inclusive, divisor, *([I8(0)] if len(kernel) == 2 else [])]
    sizes = [Ints(kernel), Ints(stride), Ints(padding)]
    name = f"AvgPool{len(kernel)}d"
    close(npu.run(name, a, *sizes, *more, Out(y.shape, dtype)), y, dtype)
    if dtype == "float32":
        g, d = draw("gradient", y.shape)
        found = npu.run(name + "Backward", g, a, *sizes, *more, Out(shape))
        np.testing.assert_allclose(found, numeric_gradient(forward, x, d), 1e-4, 1e-4)


def test_maxima_of_windows(npu):
    for shape, kernel, stride, padding, ceil in SLIDES:
        a, x = draw("maximum", shape)
        y, at = (
            pool(x, kernel, stride, padding, ceil, np.nanmax),
            places(x, kernel, stride, padding, ceil),
        )
        sizes = [Ints(kernel), Ints(stride), Ints(padding), Ints([1]), ceil]
        name = "MaxPool2dWithIndices" if len(kernel) == 2 else "MaxPool3dWithArgmax"
        out, index = npu.run(name, a, *sizes, Out(y.shape), Out(y.shape, "int32"))
        close(out, y)
        assert (index == at).all()
        g, d = draw("gradient", y.shape)
        close(
            npu.run(name + "Backward", g, a, index, *sizes, Out(shape)),
            back_to_places(d, at, shape, len(kernel)),
        )
        if len(kernel) == 2:  # the same with a mask of bits in the place of indices
            bits = (*shape[:-2], kernel[0] * kernel[1], (-(-y.shape[-2] * y.shape[-1] // 16) + 1) * 32)
            out, mask = npu.run("MaxPool2dWithMask", a, *sizes, Out(y.shape), Out(bits, "int8"))
            close(out, y)
            found = npu.run("MaxPool2dWithMaskBackward", g, a, mask, *sizes, Out(shape))
            close(found, back_to_places(d, at, shape, 2))


@pytest.mark.parametrize(
    "shape, sizes", [((2, 3, 7, 5), (3, 5)), ((3, 4, 6), (5, 2)), ((2, 2, 5, 4, 6), (2, 3, 4))]
)
def test_pooling_to_a_size(npu, shape, sizes):
    a, x = draw("adaptive", shape)
    axes = len(sizes)

    def forward(v, reduce=np.mean):
        result = np.zeros((*shape[: len(shape) - axes], *sizes))
        for place in np.ndindex(sizes):
            cut = tuple(
                slice(i * n // m, -(-(i + 1) * n // m))
                for i, n, m in zip(place, shape[-axes:], sizes, strict=True)
            )
            result[(..., *place)] = reduce(v[(..., *cut)], tuple(range(-axes, 0)))
        return result

    y = forward(x)
    g, d = draw("gradient", y.shape)
    close(npu.run(f"AdaptiveAvgPool{axes}d", a, Ints(sizes), Out(y.shape)), y)
    found = npu.run(f"AdaptiveAvgPool{axes}dBackward", g, a, Out(shape))
    np.testing.assert_allclose(found, numeric_gradient(forward, x, d), 1e-4, 1e-4)
    kind = "int64" if axes == 2 else "int32"
    out, at = npu.run(f"AdaptiveMaxPool{axes}d", a, Ints(sizes), Out(y.shape), Out(y.shape, kind))
    close(out, forward(x, np.max))
    flat = x.reshape(*shape[: len(shape) - axes], -1)
    close(np.take_along_axis(flat, at.reshape(*flat.shape[:-1], -1), -1).ravel(), out.ravel())
    found = npu.run(f"AdaptiveMaxPool{axes}dBackward", g, a, at, Out(shape))
    close(found, back_to_places(d, at, shape, axes))


def test_windows_as_columns(npu):
    shape, kernel, dilation, padding, stride = (2, 3, 5, 6), (2, 3), (2, 1), (1, 2), (1, 2)
    a, x = draw("columns", shape)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (2, 2)])
    rows, columns = (7 - 2 * 1 - 1) // 1 + 1, (10 - 1 * 2 - 1) // 2 + 1
    y = np.zeros((2, 3, 2, 3, rows, columns))
    back = np.zeros_like(padded)
    g, d = draw("gradient", (2, 3 * 6, rows * columns))
    parts = d.reshape(y.shape)
    for i, j in np.ndindex(kernel):
        cut = np.s_[..., 2 * i : 2 * i + rows, j : j + 2 * columns - 1 : 2]
        y[:, :, i, j] = padded[cut]
        back[cut] += parts[:, :, i, j]
    sizes = [Ints(kernel), Ints(dilation), Ints(padding), Ints(stride)]
    close(npu.run("Im2col", a, *sizes, Out(d.shape)), y.reshape(d.shape))
    close(npu.run("Im2colBackward", g, Ints(shape[2:]), *sizes, Out(shape)), back[..., 1:-1, 2:-2])
    with pytest.raises(Refused, match="is DOUBLE"):
        npu.run("Im2col", x, *sizes, Out(d.shape, "float64"))
    with pytest.raises(Refused, match="dilation and stride are positive"):
        npu.run("Im2colBackward", g, Ints(shape[2:]), *sizes[:3], Ints([0, 1]), Out(shape))


# ---- upsampling
def cubic(d):
    d, a = abs(d), -0.75
    if d <= 1:
        return (a + 2) * d**3 - (a + 3) * d**2 + 1
    return a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a if d < 2 else 0.0


def weights(kind, size, out, align, scale):
    """The matrix that upsamples one axis."""
    step = (size - 1) / max(out - 1, 1) if align else 1 / scale if scale else size / out
    at = np.arange(out) * step if align else (np.arange(out) + 0.5) * step - 0.5
    if kind == "Nearest":
        return np.eye(size)[np.minimum(np.arange(out) * size // out, size - 1)]
    if kind == "Cubic":
        matrix = np.zeros((out, size))
        for i, k in itertools.product(range(out), range(-1, 3)):
            tap = int(np.floor(at[i])) + k
            matrix[i, min(max(tap, 0), size - 1)] += cubic(at[i] - tap)
        return matrix
    return np.stack([np.interp(np.clip(at, 0, size - 1), np.arange(size), row) for row in np.eye(size)], 1)


RESIZES = [
    ("Nearest1d", "Nearest1dBackward", 0),
    ("Nearest2d", "Nearest2dBackward", 0),
    ("Nearest3d", "Nearest3dBackward", 3),
    ("Linear1d", "Linear1dBackward", 1),
    ("Bilinear2d", "Bilinear2dBackwardV2", 2),
    ("Bicubic2d", "Bicubic2dBackward", 2),
    ("Trilinear3d", "Trilinear3dBackward", 3),
]


@pytest.mark.parametrize("factor", [0.0, 1.7])
@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("name, backward, scaled", RESIZES)
def test_upsampling(npu, name, backward, scaled, align, factor):
    axes = int(name[-2])
    kind = "Nearest" if "Nearest" in name else "Cubic" if "cubic" in name else "Linear"
    shape, sizes = (2, 3, *(5, 4, 3)[:axes]), [int(n * 1.7) for n in (5, 4, 3)[:axes]]
    a, x = draw("image", shape)
    g, d = draw("gradient", (2, 3, *sizes))
    matrices = [weights(kind, n, m, align, factor) for n, m in zip(shape[2:], sizes, strict=True)]

    def along(v, back):
        for axis, matrix in enumerate(matrices):
            v = np.moveaxis(np.tensordot(matrix.T if back else matrix, v, (1, axis + 2)), 0, axis + 2)
        return v

    corners = [] if kind == "Nearest" else [align]
    out = npu.run(f"Upsample{name}", a, Ints(sizes), *corners, *[factor] * scaled, Out(d.shape))
    close(out, along(x, False))
    found = npu.run(
        f"Upsample{backward}", g, Ints(sizes), Ints(shape), *corners, *[factor] * axes, Out(shape)
    )
    close(found, along(d, True))


# ---- sampling at a grid
def bounded(at, size, padding, align):
    if padding == 2:
        low, high = (0, size - 1) if align else (-0.5, size - 0.5)
        span = high - low
        rest = abs(at - low) % (2 * span)
        at = low + (rest if rest <= span else 2 * span - rest)
    return min(max(at, 0), size - 1) if padding else at


def taps(number, size, mode, padding, align):
    at = (number + 1) / 2 * (size - 1) if align else ((number + 1) * size - 1) / 2
    if mode == 2:
        first = int(np.floor(at)) - 1
        pairs = [(int(bounded(first + k, size, padding, align)), cubic(at - first - k)) for k in range(4)]
    else:
        at = bounded(at, size, padding, align)
        before = int(np.floor(at))
        pairs = (
            [(before, before + 1 - at), (before + 1, at - before)] if mode == 0 else [(int(np.rint(at)), 1.0)]
        )
    return [(index, weight) for index, weight in pairs if 0 <= index < size]


def sample(x, grid, mode, padding, align):
    result = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for where in np.ndindex(grid.shape[:-1]):
        each = [
            taps(number, size, mode, padding, align)
            for number, size in zip(grid[where][::-1], x.shape[2:], strict=True)
        ]
        for pairs in itertools.product(*each):
            index, weight = tuple(i for i, _ in pairs), np.prod([w for _, w in pairs])
            result[(where[0], slice(None), *where[1:])] += weight * x[(where[0], slice(None), *index)]
    return result


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("axes, mode", [(2, 0), (2, 1), (2, 2), (3, 0), (3, 1)])
def test_sampling_at_a_grid(npu, axes, mode, padding, align):
    a, x = draw("image", (2, 2, *(4, 3, 2)[:axes]))
    grid, where = draw("grid", (2, *(2, 3, 2)[:axes], axes), low=-1.6, high=1.6)
    y = sample(x, where, mode, padding, align)
    close(npu.run(f"GridSampler{axes}D", a, grid, mode, padding, align, Out(y.shape)), y)
    g, d = draw("gradient", y.shape)
    dx, dgrid = npu.run(
        f"GridSampler{axes}DBackward",
        g,
        a,
        grid,
        mode,
        padding,
        align,
        Bools([1, 1]),
        Out(a.shape),
        Out(grid.shape),
    )
    close(dx, numeric_gradient(lambda v: sample(v, where, mode, padding, align), x, d), "float16")
    expected = (
        numeric_gradient(lambda v: sample(x, v, mode, padding, align), where, d) if mode != 1 else 0 * where
    )
    close(dgrid, expected, "float16")


# ---- refusals
IMAGE = np.ones((1, 2, 4, 4), np.float32)
HALF, PLACES = Out((1, 2, 2, 2)), Out((1, 2, 2, 2), "int32")
WINDOW = [Ints([2]), Ints([]), Ints([0])]


@pytest.mark.parametrize(
    "name, arguments, reason",
    [
        ("AvgPool2d", [IMAGE, Ints([2]), Ints([2]), Ints([2]), False, True, 0, I8(0), Out((1, 2, 4, 4))], "at most half"),
        ("AvgPool3d", [IMAGE, Ints([5, 1, 1]), Ints([1]), Ints([0]), False, True, 0, Out((1, 1, 4, 4))], "not larger"),
        ("AdaptiveAvgPool2d", [IMAGE.astype(np.float64), Ints([2, 2]), Out((1, 2, 2, 2), "float64")], "is DOUBLE"),
        ("AdaptiveAvgPool3d", [IMAGE, Ints([2, 0, 2]), Out((1, 2, 0, 2))], "the least is 1"),
        ("AdaptiveMaxPool2d", [IMAGE, Ints([2, 2]), Out((1, 2, 2, 2)), Out((1, 2, 2, 2), "int32")], "is INT32"),
        ("AdaptiveMaxPool3d", [IMAGE, Ints([2, 2, 2]), Out((1, 2, 2, 2)), Out((1, 2, 2, 2), "int64")], "is INT64"),
        ("MaxPool2dWithIndices", [IMAGE, *WINDOW, Ints([2]), False, HALF, PLACES], "dilation is 1"),
        ("MaxPool2dWithMask", [IMAGE, *WINDOW, Ints([1]), False, HALF, Out((1, 2, 4, 32), "int8")], "(1, 2, 4, 64)"),
        ("UpsampleNearest2d", [IMAGE, Ints([8]), Out((1, 2, 8, 8))], "it has 2"),
        ("UpsampleBilinear2d", [IMAGE, Ints([8, 8]), False, -1.0, 0.0, Out((1, 2, 8, 8))], "not negative"),
        ("UpsampleBicubic2d", [IMAGE, Ints([8, 8]), False, 0.0, 0.0, Out((1, 2, 8, 9))], "must have (1, 2, 8, 8)"),
        ("GridSampler2D", [IMAGE, np.zeros((1, 2, 2, 2), np.float32), 3, 0, False, Out((1, 2, 2, 2))], "interpolationMode is 3"),
        ("GridSampler3D", [IMAGE[None], IMAGE[None, ..., :3], 2, 0, False, Out((1, 1, 2, 4, 4))], "interpolationMode is 2"),
        ("GridSampler2D", [IMAGE, np.zeros((1, 2, 2, 2)), 0, 0, False, Out((1, 2, 2, 2))], "must be equal"),
    ],
)  # fmt: skip
def test_refusals_of_operators_on_images(npu, name, arguments, reason):
    npu.refuses(name, arguments, reason)
