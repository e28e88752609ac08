"""LAPACK for the CPU kernels. The routines are those of scipy, and are connected at first use."""

from __future__ import annotations

import contextlib
import ctypes
import os
from pathlib import Path

from .._values.dtype import ALL
from ._declare import raw, t

# routines whose complex version has another name
_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd"}
_REAL = {"hetrf": "sytrf", "hetrs": "sytrs"}


class LinAlgError(RuntimeError):
    """The operation has no result for this matrix, for example the inverse of a singular one."""


LinAlgError.__module__ = "torch.linalg"
LinAlgError.__qualname__ = LinAlgError.__name__ = "LinAlgError"


def _address_reader():
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return lambda capsule: pointer(capsule, name(capsule))


@contextlib.contextmanager
def _shortly_spinning():
    """Let threads of an OpenBLAS that is loaded meanwhile wait for work for 2**20 cycles, unless the user has said otherwise.

    Its default is 2**26 cycles, 20 ms, in which they keep a processor from the threads of the other kernels.
    """
    name = "OPENBLAS_THREAD_TIMEOUT"
    if name in os.environ:
        yield
        return
    os.environ[name] = "20"
    try:
        yield
    finally:
        del os.environ[name]


def _thread_setter() -> int:
    """The address of the function that sets the number of threads of scipy's OpenBLAS; 0 if scipy has another library."""
    import scipy  # here: few programs call LAPACK

    beside = Path(scipy.__file__).resolve().parent.parent / "scipy.libs"  # where scipy's wheels keep it
    for path in sorted(beside.glob("libscipy_openblas*")):
        library = ctypes.CDLL(str(path))
        for name in ("scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_"):
            if hasattr(library, name):
                return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    return 0


def _bind() -> None:
    with _shortly_spinning():
        from scipy.linalg import cython_lapack  # here: few programs call LAPACK

    tensor = t.tensor
    address = _address_reader()
    table = cython_lapack.__pyx_capi__
    names = bytes(raw.LapackNames().tolist()).decode().split(",")
    addresses = []
    for name in names:
        for kind in "sdcz":
            own = _COMPLEX.get(name, name) if kind in "cz" else _REAL.get(name, name)
            addresses.append(address(table[kind + own]))
    addresses.append(_thread_setter())
    raw.LapackBind(tensor(addresses, dtype=ALL["int64"], device="cpu"))


class _Lapack:
    """``lapack.LinalgSvd(...)`` calls a raw operator whose kernel needs LAPACK."""

    def __init__(self):
        self._bound = False

    def __getattr__(self, name: str):
        if not self._bound:
            _bind()
            self._bound = True
        function = getattr(raw, name)
        setattr(self, name, function)
        return function


lapack = _Lapack()
