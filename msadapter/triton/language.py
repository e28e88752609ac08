"""triton.language: names in the signatures of kernels, and the functions that interpreted kernels may call."""

import functools
import importlib
import os
import types

_POINTWISE = "abs ceil cos erf exp exp2 floor log log2 rsqrt sigmoid sin sqrt"
_FUNCTIONS = {
    "interpreter": "arange atomic_add debug_barrier load num_programs program_id range static_range store",
    "operations": f"""{_POINTWISE} PropagateNan broadcast_to cdiv clamp cumsum dot expand_dims full max max_contiguous maximum
        min minimum multiple_of reshape sum trans where zeros zeros_like""",
}
_MODULES = {name: module for module, names in _FUNCTIONS.items() for name in names.split()}
_MATH = f"{_POINTWISE} cdiv clamp maximum minimum next_power_of_2"


def __getattr__(name: str):
    if name in _DTYPES:
        return _element_type(name) if os.environ.get("TRITON_INTERPRET") == "1" else _DTYPES[name]
    if name == "math":
        return _math()
    if name not in _MODULES:
        raise AttributeError(f"module 'triton.language' has no attribute {name!r} (docs/coverage.md)")
    return getattr(_module(_MODULES[name]), name)


@functools.cache
def _module(name: str):
    """A module that needs torch, which is not complete when MindSpore imports this one."""
    return importlib.import_module(f"..{name}", __name__)


@functools.cache
def _math() -> types.SimpleNamespace:
    """triton.language.math"""
    operations = _module("operations")
    return types.SimpleNamespace(**{name: getattr(operations, name) for name in _MATH.split()})


@functools.cache
def _element_type(name: str):
    """torch's type of elements for a name of this module. Blocks of an interpreted kernel are converted to torch's types."""
    kinds = importlib.import_module("..._values.dtype", __name__).ALL
    return kinds["bool" if name == "int1" else name]


class constexpr:
    """A value that is known when a kernel is compiled."""

    def __init__(self, value):
        self.value = value

    def __bool__(self) -> bool:
        return bool(self.value)

    def __index__(self) -> int:
        return int(self.value)


class dtype:
    """The type of elements."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self):
        return self.name


class pointer_type(dtype):
    """A pointer to elements of a type."""

    def __init__(self, element_ty: dtype):
        super().__init__(f"*{element_ty}")
        self.element_ty = element_ty


_DTYPES = {
    **{f"int{bits}": dtype(f"int{bits}") for bits in (1, 8, 16, 32, 64)},
    **{f"uint{bits}": dtype(f"uint{bits}") for bits in (8, 16, 32, 64)},
    **{
        name: dtype(short)
        for name, short in {
            "float16": "fp16",
            "bfloat16": "bf16",
            "float32": "fp32",
            "float64": "fp64",
        }.items()
    },
}
