"""torch.use_deterministic_algorithms, and what it refuses and fills; torch.quasirandom."""

SETUP = """
import warnings
d = torch.utils.deterministic
q = torch.quasirandom.SobolEngine
def under(f, fill=True, warn_only=False):
    before = torch.get_deterministic_debug_mode(), d.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=warn_only)
    d.fill_uninitialized_memory = fill
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            made = f()
        return made, [str(w.message).split(". ")[0] for w in caught]
    finally:
        torch.set_deterministic_debug_mode(before[0])
        d.fill_uninitialized_memory = before[1]
def modes():
    return (torch.get_deterministic_debug_mode(), torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled())
def mode(value):
    torch.set_deterministic_debug_mode(value)
    found = modes()
    torch.set_deterministic_debug_mode(0)
    return found
def put():
    return torch.zeros(4).put_(torch.tensor([1]), torch.ones(1))
def unpooled(n):
    x = torch.ones(1, 1, *[2] * n)
    at = torch.zeros(x.shape, dtype=torch.long)
    return getattr(torch.nn, f"MaxUnpool{n}d")(2)(x, at)
"""

CASES = [
    *(f"mode({value!r})" for value in (0, 1, 2, "default", "warn", "error", 3, "x", 1.5)),
    "torch.use_deterministic_algorithms(1)",
    "torch.use_deterministic_algorithms(False, warn_only=1)",
    "d.fill_uninitialized_memory = 1",
    "d.fill_uninitialized_memory",
    *(
        f"under(lambda: torch.empty(3, dtype=torch.{dtype}))"
        for dtype in (
            "float32",
            "float64",
            "float16",
            "bfloat16",
            "complex64",
            "bool",
            "uint8",
            "int8",
            "int16",
            "int64",
            "uint32",
        )
    ),
    "under(lambda: torch.empty_like(torch.ones(2, 3)))",
    "under(lambda: torch.empty_strided((2, 3), (1, 2)))",
    "under(lambda: torch.empty_permuted((2, 3), (1, 0)))",
    "under(lambda: torch.ones(2).new_empty(2))",
    "under(lambda: torch.ones(2).new_empty_strided((2,), (1,)))",
    "under(lambda: torch.empty(2, out=torch.zeros(1)))",
    "under(lambda: torch.ones(3).resize_(5))",
    "under(lambda: torch.ones(5).resize_(2, 2))",
    "under(lambda: torch.zeros(2, dtype=torch.int16).resize_(2, 2))",
    "under(lambda: torch.empty(2, device='meta').shape)",
    "under(lambda: torch.zeros(2).resize_(3)[:2], fill=False)",
    "under(put)",
    "under(put, warn_only=True)",
    "under(lambda: torch.zeros(4).put_(torch.tensor([1]), torch.ones(1), accumulate=True))",
    *(f"under(lambda: unpooled({n}))" for n in (1, 2, 3)),
    *(
        f"q({arguments}).{draw}"
        for arguments in ("1", "2", "5", "3, True, 7", "21, scramble=True, seed=1")
        for draw in (
            "draw(7)",
            "draw(1, dtype=torch.float64)",
            "draw_base2(3)",
            "fast_forward(5).draw(4)",
            "sobolstate[0, :4]",
            "shift",
        )
    ),
    "e = q(2); e.draw(3), e.draw(2), e.num_generated, e.reset().draw(2)",
    "e = q(2); e.draw(1); e.fast_forward(2).draw(2)",
    "e = q(2); e.draw(1); e.draw_base2(2)",
    "q(2).draw(2, out=torch.empty(0))",
    "q(2).draw(0)",
    "q(2).draw(3, dtype=torch.int64)",
    "q(1111).draw(3)[:, ::100]",
    "q(0)",
    "q(21202)",
    "repr(q(2)), repr(q(3, scramble=True, seed=5))",
]
