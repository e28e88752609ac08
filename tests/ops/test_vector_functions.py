"""The accuracy of the elementary functions, whose polynomials are in vec_math.h and vec_functions.h.

The reference is numpy with twice the digits or more. Arguments are drawn from all bit patterns, so that every exponent
occurs, and from the ranges in which the functions change.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.special

import msadapter as torch
import msadapter.nn.functional as F

WIDER = {np.float32: np.float64, np.float64: np.longdouble}
INTEGERS = {np.float32: np.uint32, np.float64: np.uint64}
ARC = {
    name: getattr(np, name.replace("a", "arc", 1))
    for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")
}
UNARY = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
] + ["sinh", "cosh", "tanh", "asinh", "acosh", "atanh"]


def drawn(kind, count=200_000):
    random = np.random.default_rng(7)
    bits = INTEGERS[kind]
    everywhere = random.integers(0, np.iinfo(bits).max, count, dtype=bits, endpoint=True).view(kind)
    special = [
        0.0,
        -0.0,
        np.inf,
        -np.inf,
        np.nan,
        1,
        -1,
        0.5,
        -0.5,
        2,
        1e-30,
        np.finfo(kind).tiny,
        np.finfo(kind).max,
    ]
    denormal = np.array([1, 2, 5, 12345], bits).view(kind)
    # the neighbours of multiples of pi/2 are the hardest arguments of sin, cos and tan
    turns = (np.arange(1, 13000) * np.longdouble(np.pi) / 2).astype(kind)
    parts = [random.uniform(-size, size, count).astype(kind) for size in (1.5, 30, 800)]
    return np.concatenate([everywhere, *parts, np.array(special, kind), denormal, -denormal, turns, -turns])


def units_off(result, exact):
    """How far a result is from the exact one, in units of the last place. Different signs or infinities are endless."""
    rounded = exact.astype(result.dtype)
    unit = np.spacing(np.abs(rounded)).astype(exact.dtype)
    with np.errstate(all="ignore"):
        off = np.abs(result - exact) / unit
    same = (result == rounded) & (np.signbit(result) == np.signbit(rounded))
    off = np.where(same | (np.isnan(result) & np.isnan(rounded)), 0, off)
    return np.where(
        np.isnan(off) | (np.signbit(result) != np.signbit(rounded)) & ~np.isnan(rounded), np.inf, off
    )


def assert_close(result, exact, arguments, units):
    off = units_off(result, exact)
    worst = np.argmax(off)
    assert off[worst] <= units, (
        f"{off[worst]} units at {[repr(a[worst]) for a in arguments]}: {result[worst]!r}"
    )


@pytest.mark.parametrize("kind", WIDER)
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_are_within_two_units(name, kind):
    x = drawn(kind)
    with np.errstate(all="ignore"):
        exact = ARC.get(name, getattr(np, name, None))(x.astype(WIDER[kind]))
    if name in ("sin", "cos", "tan") and kind is np.float64:  # the reference itself is exact for these alone
        x, exact = x[~(np.abs(x) > 1e5)], exact[~(np.abs(x) > 1e5)]
    assert_close(getattr(torch, name)(torch.from_numpy(x)).numpy(), exact, [x], 1.9)


SPECIAL = {
    "i0": "i0",
    "i0e": "i0e",
    "i1": "i1",
    "i1e": "i1e",
    "modified_bessel_k0": "k0",
    "modified_bessel_k1": "k1",
    "scaled_modified_bessel_k0": "k0e",
    "scaled_modified_bessel_k1": "k1e",
    "ndtr": "ndtr",
    "gammaln": "gammaln",
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_of_float32_are_within_two_units_or_three(name):
    random = np.random.default_rng(9)
    x = np.concatenate(
        [
            drawn(np.float32),
            *(random.uniform(low, low + 1, 3000) for low in range(-15, 100)),
            [1, 2, np.nextafter(np.float32(1), 2), np.nextafter(np.float32(2), 1), 8, 2.0000002, 7.9999995],
        ]
    ).astype(np.float32)
    if name == "gammaln":  # below 0, the reference loses the digits of its own zeros
        x = x[~(x < 0)]
    if name in ("i0", "i1"):  # the reference is NaN at infinity
        x = x[~np.isinf(x)]
    with np.errstate(all="ignore"):
        exact = getattr(scipy.special, SPECIAL[name])(x.astype(np.float64))
    if name.startswith(("modified", "scaled")):  # scipy has -0 for negative zeros' infinities
        exact = np.where(x == 0, np.inf, exact)
    result = getattr(torch.special, name)(torch.from_numpy(x)).numpy()
    assert_close(result, exact, [x], 3 if name == "ndtr" else 1.9)


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("length", [1, 7, 31, 300])
def test_the_rest_of_a_vector_and_strides_give_the_same(name, length):
    x = torch.from_numpy(np.random.default_rng(3).uniform(-3, 3, 4 * length).astype(np.float32))
    whole = getattr(torch, name)(x)
    torch.testing.assert_close(
        getattr(torch, name)(x[:length]), whole[:length], rtol=3e-7, atol=0, equal_nan=True
    )
    torch.testing.assert_close(getattr(torch, name)(x[::4]), whole[::4], rtol=3e-7, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", UNARY)
def test_16_bit_numbers_are_computed_in_float32(name, dtype):
    x = torch.from_numpy(np.arange(2**16, dtype=np.uint16).view(np.int16)).view(dtype)
    expected = getattr(torch, name)(x.float()).to(dtype)
    torch.testing.assert_close(getattr(torch, name)(x), expected, rtol=0, atol=0, equal_nan=True)


BINARY = {
    "fmod": np.fmod,
    "remainder": lambda x, y: _sign_of_divisor(np.fmod(x, y), y),
    "nextafter": None,
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "pow": np.power,
    "xlogy": lambda x, y: np.where(np.isnan(y), y, np.where(x == 0, 0, x * np.log(y))),
    "xlog1py": lambda x, y: np.where(np.isnan(y), y, np.where(x == 0, 0, x * np.log1p(y))),
}


def _sign_of_divisor(rest, y):
    return np.where((rest != 0) & ((rest < 0) != (y < 0)), rest + y, rest)


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_are_within_three_units(name):
    random = np.random.default_rng(5)
    x, y = drawn(np.float32), random.permutation(drawn(np.float32))
    special = np.array(
        [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e30, 16777215], np.float32
    )
    x, y = np.concatenate([x, np.repeat(special, 15)]), np.concatenate([y, np.tile(special, 15)])
    with np.errstate(all="ignore"):
        if name == "nextafter":
            exact = np.nextafter(x, y).astype(np.float64)
        else:
            exact = BINARY[name](x.astype(np.float64), y.astype(np.float64))
    if name.startswith("xlog"):
        exact = np.where((x == 0) & ~np.isnan(y), np.float64(0), exact)
    result = getattr(torch.special if name == "xlog1py" else torch, name)(
        torch.from_numpy(x), torch.from_numpy(y)
    ).numpy()
    assert_close(result, exact, [x, y], 3)


def stable_softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


ACTIVATIONS = {
    "softplus": (F.softplus, lambda x: np.where(x > 20, x, stable_softplus(x))),
    "mish": (F.mish, lambda x: x * np.tanh(stable_softplus(x))),
    "elu": (F.elu, lambda x: np.where(x < 0, np.expm1(x), x)),
    "celu": (lambda x: F.celu(x, 1.5), lambda x: np.where(x < 0, 1.5 * np.expm1(x / 1.5), x)),
    "selu": (
        F.selu,
        lambda x: np.float64(1.0507009873554804934) * np.where(x < 0, 1.6732632423543772848 * np.expm1(x), x),
    ),
    "logsigmoid": (F.logsigmoid, lambda x: -stable_softplus(-x)),
    "sinc": (torch.sinc, np.sinc),
    "logaddexp": (lambda x: torch.logaddexp(x, torch.tensor(0.25)), lambda x: np.logaddexp(x, 0.25)),
    "logaddexp2": (lambda x: torch.logaddexp2(x, torch.tensor(0.25)), lambda x: np.logaddexp2(x, 0.25)),
}


def finite(count=100_000):
    random = np.random.default_rng(11)
    return np.concatenate([random.uniform(-size, size, count) for size in (0.01, 3, 85)]).astype(np.float32)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_functions(name):
    ours, exact = ACTIVATIONS[name]
    x = finite()
    expected = exact(x.astype(np.float64))
    # sums of terms that cancel, as log(e^x + e^0.25) near 0, and sin(pi x), whose argument is rounded as in PyTorch,
    # have the accuracy of what goes into them
    np.testing.assert_allclose(
        ours(torch.from_numpy(x)).numpy(),
        expected,
        rtol=6e-7,
        atol=2e-7 if "add" in name or name == "sinc" else 1e-35,
    )


@pytest.mark.parametrize("name", [n for n in ACTIVATIONS if n != "sinc"])
def test_gradients_of_activation_functions(name):
    ours, exact = ACTIVATIONS[name]
    x = torch.from_numpy(finite()).requires_grad_()
    (gradient,) = torch.autograd.grad(ours(x).sum(), x)
    center, step = x.detach().numpy().astype(np.float64), 1e-5
    expected = (exact(center + step) - exact(center - step)) / (2 * step)
    # the difference quotient is wrong where the function has a corner (at 0 and at softplus's threshold)
    away = (np.abs(center) > 2 * step) & (np.abs(center - 20) > 2 * step)
    np.testing.assert_allclose(gradient.numpy()[away], expected[away], rtol=2e-6, atol=3e-7)


def test_large_angles_among_small_ones_are_exact():
    x = np.linspace(-10, 10, 5000, dtype=np.float32)
    x[::97] = np.float32(3e5) * np.arange(1, x[::97].size + 1)
    for name in ("sin", "cos", "tan"):
        assert_close(
            getattr(torch, name)(torch.from_numpy(x)).numpy(),
            getattr(np, name)(x.astype(np.float64)),
            [x],
            1.9,
        )
    in_place = torch.from_numpy(x.copy())
    assert torch.equal(in_place.sin_(), torch.from_numpy(x).sin())


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_remainders_are_exact_and_floor_division_is_that_of_python(kind):
    random = np.random.default_rng(2)
    x = np.concatenate([random.uniform(-size, size, 20_000) for size in (3, 1e4, 1e9)]).astype(kind)
    y = random.permutation(
        np.concatenate([random.uniform(-size, size, 30_000) for size in (0.7, 30)])
    ).astype(kind)
    x[:20_000] = (y[:20_000] * random.integers(-9, 9, 20_000)).astype(
        kind
    )  # quotients at or beside whole numbers
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    np.testing.assert_array_equal(torch.fmod(a, b).numpy(), np.fmod(x, y))
    np.testing.assert_array_equal(torch.remainder(a, b).numpy(), np.remainder(x, y))
    np.testing.assert_array_equal(torch.floor_divide(a, b).numpy(), np.floor_divide(x, y))


def test_erf_of_double_is_that_of_the_c_library():
    x = np.concatenate(
        [drawn(np.float64, 50_000), np.linspace(-7, 7, 100_001), [6.0, -6.0, 5.9999, 0.99999999]]
    )
    exact = np.array([math.erf(v) for v in x])  # rounded itself, so it may be half a unit off
    assert_close(torch.erf(torch.from_numpy(x)).numpy(), exact, [x], 2)
    near = x[np.abs(x) < 40]
    gelu = torch.nn.functional.gelu(torch.from_numpy(near)).numpy()
    expected = np.array([0.5 * v * (1 + math.erf(v * math.sqrt(0.5))) for v in near])
    np.testing.assert_allclose(gelu, expected, rtol=1e-14, atol=2e-15)


def test_error_functions():
    random = np.random.default_rng(4)
    x = np.concatenate([random.uniform(-size, size, 50_000) for size in (0.1, 1, 4, 10.1)]).astype(np.float32)
    exact = torch.erfc(torch.from_numpy(x.astype(np.float64))).numpy()
    assert_close(torch.erfc(torch.from_numpy(x)).numpy(), exact, [x], 2.5)
    p = np.concatenate([random.uniform(-1, 1, 50_000), 1 - 10.0 ** random.uniform(-7, 0, 50_000)]).astype(
        np.float32
    )
    p = p[np.abs(p) < 1]
    exact = torch.erfinv(torch.from_numpy(p.astype(np.float64))).numpy()
    assert_close(torch.erfinv(torch.from_numpy(p)).numpy(), exact, [p], 5)
    p = np.concatenate([random.uniform(0, 1, 50_000), 10.0 ** random.uniform(-37, 0, 50_000)]).astype(
        np.float32
    )
    p = p[(p > 0) & (p < 1)]
    exact = torch.special.ndtri(torch.from_numpy(p.astype(np.float64))).numpy()
    assert_close(torch.special.ndtri(torch.from_numpy(p)).numpy(), exact, [p], 8)
    edges = torch.tensor([-1.0, 1.0, 2.0, -2.0, float("nan"), 0.0, -0.0])
    torch.testing.assert_close(
        torch.erfinv(edges), torch.erfinv(edges.double()).float(), equal_nan=True, rtol=0, atol=0
    )


def test_powers_of_float64_are_within_two_units():
    random = np.random.default_rng(6)
    x, y = drawn(np.float64), random.permutation(drawn(np.float64))
    special = np.array(
        [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, np.inf, -np.inf, np.nan, 1e300, 5e-324, 2**53 - 1, 2**53]
    )
    # results in the whole range: the logarithm of the result is up to 745
    base = np.exp(random.uniform(-700, 700, 100_000))
    near_one = 1 + random.uniform(-1, 1, 100_000) * 2.0 ** random.integers(-50, -1, 100_000)
    exponents = random.uniform(-745, 710, 200_000) / np.log(np.concatenate([base, near_one]))
    x = np.concatenate([x, np.repeat(special, special.size), base, near_one])
    y = np.concatenate([y, np.tile(special, special.size), exponents])
    with np.errstate(all="ignore"):
        exact = np.power(x.astype(np.longdouble), y.astype(np.longdouble))
    result = torch.pow(torch.from_numpy(x), torch.from_numpy(y)).numpy()
    assert_close(result, exact, [x, y], 1.5)
    some = torch.from_numpy(x[:500])
    np.testing.assert_array_equal(torch.float_power(some, 2.5).numpy(), torch.pow(some, 2.5).numpy())


def test_gelu_of_float32_is_exact_in_both_tails():
    random = np.random.default_rng(8)
    x = np.concatenate([random.uniform(-size, size, 50_000) for size in (0.1, 3, 9, 200)]).astype(np.float32)
    result = F.gelu(torch.from_numpy(x)).numpy().astype(np.float64)
    wide = x.astype(np.float64)
    probability = scipy.special.ndtr(wide)
    error = np.abs(result - wide * probability)
    assert (error <= 2.5e-7 * np.abs(wide) + 1e-38).all()
    near = np.abs(wide) <= 3
    assert (error[near] <= 1.1e-6 * np.abs(wide * probability)[near]).all()
    assert (result[wide <= -6] == 0).all()
    edges = F.gelu(torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0])).numpy()
    np.testing.assert_array_equal(edges, [math.inf, math.nan, math.nan, 0.0, -0.0])
    np.testing.assert_array_equal(np.signbit(edges[3:]), [False, True])


@pytest.mark.parametrize(
    ("name", "low", "high", "units"),
    [("erfcx", -9.3, 30, 1), ("erfcx", 0, 1e6, 1), ("log_ndtr", -200, 12, 1), ("entr", 0, 40, 3)],
)
def test_special_functions_of_float32_have_its_digits(name, low, high, units):
    x = np.random.default_rng(9).uniform(low, high, 100_000).astype(np.float32)
    exact = getattr(scipy.special, name)(x.astype(np.float64))
    large = np.abs(exact) > 1e-37  # exact to the unit, where the result is a normal number
    result = getattr(torch.special, name)(torch.from_numpy(x)).numpy()
    assert_close(result[large], exact[large], [x[large]], units)
    edges = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e38, -1e38, 1e-45, -1e-45], np.float32)
    with np.errstate(all="ignore"):
        expected = getattr(scipy.special, name)(edges.astype(np.float64)).astype(np.float32)
    result = getattr(torch.special, name)(torch.from_numpy(edges)).numpy()
    np.testing.assert_allclose(result, expected, rtol=3e-7, atol=1e-45)
