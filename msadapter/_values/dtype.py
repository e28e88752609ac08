"""torch.dtype: the types of elements."""

from __future__ import annotations

from .._host.native import load

_C = load()


class dtype:
    """A type of elements, which prints and compares like PyTorch's. There is one object for each type."""

    __slots__ = (
        "name",
        "itemsize",
        "is_floating_point",
        "is_complex",
        "_signed",
        "storage_name",
        "code",
        "__weakref__",
    )

    def __init__(self, code: int, name: str, itemsize: int, kind: str, storage: str):
        self.code, self.name, self.itemsize = code, name, itemsize
        self.is_floating_point = kind == "f"
        self.is_complex = kind == "c"
        self._signed = kind in "fci"
        self.storage_name = storage

    @property
    def scalar_name(self) -> str:
        """PyTorch's name of this type in errors, such as Float."""
        return self.storage_name.removesuffix("Storage")

    @property
    def is_signed(self) -> bool:
        """Whether the type has negative numbers. RuntimeError for quantized types, as in PyTorch."""
        if self.name.startswith("q"):
            raise RuntimeError("isSignedType not supported for quantized types")
        return self._signed

    @property
    def is_bool(self) -> bool:
        return self.code == 0

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name  # pickled as the global name torch.float32, as in PyTorch

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def to_real(self) -> dtype:
        return _by_name(_PARTS.get(self.name, self.name))

    def to_complex(self) -> dtype:
        if self.is_complex:
            return self
        if not self.is_floating_point or self.itemsize == 1:
            raise RuntimeError(f"Unknown Complex ScalarType for {self.scalar_name}")
        return _by_name({"float64": "complex128", "float16": "complex32"}.get(self.name, "complex64"))


_PARTS = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}


def _by_name(name: str) -> dtype:
    return exports()[name]


dtype.__module__ = "torch"
_ROWS = [
    ("bool", 1, "b", "Bool"),
    ("uint8", 1, "u", "Byte"),
    ("int8", 1, "i", "Char"),
    ("int16", 2, "i", "Short"),
    ("int32", 4, "i", "Int"),
    ("int64", 8, "i", "Long"),
    ("uint16", 2, "u", "UInt16"),
    ("uint32", 4, "u", "UInt32"),
    ("uint64", 8, "u", "UInt64"),
    ("float16", 2, "f", "Half"),
    ("bfloat16", 2, "f", "BFloat16"),
    ("float32", 4, "f", "Float"),
    ("float64", 8, "f", "Double"),
    ("complex64", 8, "c", "ComplexFloat"),
    ("complex128", 16, "c", "ComplexDouble"),
]
ALL: dict[str, dtype] = {}
for _code, (_name, _size, _kind, _storage) in enumerate(_ROWS):
    ALL[_name] = dtype(_code, _name, _size, _kind, _storage + "Storage")
    _C.bind_dtype(_code, ALL[_name])
globals().update(ALL)
# These dtypes can be stored, copied and converted, and few operators compute with them, as in PyTorch.
_STORED_ROWS = [
    ("float8_e4m3fn", 1, "f", "Float8_e4m3fn"),
    ("float8_e5m2", 1, "f", "Float8_e5m2"),
    ("complex32", 4, "c", "ComplexHalf"),
]
STORED: dict[str, dtype] = {
    name: dtype(code, name, size, kind, storage + "Storage")
    for code, (name, size, kind, storage) in enumerate(_STORED_ROWS, len(_ROWS))
}
for _d in STORED.values():
    _C.bind_dtype(_d.code, _d)
# The types in which operators compute for them.
STORED_WIDE = {_d: ALL["complex64" if _d.is_complex else "float32"] for _d in STORED.values()}
ALIASES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}
# Integers of few bits: name -> kind, as OTHERS has it.
FEW_BITS = {f"{kind}{bits}": kind[0] for kind in ("uint", "int") for bits in range(1, 8)}
# These dtypes have no kernels. They exist because programs compare with them.
OTHERS = {
    n: dtype(100 + i, n, s, k, n.title().replace("Uint", "UInt") + "Storage")
    for i, (n, s, k) in enumerate(
        [
            ("float8_e4m3fnuz", 1, "f"),
            ("float8_e5m2fnuz", 1, "f"),
            ("qint8", 1, "i"),
            ("quint8", 1, "u"),
            ("qint32", 4, "i"),
            ("quint4x2", 1, "u"),
            ("quint2x4", 1, "u"),
            ("float8_e8m0fnu", 1, "f"),
            *((name, 1, kind) for name, kind in FEW_BITS.items()),
        ]
    )
}
NUMPY = {
    "bool": "bool",
    "uint8": "uint8",
    "int8": "int8",
    "int16": "int16",
    "int32": "int32",
    "int64": "int64",
    "uint16": "uint16",
    "uint32": "uint32",
    "uint64": "uint64",
    "float16": "float16",
    "float32": "float32",
    "float64": "float64",
    "complex64": "complex64",
    "complex128": "complex128",
}
cpp_name = _C.cpp_type_name  # the name of the C++ type of a dtype, as PyTorch's messages have it


def exports() -> dict[str, dtype]:
    """Return the dtypes and their aliases by their names in torch."""
    out = dict(ALL)
    out.update(STORED)
    out.update(OTHERS)
    out.update({alias: ALL[name] for alias, name in ALIASES.items()})
    out["chalf"] = STORED["complex32"]
    return out


def __getattr__(name: str) -> dtype:
    table = exports()
    if name in table:
        return table[name]
    raise AttributeError(name)
