"""Window functions: torch.hann_window and others, and torch.signal.windows."""

from __future__ import annotations

import math

from ._declare import _C, op, raw, t
from .creation import OPTIONS, dtype_of, finish


def _float_type(name: str, dtype):
    dtype = dtype or _C.default_dtype()
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype}")
    return dtype


def _window(name, length, periodic, dtype, shape):
    """Return shape(length, n, dtype): the first points of a symmetric window of n points.

    A periodic window is the symmetric window of length + 1 without its last point.
    """
    dtype = _float_type(name, dtype)
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length == 0:
        return raw.Zeros([0], dtype)
    if length == 1:
        return raw.Ones([1], dtype)
    n = length + 1 if periodic else length
    reduced = dtype.itemsize == 2  # computed in float32, because 16 bits are too few for the angles
    window = shape(length, n, dtype_of("float32") if reduced else dtype)
    return t._to_dtype(window, dtype) if reduced else window


def _ramp(length, dtype, step):
    return t.mul_(raw.Arange(0, length, 1, dtype), step)


def _cosines(weights):
    """Return a function that computes the sum of (-1)^k w_k cos(2 pi k i / (n - 1))."""

    def shape(length, n, dtype):
        turn = _ramp(length, dtype, 2 * math.pi / (n - 1))
        window = t.cos(turn) if len(weights) > 2 else t.cos_(turn)
        t.add_(t.mul_(window, -weights[1]), weights[0])
        for k, w in enumerate(weights[2:], 2):
            t.add_(window, t.mul_(t.cos_(turn * k), w if k % 2 == 0 else -w))
        return window

    return shape


def _bartlett(length, n, dtype):
    window = _ramp(length, dtype, 2 / (n - 1))
    falling = (n - 1) // 2 + 1
    t.add_(t.mul_(t.narrow(window, 0, falling, length - falling), -1), 2)
    return window


def _kaiser(beta):
    def shape(length, n, dtype):
        ratio = t.sub_(_ramp(length, dtype, 2 / (n - 1)), 1)
        rest = t.clamp_(t.add_(t.neg_(t.mul_(ratio, ratio)), 1), min=0)
        bessel = t.special_i0(t.mul_(t.sqrt_(rest), beta))
        return t.div_(bessel, t.special_i0(raw.FillScalar([], beta, dtype)))

    return shape


@op(f"hann_window(int window_length, bool periodic=True, *, {OPTIONS}) -> Tensor", forms="f")
def hann_window(window_length, periodic, *, dtype, layout, device, requires_grad, pin_memory):
    return finish(
        _window("hann_window", window_length, periodic, dtype, _cosines((0.5, 0.5))),
        layout,
        device,
        requires_grad,
    )


@op(
    f"hamming_window(int window_length, bool periodic=True, float alpha=0.54, float beta=0.46, *, {OPTIONS}) -> Tensor",
    forms="f",
)
def hamming_window(window_length, periodic, alpha, beta, *, dtype, layout, device, requires_grad, pin_memory):
    return finish(
        _window("hamming_window", window_length, periodic, dtype, _cosines((alpha, beta))),
        layout,
        device,
        requires_grad,
    )


@op(f"blackman_window(int window_length, bool periodic=True, *, {OPTIONS}) -> Tensor", forms="f")
def blackman_window(window_length, periodic, *, dtype, layout, device, requires_grad, pin_memory):
    return finish(
        _window("blackman_window", window_length, periodic, dtype, _cosines((0.42, 0.5, 0.08))),
        layout,
        device,
        requires_grad,
    )


@op(f"bartlett_window(int window_length, bool periodic=True, *, {OPTIONS}) -> Tensor", forms="f")
def bartlett_window(window_length, periodic, *, dtype, layout, device, requires_grad, pin_memory):
    return finish(
        _window("bartlett_window", window_length, periodic, dtype, _bartlett), layout, device, requires_grad
    )


@op(
    f"kaiser_window(int window_length, bool periodic=True, float beta=12.0, *, {OPTIONS}) -> Tensor",
    forms="f",
)
def kaiser_window(window_length, periodic, beta, *, dtype, layout, device, requires_grad, pin_memory):
    return finish(
        _window("kaiser_window", window_length, periodic, dtype, _kaiser(beta)), layout, device, requires_grad
    )


# ---- torch.signal.windows: symmetric by default
def _signal(name, M, sym, dtype, layout, device, requires_grad, shape):
    dtype = dtype or _C.default_dtype()
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if not dtype.is_floating_point or dtype.itemsize == 2:
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    if M == 0:
        return finish(raw.Zeros([0], dtype), layout, device, requires_grad)
    return finish(shape(M, sym, dtype), layout, device, requires_grad)


def _points(M, sym, dtype, start, step):
    return start + raw.Arange(0, M, 1, dtype) * step


def _general_cosine(a):
    def shape(M, sym, dtype):
        if M == 1:
            return raw.Ones([1], dtype)
        turn = _points(M, sym, dtype, 0.0, 2 * math.pi / (M - 1 if sym else M))
        window = raw.Zeros([M], dtype)
        for k, w in enumerate(a):
            window = window + t.cos(turn * k) * (w if k % 2 == 0 else -w)
        return window

    return shape


SIGNAL = "*, any sym=True, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? requires_grad=False"


@op(f"signal.windows.general_cosine(int M, *, any a, {SIGNAL[3:]}) -> Tensor", forms="f")
def general_cosine(M, *, a, sym, dtype, layout, device, requires_grad):
    """Return a weighted sum of cosines with the weights ``a``."""
    if not isinstance(a, (list, tuple)):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    return _signal("general_cosine", M, sym, dtype, layout, device, requires_grad, _general_cosine(a))


@op(f"signal.windows.general_hamming(int M, *, float alpha=0.54, {SIGNAL[3:]}) -> Tensor", forms="f")
def general_hamming(M, *, alpha, sym, dtype, layout, device, requires_grad):
    return _signal(
        "general_cosine", M, sym, dtype, layout, device, requires_grad, _general_cosine([alpha, 1 - alpha])
    )


@op(f"signal.windows.hamming(int M, {SIGNAL}) -> Tensor", forms="f")
def hamming(M, *, sym, dtype, layout, device, requires_grad):
    return _signal(
        "general_cosine", M, sym, dtype, layout, device, requires_grad, _general_cosine([0.54, 0.46])
    )


@op(f"signal.windows.hann(int M, {SIGNAL}) -> Tensor", forms="f")
def hann(M, *, sym, dtype, layout, device, requires_grad):
    return _signal(
        "general_cosine", M, sym, dtype, layout, device, requires_grad, _general_cosine([0.5, 0.5])
    )


@op(f"signal.windows.blackman(int M, {SIGNAL}) -> Tensor", forms="f")
def blackman(M, *, sym, dtype, layout, device, requires_grad):
    return _signal(
        "blackman", M, sym, dtype, layout, device, requires_grad, _general_cosine([0.42, 0.5, 0.08])
    )


@op(f"signal.windows.nuttall(int M, {SIGNAL}) -> Tensor", forms="f")
def nuttall(M, *, sym, dtype, layout, device, requires_grad):
    return _signal(
        "general_cosine",
        M,
        sym,
        dtype,
        layout,
        device,
        requires_grad,
        _general_cosine([0.3635819, 0.4891775, 0.1365995, 0.0106411]),
    )


@op(f"signal.windows.bartlett(int M, {SIGNAL}) -> Tensor", forms="f")
def bartlett(M, *, sym, dtype, layout, device, requires_grad):
    def shape(M, sym, dtype):
        if M == 1:
            return raw.Ones([1], dtype)
        return 1 - t.abs(_points(M, sym, dtype, -1.0, 2 / (M - 1 if sym else M)))

    return _signal("bartlett", M, sym, dtype, layout, device, requires_grad, shape)


@op(f"signal.windows.cosine(int M, {SIGNAL}) -> Tensor", forms="f")
def cosine(M, *, sym, dtype, layout, device, requires_grad):
    def shape(M, sym, dtype):
        step = math.pi / (M if sym or M == 1 else M + 1)
        return t.sin(_points(M, sym, dtype, 0.5 * step, step))

    return _signal("cosine", M, sym, dtype, layout, device, requires_grad, shape)


@op(
    f"signal.windows.exponential(int M, *, float? center=None, float tau=1.0, {SIGNAL[3:]}) -> Tensor",
    forms="f",
)
def exponential(M, *, center, tau, sym, dtype, layout, device, requires_grad):
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")

    def shape(M, sym, dtype):
        middle = (M if not sym and M > 1 else M - 1) / 2 if center is None else center
        return t.exp(-t.abs(_points(M, sym, dtype, -middle / tau, 1 / tau)))

    return _signal("exponential", M, sym, dtype, layout, device, requires_grad, shape)


@op(f"signal.windows.gaussian(int M, *, float std=1.0, {SIGNAL[3:]}) -> Tensor", forms="f")
def gaussian(M, *, std, sym, dtype, layout, device, requires_grad):
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")

    def shape(M, sym, dtype):
        scale = 1 / (std * math.sqrt(2))
        k = _points(M, sym, dtype, -(M if not sym and M > 1 else M - 1) / 2 * scale, scale)
        return t.exp(-(k * k))

    return _signal("gaussian", M, sym, dtype, layout, device, requires_grad, shape)


@op(f"signal.windows.kaiser(int M, *, float beta=12.0, {SIGNAL[3:]}) -> Tensor", forms="f")
def kaiser(M, *, beta, sym, dtype, layout, device, requires_grad):
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")

    def shape(M, sym, dtype):
        if M == 1:
            return raw.Ones([1], dtype)
        k = _points(M, sym, dtype, -beta, 2 * beta / (M - 1 if sym else M))
        top = raw.FillScalar([], beta, dtype)
        return t.special_i0(t.sqrt(t.clamp(beta * beta - k * k, min=0))) / t.special_i0(top)

    return _signal("kaiser", M, sym, dtype, layout, device, requires_grad, shape)
