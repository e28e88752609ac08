"""triton.language: names in the signatures of kernels, and the functions that interpreted kernels may call."""

_INTERPRETED = frozenset(
    ("arange", "cdiv", "debug_barrier", "load", "num_programs", "program_id", "store", "where")
)


def __getattr__(name: str):
    if name not in _INTERPRETED:
        raise AttributeError(f"module 'triton.language' has no attribute {name!r} (docs/coverage.md)")
    # It needs torch, which is not complete when MindSpore imports this module.
    from . import interpreter

    return getattr(interpreter, name)


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


int1, int8, int16, int32, int64 = (dtype(f"int{bits}") for bits in (1, 8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float16, bfloat16, float32, float64 = (dtype(name) for name in ("fp16", "bf16", "fp32", "fp64"))
