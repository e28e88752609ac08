"""Comparison of tensors in tests."""

import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from .. import ops
from .._serialization.names import dtype_name
from .._values.dtype import complex128, float64, int64
from .._values.layout import LAYOUTS
from ..tensor import Tensor
from ..tensor import _tensor as factory

__all__ = ["assert_allclose", "assert_close"]

_STRIDED = LAYOUTS["strided"]
_TOLERANCES = {
    "float16": (1e-3, 1e-5),
    "bfloat16": (1.6e-2, 1e-5),
    "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7),
    "complex32": (1e-3, 1e-5),
    "complex64": (1.3e-6, 1e-5),
    "complex128": (1e-7, 1e-7),
}


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    This also holds for tensors in sequences and mappings. The tolerances depend on the dtype, unless both are
    given. msg is a text, or a function of the default text.
    """
    if (rtol is None) != (atol is None):
        raise ValueError(
            f"rtol and atol must both be specified or both be unspecified, but got no "
            f"{'rtol' if rtol is None else 'atol'}."
        )
    options = {
        "rtol": rtol,
        "atol": atol,
        "equal_nan": equal_nan,
        "check_device": check_device,
        "check_dtype": check_dtype,
        "check_layout": check_layout,
        "check_stride": check_stride,
        "allow_subclasses": allow_subclasses,
    }
    try:
        _compare(actual, expected, "", options)
    except AssertionError as err:
        if msg is None:
            raise
        raise AssertionError(msg(str(err)) if callable(msg) else msg) from None


def _compare(actual, expected, where, options):
    at = f"\n\nThe failure occurred for item {where}" if where else ""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            raise AssertionError(
                f"The keys of the mappings do not match:\n"
                "Missing keys in the actual mapping: "
                f"{sorted(set(expected) - set(actual))}\n"
                "Missing keys in the expected mapping: "
                f"{sorted(set(actual) - set(expected))}{at}"
            )
        for key in expected:
            _compare(actual[key], expected[key], f"{where}[{key!r}]", options)
        return
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            raise AssertionError(
                f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{at}"
            )
        for i, (a, e) in enumerate(zip(actual, expected, strict=True)):
            _compare(a, e, f"{where}[{i}]", options)
        return
    if actual is None or expected is None:
        if actual is not expected:
            raise AssertionError(f"None mismatch: {actual} is not {expected}{at}")
        return
    plain = (bool, int, float, complex)
    numbers = isinstance(actual, plain) and isinstance(expected, plain)
    if numbers and options["check_dtype"] and type(actual) is not type(expected):
        raise AssertionError(f"The (d)types do not match: {type(actual)} != {type(expected)}.{at}")
    _check_types(actual, expected, at, options)
    _compare_tensors(_to_tensor(actual, expected), _to_tensor(expected, actual), at, options)


def _check_types(actual, expected, at, options) -> None:
    """TypeError unless both are numbers, or arrays or tensors of related types; of the same type, if subclasses are refused."""
    kinds = type(actual), type(expected)
    numbers = (bool, int, float, complex, np.number)
    if all(issubclass(kind, numbers) for kind in kinds):
        return
    related = issubclass(*kinds) or issubclass(*reversed(kinds))
    if not related or not (options["allow_subclasses"] or kinds[0] is kinds[1]):
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {kinds[0]} and {kinds[1]}.{at}"
        )


def _is_sequence(value) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _to_tensor(value, other):
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, (str, bytes)) or isinstance(other, (str, bytes)):
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(value)} and {type(other)}."
        )
    if isinstance(value, float):
        return factory.tensor(value, dtype=float64)
    if isinstance(value, complex):
        return factory.tensor(value, dtype=complex128)
    return factory.as_tensor(value)


def _compare_tensors(actual, expected, at, options):
    if tuple(actual.shape) != tuple(expected.shape):
        raise AssertionError(
            f"The values for attribute 'shape' do not match: {actual.shape} != {expected.shape}.{at}"
        )
    for name in ("layout", "device", "dtype"):
        a, e = getattr(actual, name), getattr(expected, name)
        if options[f"check_{name}"] and a != e:
            raise AssertionError(f"The values for attribute '{name}' do not match: {a} != {e}.{at}")
    if actual.layout != expected.layout:
        actual, expected = (x if x.layout == _STRIDED else x.to_dense() for x in (actual, expected))
    if actual.layout == _STRIDED:
        if options["check_stride"] and actual.stride() != expected.stride():
            raise AssertionError(
                f"The values for attribute 'stride()' do not match: {actual.stride()} != {expected.stride()}.{at}"
            )
        _compare_values(actual, expected, "", at, options)
        return
    layout = f"{actual.layout}".rpartition("_")[2].upper()
    if actual._nnz() != expected._nnz():
        raise AssertionError(
            f"The number of specified values in sparse {layout} tensors does not match: {actual._nnz()} != "
            f"{expected._nnz()}{at}"
        )
    for (name, a), (_, e) in zip(actual._parts(), expected._parts(), strict=True):
        exact = {} if name == "values" else {"rtol": 0.0, "atol": 0.0}
        _compare_values(a, e, f"Sparse {layout} {name}", at, options | exact)


def _compare_values(actual, expected, what: str, at, options) -> None:
    """Compare the numbers of two dense tensors. The error names them ``what``."""
    rtol, atol = options["rtol"], options["atol"]
    if rtol is None:
        pairs = [_TOLERANCES.get(dtype_name(t.dtype), (0.0, 0.0)) for t in (actual, expected)]
        rtol, atol = max(p[0] for p in pairs), max(p[1] for p in pairs)
    wide = complex128 if actual.dtype.is_complex or expected.dtype.is_complex else float64
    if not (rtol or atol):
        expected = expected.to(actual.device)
        wrong = actual != expected
        if options["equal_nan"]:
            wrong = wrong & ~((actual != actual) & (expected != expected))
        if bool(wrong.any()):
            _fail(actual, expected, wrong, rtol, atol, what, at)
        return
    a, e = actual.to("cpu").to(wide), expected.to("cpu").to(wide)
    wrong = ~ops.isclose(a, e, rtol=rtol, atol=atol, equal_nan=options["equal_nan"])
    if bool(wrong.any()):
        _fail(a, e, wrong, rtol, atol, what, at)


def _fail(actual, expected, wrong, rtol, atol, what, at):
    kind = what or ("Tensor-likes" if actual.dim() else "Scalars")
    exact = not (rtol or atol)
    title = f"{kind} are not {'equal' if exact else 'close'}!\n\n"
    allowed = ["", ""] if exact else [f" (up to {atol} allowed)", f" (up to {rtol} allowed)"]
    if not actual.dim():
        difference = abs(actual.item() - expected.item())
        raise AssertionError(
            f"{title}Expected {expected.item()} but got {actual.item()}.\n"
            f"Absolute difference: {difference}{allowed[0]}\n"
            f"Relative difference: {difference / (abs(expected.item()) or float('nan'))}"
            f"{allowed[1]}{at}"
        )
    if dtype_name(actual.dtype) == "bool":
        actual, expected = actual.to(int64), expected.to(int64)
    count, total = int(wrong.sum()), wrong.numel()
    distance = (actual - expected).abs()
    distance = ops.where(wrong, distance, ops.zeros_like(distance))
    relative = distance / expected.abs()
    relative = ops.where(wrong, relative, ops.zeros_like(relative))
    raise AssertionError(
        f"{title}Mismatched elements: {count} / {total} ({count / total:.1%})\n"
        f"Greatest absolute difference: {distance.max().item()} at index {_place(distance)}{allowed[0]}\n"
        f"Greatest relative difference: {relative.max().item()} at index {_place(relative)}{allowed[1]}{at}"
    )


def _place(values) -> tuple:
    index = int(values.reshape(-1).argmax())
    place = []
    for length in reversed(values.shape):
        place.insert(0, index % length)
        index //= length
    return tuple(place)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg="") -> None:
    """The deprecated name of assert_close. It does not check dtype and device."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future "
        "release. Please use `torch.testing.assert_close()` instead.",
        FutureWarning,
        stacklevel=2,
    )
    actual, expected = (x if isinstance(x, Tensor) else factory.tensor(x) for x in (actual, expected))
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_device=False,
        check_dtype=False,
        msg=msg or None,
    )
