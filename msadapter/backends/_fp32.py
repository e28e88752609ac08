"""How much of a float32 number products may use: fp32_precision, and the older settings that say the same.

They are only stored, with PyTorch's defaults and inheritance: products of float32 numbers are computed in float32.
"""

from __future__ import annotations

import types
import warnings

from ._frozen import FrozenModule, check_bool

_BACKENDS, _OPERATIONS = ("generic", "cuda", "mkldnn"), ("all", "conv", "rnn", "matmul")
_PRECISIONS = ("none", "ieee", "tf32", "bf16")
# The pairs that have a setting. "none" inherits from the backend, and this from "generic". So does None, which is "tf32" at last.
_own: dict[tuple[str, str], str | None] = {
    ("generic", "all"): "none",
    **{(backend, operation): "none" for backend in _BACKENDS[1:] for operation in _OPERATIONS},
    ("cuda", "conv"): None,
    ("cuda", "rnn"): None,
}
_older = {"matmul": "highest", "cudnn": True}
_MIXED = (
    " We suggest only using the new API {}. See also: "
    "https://pytorch.org/docs/main/notes/cuda.html#tensorfloat-32-tf32-on-ampere-and-later-devices"
)


def _check_pair(backend: str, operation: str) -> None:
    for kind, name, known in (("backend", backend, _BACKENDS), ("op", operation, _OPERATIONS)):
        if name not in known:
            raise RuntimeError(f"Unknown {kind}: {name}")
    if (backend, operation) not in _own:
        pair = _BACKENDS.index(backend), _OPERATIONS.index(operation)
        raise RuntimeError(f"Invalid (backend, op) pair: {pair}")


def _has(backend: str, precision: str) -> bool:
    return precision != "bf16" or backend != "cuda"


def read(backend: str, operation: str) -> str:
    """Return the precision of an operation of a backend: its own, or the one that it inherits if the backend has that."""
    _check_pair(backend, operation)
    chain = [_own[pair] for pair in ((backend, operation), (backend, "all"), ("generic", "all"))]
    found = next((p for p in chain if p not in ("none", None)), "none" if chain[0] else "tf32")
    return found if _has(backend, found) else "none"


def write(backend: str, operation: str, precision: str) -> str:
    """Set the precision of an operation of a backend, and return it.

    Raises:
        RuntimeError: there is no such setting, or the backend has no such precision.
    """
    if not isinstance(precision, str):
        raise TypeError(
            "_set_fp32_precision_setter(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (arg0: str, arg1: str, arg2: str) -> str\n\nInvoked with: {backend!r}, {operation!r}, {precision!r}"
        )
    _check_pair(backend, operation)
    if precision not in _PRECISIONS:
        raise RuntimeError(f"Unknown precision: {precision}")
    if not _has(backend, precision):
        raise RuntimeError(f"backend '{backend}' does not support precision '{precision}'")
    _own[backend, operation] = precision
    return precision


def get_float32_matmul_precision() -> str:
    """Return "highest", "high" or "medium", as `set_float32_matmul_precision` set it.

    Raises:
        RuntimeError: an fp32_precision says something else.
    """
    value, own = _older["matmul"], read("mkldnn", "matmul")
    if (
        (read("cuda", "matmul") == "tf32" and value == "highest")
        or (own == "bf16" and value != "medium")
        or (own == "tf32" and value != "high")
    ):
        raise RuntimeError(
            "PyTorch is checking the matmul precision without a specific backend name,Current status indicate that you have "
            "used mix of the legacy and new APIs to set the matmul precision."
            + _MIXED.format("for matmul precision")
        )
    return value


def set_float32_matmul_precision(precision: str) -> None:
    """Set how much of float32 numbers matrix products may use: "highest", "high" or "medium". Products use all of it."""
    if not isinstance(precision, str):
        name = type(precision).__name__
        raise RuntimeError(f"set_float32_matmul_precision expects a str, but got {name}")
    each = {"highest": ("ieee", "ieee"), "high": ("tf32", "tf32"), "medium": ("tf32", "bf16")}.get(precision)
    if each is None:
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current"
            "setFloat32MatmulPrecision call has no effect.",
            stacklevel=2,
        )
        return
    _older["matmul"] = precision
    for backend, value in zip(("cuda", "mkldnn"), each, strict=True):
        write(backend, "matmul", value)


def _tf32_of_matmul(settings) -> bool:
    older = _older["matmul"] != "highest"
    if older != (read("cuda", "matmul") == "tf32"):
        raise RuntimeError(
            "PyTorch is checking whether allow_tf32_new is enabled for cuBlas matmul,Current status indicate that you have used "
            "mix of the legacy and new APIs to set the TF32 status for cublas matmul."
            + _MIXED.format("to set the TF32 flag")
        )
    return older


def _set_tf32_of_matmul(settings, value: bool) -> None:
    check_bool("set_allow_tf32_cublas", value)
    _older["matmul"] = "high" if value else "highest"
    write("cuda", "matmul", "tf32" if value else "ieee")


def _tf32_of_cudnn(settings) -> bool:
    if any((read("cuda", operation) == "tf32") != _older["cudnn"] for operation in ("conv", "rnn")):
        raise RuntimeError(
            "PyTorch is checking whether allow_tf32 is enabled for cuDNN without a specific operator name,but the current flag(s) "
            "indicate that cuDNN conv and cuDNN RNN have different TF32 flags.This combination indicates that you have used a mix "
            "of the legacy and new APIs to set the TF32 flags." + _MIXED.format("to set the TF32 flag(s)")
        )
    return _older["cudnn"]


def _set_tf32_of_cudnn(settings, value: bool) -> None:
    check_bool("set_allow_tf32_cublas", value)
    _older["cudnn"] = value
    for operation in ("conv", "rnn"):
        write("cuda", operation, "tf32" if value else "none")


TF32_OF_MATMUL = property(_tf32_of_matmul, _set_tf32_of_matmul)
TF32_OF_CUDNN = property(_tf32_of_cudnn, _set_tf32_of_cudnn)


def _precision(backend: str, operation: str, written: str) -> property:
    def get(settings) -> str:
        return read(backend, operation)

    def put(settings, value: str) -> None:
        write(written, operation, value)

    return property(get, put)


def setting(backend: str, operation: str, **more):
    """Return an object whose attribute ``fp32_precision`` is the setting of an operation.

    ``more`` are further settings: their first values, or properties.
    """
    names = {"fp32_precision", *more}

    def unknown(self, name):
        raise AttributeError(f"Unknown attribute {name}")

    def put(self, name, value):
        object.__setattr__(self, name, value) if name in names else unknown(self, name)

    members = {
        "fp32_precision": _precision(backend, operation, backend),
        "__getattr__": unknown,
        "__setattr__": put,
    }
    return type("_Settings", (), members | more)()


def settings_of(module, backend: str, *stored: str, written: str | None = None, **more) -> None:
    """Give a module the attribute ``fp32_precision``: that of a backend, or of ``written`` when it is set.

    ``more`` are further settings that are properties, and ``stored`` are names of settings that the module has itself.
    """
    more["fp32_precision"] = _precision(backend, "all", written or backend)
    names = [*more]
    more["__dir__"] = lambda self: [*types.ModuleType.__dir__(self), *names]
    more["_settings"] = frozenset((*names, *stored))
    module.__class__ = type("_SettingsModule", (FrozenModule,), more)
