"""LAPACK for the CPU kernels: scipy's routines, bound at the first use."""
from __future__ import annotations

import ctypes

from ._declare import raw, t
from ._generator import on_host

# names that differ between the real and the complex routines
_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd"}
_REAL = {"hetrf": "sytrf", "hetrs": "sytrs"}


class LinAlgError(RuntimeError):
    """A matrix for which the operation has no answer."""


LinAlgError.__module__ = "torch.linalg"
LinAlgError.__qualname__ = LinAlgError.__name__ = "LinAlgError"


def _address_reader():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return lambda capsule: pointer(capsule, name(capsule))


def _bind() -> None:
    from scipy.linalg import cython_blas, cython_lapack

    from ..tensor.dtype import ALL
    tensor = t.tensor
    address = _address_reader()
    table = {**cython_blas.__pyx_capi__, **cython_lapack.__pyx_capi__}
    names = bytes(raw.LapackNames().tolist()).decode().split(",")
    addresses = []
    for name in names:
        for kind in "sdcz":
            own = _COMPLEX.get(name, name) if kind in "cz" else _REAL.get(name, name)
            addresses.append(address(table[kind + own]))
    raw.LapackBind(tensor(addresses, dtype=ALL["int64"]))


_SMALL = 64  # matrices up to this size are factored in double: it costs microseconds and saves the last digits


def _is_tensor(x) -> bool:
    return hasattr(x, "data_ptr")


def _in_double(function, args):
    """``function`` on float64 (complex128) copies of its float32 (complex64) tensors, results cast back."""
    from ..tensor.dtype import ALL
    up = {ALL["float32"]: ALL["float64"], ALL["complex64"]: ALL["complex128"]}
    down = {wide: narrow for narrow, wide in up.items()}
    wide_args = [raw.Cast(a, up[a.dtype]) if _is_tensor(a) and a.dtype in up else a for a in args]
    results = function(*wide_args)
    several = isinstance(results, (tuple, list))
    out = tuple(raw.Cast(r, down[r.dtype]) if r.dtype in down else r for r in (results if several else (results,)))
    return out if several else out[0]


class _Lapack:
    """``lapack.LinalgSvd(...)``: a raw operator whose kernel needs LAPACK."""

    def __init__(self):
        self._bound = False

    def __getattr__(self, name: str):
        if not self._bound:
            if on_host():
                _bind()
            self._bound = True
        operator = getattr(raw, name)

        def function(*args):
            first = args[0]
            if first.dtype.name in ("float32", "complex64") and max(first.shape[-2:], default=0) <= _SMALL and on_host():
                return _in_double(operator, args)
            return operator(*args)

        setattr(self, name, function)
        return function


lapack = _Lapack()
