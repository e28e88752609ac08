"""Discrete Fourier transforms for the CPU kernels (csrc/kernels/fft.cpp), by the pocketfft inside scipy.

This library has no C interface. The kernels call a function of this module for each transform, from whichever thread they
run in, and it writes into their memory. The library is imported at the first transform.
"""

from __future__ import annotations

import _thread
import ctypes
import functools
import sys

import numpy

from ._declare import _C

_COMPLEX, _TO_HALF, _FROM_HALF = 0, 1, 2
_DTYPES = {
    (False, False): numpy.dtype("float32"),
    (False, True): numpy.dtype("complex64"),
    (True, False): numpy.dtype("float64"),
    (True, True): numpy.dtype("complex128"),
}
_MEMORY = ctypes.c_char * sys.maxsize  # memory of any size; only the part that an array covers is touched
_REASON_SIZE = 512  # kReasonSize in csrc/kernels/fft.h


@functools.cache
def _library():
    """Return scipy's module, whose functions write into a given array, which scipy.fft's own functions do not."""
    try:
        from scipy.fft._pocketfft import pypocketfft  # here: few programs transform
    except ImportError as error:
        raise ImportError(
            f"Fourier transforms on a CPU need the pocketfft of scipy, which this scipy does not have ({error}): "
            "pip install the scipy that msadapter's pyproject.toml names"
        ) from error
    return pypocketfft


def _transform(numbers: list[int]) -> None:
    """Run the transform that fft.cpp describes with these numbers."""
    kind, double, forward, norm, threads, ndim, source, source_complex, target, target_complex = numbers[:10]
    sizes, steps = numbers[10 : 10 + ndim], numbers[10 + ndim : 10 + 2 * ndim]
    x = numpy.ndarray(
        sizes, _DTYPES[bool(double), bool(source_complex)], _MEMORY.from_address(source), 0, steps
    )
    first = 10 + 2 * ndim
    sizes, steps = numbers[first : first + ndim], numbers[first + ndim : first + 2 * ndim]
    out = numpy.ndarray(
        sizes, _DTYPES[bool(double), bool(target_complex)], _MEMORY.from_address(target), 0, steps
    )
    dims = numbers[first + 2 * ndim :]
    library = _library()
    if kind == _COMPLEX:
        library.c2c(x, dims, bool(forward), norm, out, threads)
    elif kind == _TO_HALF:
        library.r2c(x, dims, bool(forward), norm, out, threads)
    else:
        library.c2r(x, dims, sizes[dims[-1]], bool(forward), norm, out, threads)


@ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
def _run(count, job, reason):
    """RunTransform of csrc/kernels/fft.h. No exception can leave it, so the kernel raises what it writes as the reason."""
    try:
        _transform((ctypes.c_int64 * count).from_address(job)[:])
    except BaseException as error:
        text = f"the Fourier transform failed: {type(error).__name__}: {error}".encode()[: _REASON_SIZE - 1]
        ctypes.memmove(reason, text + b"\0", len(text) + 1)
        if isinstance(error, KeyboardInterrupt):
            _thread.interrupt_main()  # raises it again, once the kernel has ended
        return 0
    return 1


_C.bind_transforms(ctypes.cast(_run, ctypes.c_void_p).value)
