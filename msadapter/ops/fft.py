"""Discrete Fourier transforms (torch.fft), stft and istft."""

from __future__ import annotations

from .._host.warn import warn_once
from . import _pocketfft  # noqa: F401 (binds the library that the kernels call)
from ._declare import _C, composite, op, raw, t
from .creation import OPTIONS, finish

_NONE, _BY_ROOT, _BY_N = 0, 1, 2


def _norm(norm, forward: bool) -> int:
    if norm is None or norm == "backward":
        return _NONE if forward else _BY_N
    if norm == "forward":
        return _BY_N if forward else _NONE
    if norm == "ortho":
        return _BY_ROOT
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


# ---- the three primitives
op(
    "_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
    ms="FftC2c",
    forms="f",
    grad={"self": lambda g, dim, normalization, forward: t._fft_c2c(g, dim, normalization, not forward)},
)


def _weights(n: int, end: float, inner: float, ndim: int, dim: int, dtype):
    """Return a factor for each of the n // 2 + 1 frequencies of a real signal of n points, along a dim of ndim ones.

    An inner frequency stands for itself and for its conjugate. The two ends, 0 and n / 2, stand for themselves alone.
    """
    pairs = (n - 1) // 2
    parts = [t.full([1], end, dtype=dtype), t.full([pairs], inner, dtype=dtype)]
    if n % 2 == 0:
        parts.append(t.full([1], end, dtype=dtype))
    shape = [1] * ndim
    shape[dim] = n // 2 + 1
    return t.reshape(t.cat(parts, 0), shape)


def _r2c_grad(g, self, dim, normalization, onesided, forward):
    if not onesided:
        return t.real(t._fft_c2c(g, dim, normalization, not forward))
    # the real part of the transform of g, with zeros for the frequencies that were left out
    last = dim[-1]
    n = self.shape[last]
    weighted = g * _weights(n, 1.0, 0.5, g.ndim, last, self.dtype)
    return t._fft_c2r(weighted, dim, normalization, n, forward=not forward)


op(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided, *, bool forward=True) -> Tensor",
    ms="FftR2c",
    forms="f",
    grad={"self": _r2c_grad},
)


def _c2r_grad(g, self, dim, normalization, last_dim_size, forward):
    last = dim[-1]
    half = t._fft_r2c(g, dim, normalization, True, forward=not forward)
    half = t.mul_(half, _weights(last_dim_size, 1.0, 2.0, half.ndim, last, g.dtype))
    extra = self.shape[last] - half.shape[last]
    if extra > 0:
        rest = list(half.shape)
        rest[last] = extra
        half = t.cat([half, t.zeros(rest, dtype=half.dtype)], last)
    return half


op(
    "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size, *, bool forward=False) -> Tensor",
    ms="FftC2r",
    forms="f",
    grad={"self": _c2r_grad},
)


# ---- arguments
def _check_input(x) -> None:
    if x.dtype.itemsize == 2 and x.is_floating_point():
        raise RuntimeError(f"Unsupported dtype {x.dtype.scalar_name}")


def _complex(x):
    """Return x in a complex dtype. Integers are converted to the default complex dtype."""
    _check_input(x)
    if x.is_complex():
        return x
    base = x.dtype if x.is_floating_point() else _C.default_dtype()
    return t._to_dtype(x, base.to_complex())


def _real(x, name: str):
    if x.is_complex():
        raise RuntimeError(f"{name} expects a real input tensor, but got {x.dtype.scalar_name}")
    _check_input(x)
    return x if x.is_floating_point() else t._to_dtype(x, _C.default_dtype())


def _resized(x, dims, sizes):
    """Cut or zero-pad x along ``dims`` to these sizes. A size of -1 keeps the dimension."""
    for d, n in zip(dims, sizes, strict=True):
        have = x.shape[d]
        if n == -1 or n == have:
            continue
        if n < have:
            x = t.narrow(x, d, 0, n)
        else:
            shape = list(x.shape)
            shape[d] = n - have
            x = t.cat([x, t.zeros(shape, dtype=x.dtype)], d)
    return x


def _wrap(x, d: int) -> int:
    n = max(x.ndim, 1)
    if not -n <= d < n:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {d})")
    return d % n


def _check_points(n: int) -> None:
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _dims_and_sizes(x, s, dim):
    """Return the dims, counted from the front, and a size for each (-1 if none is given)."""
    if isinstance(s, int):
        s = (s,)
    if isinstance(dim, int):
        dim = (dim,)
    if dim is not None:
        dims = [_wrap(x, d) for d in dim]
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
        if s is not None and len(s) != len(dims):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif s is not None:
        if len(s) > x.ndim:
            raise RuntimeError(
                f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions."
            )
        dims = list(range(x.ndim - len(s), x.ndim))
    else:
        dims = list(range(x.ndim))
    sizes = [-1] * len(dims) if s is None else list(s)
    for d, n in zip(dims, sizes, strict=True):
        if n != -1 or x.shape[d] < 1:
            _check_points(x.shape[d] if n == -1 else n)
    return dims, sizes


# ---- one dim
def _c2c(x, n, dim, norm, forward):
    if not x.is_complex():
        return _r2c(x, n, dim, norm, forward, onesided=False)
    x = _complex(x)
    d = _wrap(x, dim)
    if n is not None:
        _check_points(n)
        x = _resized(x, [d], [n])
    _check_points(x.shape[d])
    return t._fft_c2c(x, [d], _norm(norm, forward), forward)


def _r2c(x, n, dim, norm, forward, *, onesided, name="fft"):
    x = _real(x, name)
    d = _wrap(x, dim)
    if n is not None:
        _check_points(n)
        x = _resized(x, [d], [n])
    _check_points(x.shape[d])
    return t._fft_r2c(x, [d], _norm(norm, forward), onesided, forward=forward)


def _c2r(x, n, dim, norm, forward):
    x = _complex(x)
    d = _wrap(x, dim)
    n = 2 * (x.shape[d] - 1) if n is None else n
    _check_points(n)
    x = _resized(x, [d], [n // 2 + 1])
    return t._fft_c2r(x, [d], _norm(norm, forward), n, forward=forward)


_1D = {
    "fft": (
        _c2c,
        {"forward": True},
        "Transform one dim, which is first cut or padded with zeros to length n.",
    ),
    "ifft": (_c2c, {"forward": False}, "Invert `fft` along one dim."),
    "rfft": (
        _r2c,
        {"forward": True, "onesided": True, "name": "rfft"},
        "Return the non-negative frequencies of the transform of a real signal.",
    ),
    "irfft": (_c2r, {"forward": False}, "Invert `rfft`: return the real signal, of length n."),
    "hfft": (
        _c2r,
        {"forward": True},
        "Transform a signal with Hermitian symmetry, of which only the first half is given.",
    ),
    "ihfft": (
        _r2c,
        {"forward": False, "onesided": True, "name": "ihfft"},
        "Invert `hfft`: return the first half of the signal with Hermitian symmetry.",
    ),
}


def _out_dtype(kind: str) -> str:
    """Return the rule for ``out=``: the transforms to real signals accept every floating point type."""
    return "floating" if kind in ("irfft", "hfft") else "same"


def _declare_1d(name: str, transform, options: dict, doc: str) -> None:
    """Declare fft.<name>, the transform along one dim."""

    def function(self, n, dim, norm):
        return transform(self, n, dim, norm, **options)

    function.__doc__ = doc
    composite(
        f"fft.{name}(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
        forms="fo",
        out_dtype=_out_dtype(name),
        autocast={"cpu": "float32"},
    )(function)


for _name, _row in _1D.items():
    _declare_1d(_name, *_row)


# ---- several dims
def _fftn(x, s, dim, norm, forward):
    _check_input(x)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        return t.clone(_complex(x))
    if x.is_complex():
        return t._fft_c2c(_resized(x, dims, sizes), dims, _norm(norm, forward), forward)
    x = _resized(_real(x, "fftn"), dims, sizes)
    return t._fft_r2c(x, dims, _norm(norm, forward), False, forward=forward)


def _rfftn(x, s, dim, norm, forward, name):
    x = _real(x, name)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = _resized(x, dims, sizes)
    return t._fft_r2c(x, dims, _norm(norm, forward), True)


def _half_spectrum(x, s, dim, name):
    """Return (the first half of a Hermitian spectrum, cut or padded to the sizes, the dims, the length of the signal)."""
    x = _complex(x)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    n = 2 * (x.shape[dims[-1]] - 1) if s is None or sizes[-1] == -1 else sizes[-1]
    _check_points(n)
    return _resized(x, dims, sizes[:-1] + [n // 2 + 1]), dims, n


def _irfftn(x, s, dim, norm, forward, name):
    x, dims, n = _half_spectrum(x, s, dim, name)
    return t._fft_c2r(x, dims, _norm(norm, forward), n)


def _ihfftn(x, s, dim, norm, name):
    """Transform the last dim from real values to half of its frequencies, then invert along the other dims."""
    x = _real(x, name)
    dims, sizes = _dims_and_sizes(x, s, dim)
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = _resized(x, dims, sizes)
    half = t._fft_r2c(x, dims[-1:], _norm(norm, False), True, forward=False)
    return t._fft_c2c(half, dims[:-1], _norm(norm, False), False) if len(dims) > 1 else half


def _hfftn(x, s, dim, norm, name):
    x, dims, n = _half_spectrum(x, s, dim, name)
    if len(dims) > 1:
        x = t._fft_c2c(x, dims[:-1], _norm(norm, True), True)
    return t._fft_c2r(x, dims[-1:], _norm(norm, True), n, forward=True)


_ND = {
    "fft": lambda x, s, dim, norm, name: _fftn(x, s, dim, norm, True),
    "ifft": lambda x, s, dim, norm, name: _fftn(x, s, dim, norm, False),
    "rfft": lambda x, s, dim, norm, name: _rfftn(x, s, dim, norm, True, name),
    "irfft": lambda x, s, dim, norm, name: _irfftn(x, s, dim, norm, False, name),
    "hfft": _hfftn,
    "ihfft": _ihfftn,
}


def _declare_nd(kind: str, suffix: str, default: str) -> None:
    """Declare fft.<kind><suffix>. "n" transforms all dims by default, "2" the last two."""
    name = kind + suffix

    @composite(
        f"fft.{name}(Tensor self, any s=None, any dim={default}, str? norm=None) -> Tensor",
        forms="fo",
        out_dtype=_out_dtype(kind),
        autocast={"cpu": "float32"} if kind in ("fft", "ifft", "rfft", "irfft") else None,
    )
    def function(self, s, dim, norm):
        return _ND[kind](self, s, dim, norm, name)


for _kind in _ND:
    _declare_nd(_kind, "n", "None")
    _declare_nd(_kind, "2", "(-2, -1)")


# ---- frequencies and shifts
def _frequency_type(name: str, dtype):
    """Return the dtype of the frequencies. RuntimeError if it cannot hold fractions."""
    dtype = dtype or _C.default_dtype()
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    return dtype


#: Bytes of a floating point number -> a number up to which all whole numbers are exact.
_EXACT = {2: 2**8, 4: 2**24, 8: 2**53}


@op(f"fft.fftfreq(int n, float d=1.0, *, {OPTIONS}) -> Tensor", forms="fo")
def fftfreq(n, d, *, dtype, layout, device, requires_grad, pin_memory):
    """Return the frequency of each value in the fft of n samples with distance d."""
    dtype = _frequency_type("fftfreq", dtype)
    half = (n + 1) // 2
    if n <= _EXACT[dtype.itemsize]:
        numbers = raw.Arange(0, n, 1, dtype)
        t.sub_(t.narrow(numbers, 0, half, n - half), n)
    else:
        numbers = t.cat([raw.Arange(0, half, 1, dtype), raw.Arange(-(n // 2), 0, 1, dtype)], 0)
    return finish(t.mul_(numbers, 1.0 / (n * d)), layout, device, requires_grad)


@op(f"fft.rfftfreq(int n, float d=1.0, *, {OPTIONS}) -> Tensor", forms="fo")
def rfftfreq(n, d, *, dtype, layout, device, requires_grad, pin_memory):
    numbers = raw.Arange(0, n // 2 + 1, 1, _frequency_type("rfftfreq", dtype))
    return finish(t.mul_(numbers, 1.0 / (n * d)), layout, device, requires_grad)


def _shift_dims(x, dim):
    return list(range(x.ndim)) if dim is None else [dim] if isinstance(dim, int) else list(dim)


@composite("fft.fftshift(Tensor self, any dim=None) -> Tensor", forms="f")
def fftshift(self, dim):
    """Move the zero frequency to the middle."""
    dims = _shift_dims(self, dim)
    return t.roll(self, [self.shape[d] // 2 for d in dims], dims) if dims else t.clone(self)


@composite("fft.ifftshift(Tensor self, any dim=None) -> Tensor", forms="f")
def ifftshift(self, dim):
    dims = _shift_dims(self, dim)
    return t.roll(self, [(self.shape[d] + 1) // 2 for d in dims], dims) if dims else t.clone(self)


# ---- short-time transforms
def _warn_without_window(window, consequence: str) -> None:
    if window is None:
        warn_once(
            f"A window was not provided. A rectangular window will be applied{consequence}To suppress this warning and use a "
            "rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`.",
            stacklevel=3,
        )


def _window_of(window, win_length, n_fft, dtype):
    """Return the window, centred in n_fft points. Without a window, return ones."""
    if window is None:
        window = t.ones([win_length], dtype=dtype)
    if win_length < n_fft:
        left = (n_fft - win_length) // 2
        parts = [
            t.zeros([left], dtype=window.dtype),
            window,
            t.zeros([n_fft - win_length - left], dtype=window.dtype),
        ]
        window = t.cat(parts, 0)
    return window


def _centred(x, pad: int, mode: str):
    """Extend the signals (batch, n) by ``pad`` samples on both sides."""
    if mode != "reflect":
        return t.squeeze(t.pad(t.unsqueeze(x, 1), [pad, pad], mode), 1)
    n = x.shape[-1]
    if pad >= n:
        raise RuntimeError(
            f"Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({pad}, {pad}) at dimension 2 of input {[1, *x.shape]}"
        )
    # parts that are reversed, because an index for each sample would cost more than the copy itself
    before = t.flip(t.narrow(x, 1, 1, pad), [1])
    after = t.flip(t.narrow(x, 1, n - 1 - pad, pad), [1])
    return t.cat([before, x, after], 1)


@composite(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "str pad_mode='reflect', bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? "
    "align_to_window=None) -> Tensor",
    forms="fm",
    autocast={"cpu": "float32"},
)
def stft(
    self,
    n_fft,
    hop_length,
    win_length,
    window,
    center,
    pad_mode,
    normalized,
    onesided,
    return_complex,
    align_to_window,
):
    """Short-time Fourier transform: the transforms of overlapping windows, (..., frequencies, frames)."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if return_complex is None:
        if not (self.is_complex() or window is not None and window.is_complex()):
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if self.ndim not in (1, 2):
        raise RuntimeError(f"stft({self.dtype}{list(self.shape)}, n_fft={n_fft}): expected a 1D or 2D tensor")
    _warn_without_window(
        window,
        ",which is known to cause spectral leakage. Other windows such as torch.hann_window or torch.hamming_window are "
        "recommended to reduce spectral leakage.",
    )
    x = t.unsqueeze(self, 0) if self.ndim == 1 else self
    if center:
        if align_to_window is not None:
            raise RuntimeError("stft align_to_window should only be set when center = false")
        x = _centred(x, n_fft // 2, pad_mode)
    length = x.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"stft: expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop_length <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"stft: expected 0 < win_length <= n_fft, but got win_length={win_length}")
    if window is not None and (window.ndim != 1 or window.shape[0] != win_length):
        raise RuntimeError(
            f"stft: expected a 1D window tensor of size equal to win_length={win_length}, but got window with size "
            f"{list(window.shape)}"
        )
    if not center and align_to_window:  # the first frame begins where the window does, not where its zeros do
        x = t.constant_pad_nd(x, [(n_fft - win_length) // 2] * 2)
        length = x.shape[-1]
    frames = 1 + (length - n_fft) // hop_length
    step = x.stride()
    x = t.as_strided(
        x, [x.shape[0], frames, n_fft], [step[0], hop_length * step[1], step[1]], x.storage_offset()
    )
    if window is not None:
        x = x * _window_of(window, win_length, n_fft, x.dtype)
    elif win_length < n_fft:
        x = x * _window_of(None, win_length, n_fft, x.dtype.to_real())
    norm = _BY_ROOT if normalized else _NONE
    onesided = not x.is_complex() if onesided is None else onesided
    if x.is_complex():
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        out = t._fft_c2c(x, [2], norm, True)
    else:
        out = t._fft_r2c(x, [2], norm, onesided)
    out = t.transpose(out, 1, 2)
    out = t.squeeze(out, 0) if self.ndim == 1 else out
    return out if return_complex else t.view_as_real(out)


def _overlap_add(frames, hop, total):
    """Add up the frames (batch, count, n), where each starts ``hop`` samples after the one before."""
    batch, count, n = frames.shape
    columns = t.transpose(frames, 1, 2)
    added = t.fold(columns, (1, total), (1, n), stride=(1, hop))
    return t.reshape(added, [batch, total])


@composite(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, "
    "bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor",
    forms="fm",
)
def istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    """Return the signal whose stft is closest to ``self`` (least squares)."""
    _warn_without_window(
        window, ".Please provide the same window used by stft to make the inversion lossless."
    )
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if not self.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if not 0 < hop_length <= win_length:
        raise RuntimeError("istft: expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise RuntimeError("istft: expected 0 < win_length <= n_fft")
    x = t.unsqueeze(self, 0) if self.ndim == 2 else self
    frequencies, count = x.shape[1], x.shape[2]
    onesided = frequencies != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if onesided else n_fft
    if frequencies != expected:
        raise RuntimeError(
            f"istft: expected the frequency dimension (3rd to the last) of the input tensor to match n_fft "
            f"{'/ 2 + 1 ' if onesided else ''}when onesided={onesided}, but got {frequencies}"
        )
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    window = _window_of(window, win_length, n_fft, x.dtype.to_real())
    x = t.transpose(x, 1, 2)
    norm = _BY_ROOT if normalized else _BY_N
    if return_complex:
        x = t._fft_c2c(x, [2], norm, False)
    else:
        x = t._fft_c2r(x if onesided else t.narrow(x, 2, 0, n_fft // 2 + 1), [2], norm, n_fft)
    total = n_fft + hop_length * (count - 1)
    signal = _overlap_add(x * window, hop_length, total)
    squares = t.expand(t.reshape(window * window, [1, 1, n_fft]), [1, count, n_fft])
    envelope = _overlap_add(squares, hop_length, total)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start if center else total
    stop = min(end, total)
    signal, envelope = t.narrow(signal, 1, start, stop - start), t.narrow(envelope, 1, start, stop - start)
    smallest = float(t.amin(t.abs(envelope)).item())
    if not smallest > 1e-11:
        raise RuntimeError(f"istft: window overlap add min: {smallest:g}")
    signal = signal / envelope
    if end > total:
        signal = t.cat([signal, t.zeros([signal.shape[0], end - total], dtype=signal.dtype)], 1)
    return t.squeeze(signal, 0) if self.ndim == 2 else signal
