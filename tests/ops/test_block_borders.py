"""Kernels that work in tiles, blocks or vectors, with sizes around their borders, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import msadapter as torch
import msadapter.nn.functional as F

SHAPES = [(1, 1), (7, 9), (16, 16), (17, 33), (64, 64), (65, 130), (3, 40, 50)]
KINDS = ["bool", "uint8", "int16", "float16", "float32", "float64", "complex64", "complex128"]
LENGTHS = [1, 7, 16, 33, 300, 2049, 70_000]


def values(shape, kind, seed=3):
    numbers = np.random.default_rng(seed).integers(-9, 9, shape)
    return numbers.astype(np.int8).view(np.uint8) if kind == "uint8" else numbers.astype(kind)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
def test_copies_with_turned_dims(shape, kind):
    x = values(shape, kind)
    ours = torch.from_numpy(x)
    last, turned = (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2), ours.transpose(-1, -2)
    np.testing.assert_array_equal(turned.contiguous().numpy(), x.transpose(last))
    np.testing.assert_array_equal(ours.flip(-1).numpy(), x[..., ::-1])
    np.testing.assert_array_equal(ours.flip(list(range(x.ndim))).numpy(), np.flip(x))
    np.testing.assert_array_equal(
        torch.rot90(ours, 3, [-2, -1]).contiguous().numpy(), np.rot90(x, 3, (-2, -1))
    )
    into = torch.zeros(x.transpose(last).shape, dtype=ours.dtype).transpose(-1, -2)
    into.flip(-1).copy_(ours)
    np.testing.assert_array_equal(into.copy_(ours).numpy(), x)
    np.testing.assert_array_equal(
        ours[..., :1].expand(shape).contiguous().numpy(), np.broadcast_to(x[..., :1], shape)
    )
    np.testing.assert_array_equal(torch.full_like(turned, 1).numpy(), np.ones_like(x.transpose(last)))


@pytest.mark.parametrize("length", LENGTHS)
def test_float16_conversions_of_runs(length):
    random = np.random.default_rng(length)
    x = random.integers(0, 2**16, length, dtype=np.uint16).view(np.float16)
    wide = (random.standard_normal(length) * 10.0 ** random.integers(-9, 6, length)).astype(np.float32)
    for step in (1, 3):
        np.testing.assert_array_equal(
            torch.from_numpy(x)[::step].float().numpy(), x[::step].astype(np.float32)
        )
        with np.errstate(over="ignore"):
            expected = wide[::step].astype(np.float16)
        np.testing.assert_array_equal(torch.from_numpy(wide)[::step].half().numpy(), expected)
    np.testing.assert_array_equal(torch.from_numpy(x).abs().numpy(), np.abs(x))
    np.testing.assert_array_equal(torch.from_numpy(x).isinf().numpy(), np.isinf(x))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_limits_by_numbers_and_by_tensors_of_one_element(length, kind):
    x = values((length,), kind)
    if kind != "int64":
        x[::5] = np.nan
    ours = torch.from_numpy(x)
    expected = np.minimum(np.maximum(x, np.asarray(-2, kind)), np.asarray(4, kind))
    limits = torch.tensor([-2], dtype=ours.dtype), torch.tensor(4, dtype=ours.dtype)
    for result in (ours.clamp(-2, 4), ours.clamp(*limits), torch.clamp(ours.clone(), *limits)):
        np.testing.assert_array_equal(result.numpy(), expected)
    assert (ours.clamp(4, -2) == -2).sum() == np.isfinite(x.astype("float64")).sum()
    if kind != "int64":
        assert ours.clamp(float("nan"), 1).isnan().all()


@pytest.mark.parametrize("size", LENGTHS)
@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_complex_sums_are_as_accurate_as_real_ones(size, kind):
    random = np.random.default_rng(size)
    x = (random.standard_normal((2, size)) + 1j * random.standard_normal((2, size))).astype(kind)
    exact, unit = x.astype(np.clongdouble), np.finfo(kind).eps * np.abs(x).sum()
    ours = torch.from_numpy(x)
    for result, expected in (
        (ours.sum(), exact.sum()),
        (ours.sum(1), exact.sum(1)),
        (ours.sum(0), exact.sum(0)),
        (ours[:, ::2].sum(), exact[:, ::2].sum()),
        (ours.t().mean() * x.size, exact.sum()),
    ):
        assert np.abs(result.numpy() - expected).max() <= 2 * unit


@pytest.mark.parametrize(
    "numbers",
    [
        [2**62, -(2**62), 0, 1, -1, 2**63 - 1, -(2**63), 5, 5],
        [2**62 + 5, 2**62 + 3, 2**62 + 9, 2**62 + 3],
        [0, 2**32 - 1, 2**32, 7],
        [-3, 2**32 - 4, 7, -3],
    ],
)
@pytest.mark.parametrize("repeats", [1, 500])
def test_sorted_integers_of_narrow_and_of_wide_ranges(numbers, repeats):
    x = np.random.default_rng(1).permutation(np.array(numbers * repeats, np.int64))
    ours = torch.from_numpy(x)
    for descending in (False, True):
        result, order = torch.sort(ours, stable=True, descending=descending)
        expected = np.argsort(-x.astype(object) if descending else x, kind="stable")
        np.testing.assert_array_equal(order.numpy(), expected)
        np.testing.assert_array_equal(result.numpy(), x[expected])
    assert torch.topk(ours, 2)[0].tolist() == sorted(x.tolist())[:-3:-1]
    found = torch.unique(ours, return_inverse=True, return_counts=True)
    for part, expected in zip(found, np.unique(x, return_inverse=True, return_counts=True), strict=True):
        np.testing.assert_array_equal(part.numpy(), expected)
    runs = torch.unique_consecutive(ours, return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(runs[0][runs[1]].numpy(), x)
    np.testing.assert_array_equal(torch.repeat_interleave(runs[0], runs[2]).numpy(), x)


@pytest.mark.parametrize("kind", ["float32", "float16", "int64"])
@pytest.mark.parametrize("shape", [(1, 5), (3, 7), (4, 300), (9, 131)])
def test_running_extremes(shape, kind):
    x = values(shape, kind)
    if kind != "int64":
        x[0, 3] = x[-1, 1] = np.nan
    for dim in (0, 1):
        for ours, numpy_form in ((torch.cummax, np.maximum), (torch.cummin, np.minimum)):
            top, where = ours(torch.from_numpy(x), dim)
            np.testing.assert_array_equal(top.numpy(), numpy_form.accumulate(x, dim))
            # the last position that has the extreme
            place = np.arange(x.shape[dim]).reshape((-1, 1) if dim == 0 else (1, -1))
            at_extreme = (x == top.numpy()) | (np.isnan(x.astype("float64")))
            last = np.maximum.accumulate(np.where(at_extreme, place, -1), dim)
            np.testing.assert_array_equal(where.numpy(), last)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("edges", [7, [-2.0, -1.5, 0, 0.1, 0.2, 3], [1.0, 1, 1, 2]])
def test_histograms_of_equal_and_of_other_bins(edges, kind):
    x = np.random.default_rng(2).standard_normal(3000).astype(kind)
    x[:8] = [1, 1, 2, 0.1, 3, -2, 0, 5]
    bins = torch.tensor(edges, dtype=getattr(torch, kind)) if isinstance(edges, list) else edges
    counts, found = torch.histogram(torch.from_numpy(x), bins)
    expected, _ = np.histogram(x.astype(np.float64), found.numpy().astype(np.float64))
    np.testing.assert_array_equal(counts.numpy(), expected)
    weighted = torch.histogram(torch.from_numpy(x), bins, weight=torch.ones(3000, dtype=counts.dtype))[0]
    np.testing.assert_array_equal(weighted.numpy(), expected)


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
def test_histograms_of_points(weighted, kind):
    random = np.random.default_rng(4)
    x = random.integers(-30, 30, (700, 3)).astype(kind) / 8  # many points lie at an edge
    x[5, 1] = np.nan
    weights = random.random(700).astype(kind) if weighted else None
    edges = [
        np.array([-2.0, -1.5, 0, 0.125, 3], kind),
        np.linspace(-3, 3, 13, dtype=kind),
        np.array([-1, 2], kind),
    ]
    inside = ~np.isnan(x).any(1)
    expected, _ = np.histogramdd(x[inside], edges, weights=None if weights is None else weights[inside])
    for points, factor in ((x, weights), (np.asfortranarray(x), weights)):
        found, given = torch.histogramdd(
            torch.from_numpy(points),
            [torch.from_numpy(e) for e in edges],
            weight=None if factor is None else torch.from_numpy(factor),
        )
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6)
        assert [e.tolist() for e in given] == [e.tolist() for e in edges]


@pytest.mark.parametrize("size", [(4, 63), (5, 64), (1, 130)])
def test_bilinear_samples_at_pixels_and_outside(size):
    random = np.random.default_rng(4)
    image = torch.from_numpy(random.standard_normal((2, 3, 6, 5)).astype(np.float32))
    image[0, 0, 0, 0] = float("inf")  # a pixel that is not used must not count
    row, column = random.integers(-1, 7, (2, *size)), random.integers(-1, 6, (2, *size))
    grid = torch.from_numpy(np.stack([column / 2 - 1, row / 2.5 - 1], -1).astype(np.float32))
    result = F.grid_sample(image, grid, align_corners=True).numpy()
    within = (row >= 0) & (row < 6) & (column >= 0) & (column < 5)
    for n in range(2):
        pixels = image.numpy()[n][:, row[n].clip(0, 5), column[n].clip(0, 4)]
        usable = within[n] & ((row[n] > 1) | (column[n] > 1))  # beside the infinite pixel, 0 * inf is NaN
        np.testing.assert_allclose(result[n][:, usable], pixels[:, usable], atol=2e-6)
        outside = (row[n] < 0) | (row[n] >= 6) | (column[n] < 0) | (column[n] >= 5)
        np.testing.assert_allclose(result[n][1:, outside], 0, atol=2e-5)


@pytest.mark.parametrize("mode", ["sum", "mean"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_bags_of_rows(mode, kind):
    random = np.random.default_rng(6)
    table, indices = random.standard_normal((9, 33)).astype(kind), random.integers(0, 9, 50)
    starts = np.array([0, 0, 3, 20, 20, 49, 50])
    ends = [*starts[1:], 50]
    parts = [table[indices[a:b]] for a, b in zip(starts, ends, strict=True)]
    sizes = [max(len(part), 1) if mode == "mean" else 1 for part in parts]
    expected = np.stack([part.sum(0) / size for part, size in zip(parts, sizes, strict=True)])
    for weight in (torch.from_numpy(table), torch.from_numpy(np.ascontiguousarray(table.T)).t()):
        for whole in (torch.int64, torch.int32):
            given = torch.from_numpy(indices).to(whole), weight, torch.from_numpy(starts).to(whole)
            result = F.embedding_bag(*given, mode=mode)
            np.testing.assert_allclose(result.numpy(), expected, rtol=2e-6, atol=1e-6)
    rows = torch.from_numpy(indices[:48].reshape(12, 4))
    even = F.embedding_bag(rows, torch.from_numpy(table), mode=mode).numpy()
    mean = table[indices[:48].reshape(12, 4)].mean(1)
    np.testing.assert_allclose(even, mean if mode == "mean" else 4 * mean, rtol=2e-6, atol=1e-6)

    weight = torch.from_numpy(table.astype(np.float64)).requires_grad_()
    bags = lambda w: F.embedding_bag(torch.from_numpy(indices), w, torch.from_numpy(starts), mode=mode)  # noqa: E731
    assert torch.autograd.gradcheck(bags, weight)
    assert torch.autograd.gradgradcheck(bags, weight)
    several = torch.stack([weight.detach(), 2 * weight.detach()])
    torch.testing.assert_close(torch.func.vmap(bags)(several), torch.stack([bags(w) for w in several]))
    for wrong in (-1, 9):
        with pytest.raises(RuntimeError, match=f"but found idx to be {wrong}"):
            F.embedding_bag(torch.tensor([0, wrong]), weight, torch.tensor([0]), mode=mode)
    with pytest.raises(RuntimeError, match="offset 7 is outside of the 2 indices"):
        F.embedding_bag(torch.tensor([0, 1]), weight, torch.tensor([0, 7, 2]), mode=mode)


@pytest.mark.parametrize("length", [9, 64, 130])
def test_selections_along_the_last_dim(length):
    x = np.random.default_rng(8).standard_normal((20, length)).astype(np.float32)
    runs = np.r_[2:0:-1, 0:length, length - 2 : length - 4 : -1]
    for index in (runs, np.random.default_rng(1).integers(0, length, 70), np.array([length - 1])):
        ours = torch.from_numpy(x).index_select(1, torch.from_numpy(index.astype(np.int64)))
        np.testing.assert_array_equal(ours.numpy(), x[:, index])
    padded = F.pad(torch.from_numpy(x), (2, 2), "reflect").numpy()
    np.testing.assert_array_equal(padded, np.pad(x, ((0, 0), (2, 2)), "reflect"))


@pytest.mark.parametrize("kind", ["uint8", "float16", "float32", "int64", "float64"])
@pytest.mark.parametrize("length", LENGTHS)
def test_running_extrema(length, kind):
    random = np.random.default_rng(length)
    for x in (random.integers(0, 99, (3, length)), np.arange(3 * length).reshape(3, length) % 251):
        x = x.astype(kind)
        for name, pick in (("cummax", np.maximum), ("cummin", np.minimum)):
            found, places = getattr(torch.from_numpy(x), name)(1)
            expected = pick.accumulate(x, 1)
            np.testing.assert_array_equal(found.numpy(), expected)
            # the last of equal elements so far
            own = np.where(x == expected, np.arange(length), 0)
            np.testing.assert_array_equal(places.numpy(), np.maximum.accumulate(own, 1))


def test_running_extrema_keep_the_last_nan():
    for length in (5, 32, 33, 100):
        x = np.random.default_rng(1).standard_normal((1, length)).astype(np.float32)
        x[0, [2, 4]] = np.nan
        found, places = torch.from_numpy(x).cummax(1)
        assert np.isnan(found.numpy()[0, 2:]).all() and not np.isnan(found.numpy()[0, :2]).any()
        assert places[0, 2:].tolist() == [2, 2] + [4] * (length - 4)


@pytest.mark.parametrize("kind", ["bool", "float16", "float32", "complex64", "complex128"])
@pytest.mark.parametrize("times", [1, 2, 3, 4, 5, 63, 64])
def test_repeated_elements(times, kind):
    for shape in ((40,), (7, 9), (3, 4, 5)):
        x = values(shape, kind)
        for turned in (False, True):
            ours, given = torch.from_numpy(x), x
            if turned:
                ours, given = ours.transpose(0, -1), np.swapaxes(x, 0, -1)
            for dim in (*range(x.ndim), None):
                np.testing.assert_array_equal(
                    ours.repeat_interleave(times, dim).numpy(), np.repeat(given, times, dim)
                )


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int16", "int64"])
@pytest.mark.parametrize("length", [1, 2, 5, 64, 65, 300, 5000])
def test_the_largest_elements_are_in_order(length, kind):
    """Among elements that all differ, whose order the algorithm cannot change."""
    length = min(length, 4000) if kind == "float16" else length  # so that the numbers are exact
    numbers = np.tile(np.arange(length) - length // 2, (4, 1))
    x = np.random.default_rng(length).permuted(numbers, axis=1).astype(kind)
    for k in {1, min(2, length), min(10, length), length // 2, length} - {0}:
        for largest in (True, False):
            found, places = torch.from_numpy(x).topk(k, -1, largest)
            order = np.sort(x, 1)[:, ::-1] if largest else np.sort(x, 1)
            np.testing.assert_array_equal(found.numpy(), order[:, :k])
            np.testing.assert_array_equal(np.take_along_axis(x, places.numpy(), 1), order[:, :k])


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_windows_of_a_signal(step, kind):
    for length in (7, 300, 1000):
        for kernel, pad, dilation in ((3, 0, 1), (3, 1, 1), (2, 1, 2), (4, 2, 3)):
            reach = (kernel - 1) * dilation + 1
            if length + 2 * pad < reach:
                continue
            x = np.random.default_rng(length).integers(-50, 50, (2, 3, length)).astype(kind)
            if kind != "int64":
                x[0, 0, length // 2] = np.nan
            found, places = F.max_pool1d(
                torch.from_numpy(x), kernel, step, pad, dilation, return_indices=True
            )
            alone = F.max_pool1d(torch.from_numpy(x), kernel, step, pad, dilation)
            np.testing.assert_array_equal(alone.numpy(), found.numpy())
            for at in range(found.shape[-1]):
                taps = np.arange(kernel) * dilation + at * step - pad
                taps = taps[(taps >= 0) & (taps < length)]
                window = x[..., taps]
                np.testing.assert_array_equal(found[..., at].numpy(), window.max(-1))
                nan = np.isnan(window)
                last_nan = window.shape[-1] - 1 - nan[..., ::-1].argmax(-1)
                largest = np.where(nan.any(-1), last_nan, window.argmax(-1))
                np.testing.assert_array_equal(places[..., at].numpy(), taps[largest])
