"""Simulated operators with masks, unique slices, decompositions and complex numbers against numpy."""

import numpy as np
import pytest

from tests.simulator.device import I32, TYPES, Bf16, InPlace, Ints, List, Out, Refused, Scalar
from tests.simulator.test_operators import close, draw


# ---- masks among the indices
def test_masks_among_the_indices(npu):
    a, x = draw("masked", (3, 4, 5))
    two, one = x[..., 0] > 0, np.array([True, False, True, True])
    assert 0 < two.sum() < 12
    close(npu.run("Index", a, List([two]), Out((two.sum(), 5))), x[two])
    close(npu.run("Index", a, List([None, one]), Out((3, 3, 5))), x[:, one])
    rows = np.array([0, 2, 1])
    close(npu.run("Index", a, List([rows, one]), Out((3, 5))), x[rows, one])
    close(npu.run("Index", a, List([one[:3], None, np.array([1, 4])]), Out((2, 4))), x[one[:3], :, [1, 4]])


def test_writing_where_a_mask_is_true(npu):
    a, x = draw("written", (3, 4, 5))
    mask = x[..., 0] > 0
    (v, w), expected = draw("values", (5,)), x.copy()
    expected[mask] += w
    close(npu.run("IndexPutImpl", InPlace(a.copy()), List([mask]), v, True, False), expected)
    expected[mask] = 7
    close(
        npu.run("IndexPutImpl", InPlace(a.copy()), List([mask]), np.float32([7]), False, False)[mask],
        expected[mask],
    )


def test_refusals_of_indices(npu):
    a = np.ones((3, 4), np.float32)
    for name, arguments, reason in [
        ("Index", [a, List([np.ones(4, bool)]), Out((4, 4))], "mask of shape"),
        ("Index", [a, List([np.ones((3, 4), bool), np.zeros(2, np.int64)]), Out((2,))], "not more indices"),
        ("Index", [a, List([np.zeros(2, np.int64)]), Out((2, 3))], "must have (2, 4)"),
        ("Index", [a, List([np.zeros(2, np.int64), np.zeros(3, np.int64)]), Out((2,))], "do not broadcast"),
        (
            "IndexPutImpl",
            [InPlace(a), List([np.zeros(2, np.int64)]), np.ones(3, np.float32), False, False],
            "do not",
        ),
    ]:
        with pytest.raises(Refused) as error:
            npu.run(name, *arguments)
        assert error.value.status == 161002 and reason in error.value.text, error.value


def test_places_of_what_is_not_zero(npu):
    a = np.float32([[0, 2, 0], [3, 0, -1]])
    assert npu.run("Nonzero", a, Out((6, 2), "int64")).tolist() == np.argwhere(a).tolist()
    assert npu.run("NonzeroV2", a, Out((2, 6), "int64")).tolist() == np.argwhere(a).T.tolist()
    assert npu.run("NonzeroV2", np.array(4, np.float32), Out((0, 1), "int64")).shape == (0, 1)
    with pytest.raises(Refused, match="is INT32"):
        npu.run("NonzeroV2", a, Out((2, 6), "int32"))


def test_repeats_that_do_not_fit_are_refused_when_planned(npu):
    a = np.float32([[1, 2], [3, 4]])
    repeats = np.array([2, 1])
    found = npu.run("RepeatInterleaveWithDim", a, repeats, 1, 3, Out((2, 3)))
    assert found.tolist() == np.repeat(a, repeats, 1).tolist()
    for arguments, reason in [
        ([a, np.array([1, 1, 1]), 1, 3, Out((2, 3))], "one for each"),
        ([a, repeats, 1, 3, Out((2, 4))], "must have"),
    ]:
        with pytest.raises(Refused, match=reason) as error:
            npu.run("RepeatInterleaveWithDim", *arguments)
        assert error.value.status == 161002


# ---- unique slices
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_unique_slices(npu, axis, dtype):
    a = np.random.default_rng(3).integers(0, 2, (5, 4, 2)).astype(dtype)
    a[3], a[:, 2] = a[1], a[:, 1]
    size = a.shape[axis]
    outs = [Out(a.shape, dtype), Out((size,), "int64"), Out((size,), "int64")]
    values, inverse, counts = npu.run("UniqueDim", a, True, True, axis, *outs)
    expected = np.unique(a, return_inverse=True, return_counts=True, axis=axis)
    for found, wanted in zip((values, inverse, counts), expected, strict=True):
        assert found.tolist() == wanted.reshape(found.shape).tolist()


def test_consecutive_slices(npu):
    a = np.int64([[1, 2], [1, 2], [3, 4], [1, 2], [1, 2]])
    outs = [Out(a.shape, "int64"), Out((5,), "int64"), Out((5,), "int64")]
    values, inverse, counts = npu.run("UniqueConsecutive", a, True, True, 0, *outs)
    assert values.tolist() == [[1, 2], [3, 4], [1, 2]]
    assert inverse.tolist() == [0, 0, 1, 2, 2] and counts.tolist() == [2, 1, 2]
    with pytest.raises(Refused, match="no axis 2"):
        npu.run("UniqueConsecutive", a, True, True, 2, *outs)
    with pytest.raises(Refused, match="is INT32"):
        npu.run("UniqueDim", a, True, True, 0, outs[0], Out((5,), "int32"), outs[2])


# ---- decompositions
@pytest.mark.parametrize("shape", [(5, 3), (2, 3, 3), (3, 6)])
def test_orthogonal_and_triangular_factors(npu, shape):
    a, x = draw("factors", shape)
    for mode, name in enumerate(["reduced", "complete", "r"]):
        found = np.linalg.qr(x, name)
        q, r = (np.zeros(0), found) if name == "r" else found
        factors = npu.run("LinalgQr", a, mode, Out(q.shape), Out(r.shape))
        np.testing.assert_allclose(factors[0], q, 1e-5, 1e-5)
        np.testing.assert_allclose(factors[1], r, 1e-5, 1e-5)
    for arguments, reason in [
        ([Bf16.of(x), 0, Out(shape, "bfloat16"), Out(shape, "bfloat16")], "is BFLOAT16"),
        ([a, 3, Out(shape), Out(shape)], "mode is"),
        ([a, 1, Out(shape), Out((*shape, 1))], "must have"),
    ]:
        with pytest.raises(Refused, match=reason):
            npu.run("LinalgQr", *arguments)


# ---- complex numbers: converted and moved, not computed with
REAL = np.float32([0, 1.5, -2])
COMPLEX = np.complex64([0, 1.5 + 2j, -2j])


@pytest.mark.parametrize("wide", ["complex64", "complex128"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "bool"])
def test_conversions_of_complex_numbers(npu, dtype, wide):
    real, number = REAL.astype(dtype), COMPLEX.astype(wide)
    expected = number != 0 if dtype == "bool" else number.real.astype(dtype)
    assert npu.run("Cast", real, I32(TYPES[wide]), Out((3,), wide)).tolist() == real.astype(wide).tolist()
    assert npu.run("Cast", number, I32(TYPES[dtype]), Out((3,), dtype)).tolist() == expected.tolist()
    assert npu.run("InplaceCopy", InPlace(number.copy()), real).tolist() == real.astype(wide).tolist()
    assert (
        npu.run("InplaceCopy", InPlace(real.copy()), number[1:2].copy()).tolist()
        == [expected.tolist()[1]] * 3
    )
    other = "complex64" if wide == "complex128" else "complex128"
    assert npu.run("Cast", number[::2], I32(TYPES[other]), Out((2,), other)).tolist() == number[::2].tolist()


def test_complex_numbers_are_moved(npu):
    a = (COMPLEX[:, None] * np.complex64([1, 1j])).astype(np.complex64)
    assert npu.run("Permute", a, Ints([1, 0]), Out((2, 3), "complex64")).tolist() == a.T.tolist()
    assert (
        npu.run("Cat", List([a, a]), 0, Out((6, 2), "complex64")).tolist() == np.concatenate([a, a]).tolist()
    )
    assert npu.run("InplaceZero", InPlace(a.copy())).tolist() == np.zeros_like(a).tolist()


def test_what_is_not_simulated_for_complex_numbers_is_refused_when_planned(npu):
    """A failure of the task would stop the device: later calls would fail too."""
    a = np.zeros((3, 2), np.complex64)
    for name, arguments in [
        ("InplaceFillScalar", [InPlace(a), Scalar(1)]),
        ("Repeat", [a, Ints([2, 1]), Out((6, 2), "complex64")]),
        ("SWhere", [np.ones((3, 2), bool), a, a, Out((3, 2), "complex64")]),
        ("ConstantPadNd", [a, Ints([1, 0]), Scalar(0), Out((3, 3), "complex64")]),
        ("InplaceCopy", [InPlace(np.zeros((3, 4), np.complex64)[:, ::2]), a]),
    ]:
        with pytest.raises(Refused) as error:
            npu.run(name, *arguments)
        assert error.value.status == 161002, error.value
    close(npu.run("Abs", REAL, Out((3,))), np.abs(REAL))
