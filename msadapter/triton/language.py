"""triton.language: names in the signatures of kernels, and the functions that interpreted kernels may call."""

import os

_INTERPRETED = frozenset(
    (
        "arange",
        "atomic_add",
        "cdiv",
        "cumsum",
        "debug_barrier",
        "full",
        "load",
        "maximum",
        "minimum",
        "num_programs",
    )
    + ("program_id", "range", "store", "sum", "where", "zeros")
)


def __getattr__(name: str):
    if name in _DTYPES and os.environ.get("TRITON_INTERPRET") != "1":
        return _DTYPES[name]
    if name not in _INTERPRETED and name not in _DTYPES:
        raise AttributeError(f"module 'triton.language' has no attribute {name!r} (docs/coverage.md)")
    # Both need torch, which is not complete when MindSpore imports this module. Blocks of an interpreted kernel are tensors, which
    # are converted to torch's types.
    from . import interpreter

    return interpreter.element_type(name) if name in _DTYPES else getattr(interpreter, name)


class constexpr:
    """A value that is known when a kernel is compiled."""

    def __init__(self, value):
        self.value = value


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
