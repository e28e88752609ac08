"""Random draws that must be PyTorch's: EXACT bit for bit on every machine, CLOSE where a C library's log or cos takes part.

Each case starts from torch.manual_seed(SEED); its result is followed by the state of the generator.
"""

import hashlib

SEED = 1234

_FLOATS = ("float32", "float64", "float16", "bfloat16")
EXACT = [
    *[f"torch.rand({n}, dtype=torch.{d})" for n in (1, 15, 16, 1000) for d in _FLOATS],
    *[f"torch.empty(40, dtype=torch.{d}).uniform_(-2.5, 3.1)" for d in _FLOATS],
    *[f"torch.randn({n})" for n in (16, 17, 31, 33, 1000, 70001)],
    *[f"torch.randn({n}, dtype=torch.{d})" for n in (16, 17, 1000) for d in ("float16", "bfloat16")],
    "torch.empty(64, 3).normal_(0.1, 0.02)",
    "torch.randn(20, dtype=torch.complex64)",
    *[
        f"torch.empty(33, dtype=torch.{d}).random_()"
        for d in ("int64", "int32", "int16", "int8", "uint8", "bool", "float32", "float64")
    ],
    *[
        f"torch.empty(33, dtype=torch.{d}).random_(0, 100)"
        for d in ("int64", "int32", "int8", "float32", "bfloat16")
    ],
    "torch.empty(33, dtype=torch.int64).random_(-5, 2**50)",
    "torch.empty(33, dtype=torch.int64).random_(-2**63, None)",
    "torch.empty(33, dtype=torch.int32).random_(-2**30, 2**29)",
    "torch.empty(33, dtype=torch.float16).random_(0, 65504)",
    "torch.randint(3, 999, (50,))",
    "torch.randint(10, (3, 4), dtype=torch.int32)",
    "torch.randint(0, 2**40, (9,))",
    *[f"torch.randperm({n})" for n in (0, 1, 10, 1000)],
    "torch.randperm(100, dtype=torch.int32)",
    *[
        f"torch.empty(100, dtype=torch.{d}).bernoulli_({p})"
        for d in ("float32", "float64", "bfloat16", "int64", "bool")
        for p in (0.1, 0.5)
    ],
    *[f"torch.bernoulli(torch.full((100,), 0.3, dtype=torch.{d}))" for d in _FLOATS],
    "torch.bernoulli(torch.zeros(50), 0.7)",
    *[
        f"torch.nn.functional.dropout(torch.ones(100, dtype=torch.{d}), {p})"
        for d in _FLOATS
        for p in (0.1, 0.5)
    ],
    "torch.nn.functional.dropout2d(torch.ones(4, 8, 3, 3), 0.3)",
    "torch.nn.functional.alpha_dropout(torch.ones(50), 0.2, True)",
    "torch.rand(4, 5).t().contiguous().t().uniform_()",
    "torch.zeros(8, 9).t().uniform_()",
    "torch.zeros(8, 9)[2:, ::2].uniform_()",
    "torch.empty(4, 6, 3, 3, memory_format=torch.channels_last).uniform_()",
    "torch.rand_like(torch.zeros(5, 7).t())",
    "torch.randint_like(torch.zeros(9), 3, 8)",
    "torch.multinomial(torch.arange(1.0, 9.0), 20, True)",
    "torch.multinomial(torch.arange(1.0, 21.0).reshape(2, 10), 4, True)",
    "torch.nn.init.kaiming_uniform_(torch.empty(8, 6), a=5 ** 0.5)",
]
CLOSE = [
    *[f"torch.randn({n})" for n in (1, 2, 7, 15)],
    "torch.randn(3, dtype=torch.float64)",
    "torch.randn(50, dtype=torch.float64)",
    "torch.zeros(8, 9).t().normal_()[1]",
    "torch.zeros(8, 9)[:, 2:7].normal_(1, 2)",
    "torch.randn_like(torch.zeros(5, 7).t())",
    "torch.normal(torch.arange(20.0), 0.5)",
    "torch.normal(2.0, torch.ones(20))",
    "torch.normal(torch.zeros(3, 1), torch.ones(4))",
    "torch.normal(0.0, 1.0, (5, 5))",
    "torch.empty(20).exponential_(1.5)",
    "torch.empty(20).cauchy_(0.5, 1.5)",
    "torch.empty(20).log_normal_(0.5, 0.2)",
    "torch.empty(20).geometric_(0.3)",
    "torch.poisson(torch.linspace(0, 30, 40))",
    "torch.binomial(torch.full((30,), 50.0), torch.linspace(0, 1, 30))",
    "torch._standard_gamma(torch.linspace(0.1, 5, 20))",
    "torch._sample_dirichlet(torch.linspace(0.5, 3, 12).reshape(3, 4))",
    "torch.multinomial(torch.arange(1.0, 9.0), 5)",
    "torch.nn.init.trunc_normal_(torch.empty(30), std=0.02)",
    "torch.nn.init.xavier_normal_(torch.empty(5, 7))",
]
ERRORS = [
    "torch.empty(3).uniform_(2, 1)",
    "torch.empty(3).normal_(0, -1)",
    "torch.empty(3, dtype=torch.int64).normal_()",
    "torch.empty(3).exponential_(0)",
    "torch.empty(3).geometric_(1.5)",
    "torch.empty(3).bernoulli_(1.5)",
    "torch.randperm(-1)",
    "torch.randint(5, 5, (2,))",
    "torch.multinomial(torch.ones(3), 4)",
    "torch.multinomial(torch.ones(3), 0)",
    "torch.multinomial(torch.tensor([1.0, -1.0]), 1)",
    "torch.multinomial(torch.zeros(3), 1, True)",
    "torch.empty(3, dtype=torch.int8).random_(0, 200)",
    "torch.Generator().set_state(torch.zeros(10, dtype=torch.uint8))",
    "torch.Generator().set_state(torch.zeros(10))",
    "torch.manual_seed(2 ** 65)",
    "torch.poisson(torch.tensor([-1.0]))",
    "torch.zeros(3, requires_grad=True).normal_()",
]


def digest(torch, tensor) -> str:
    """A hash of a tensor's dtype, shape, strides and bytes."""
    text = f"{tensor.dtype}{list(tensor.shape)}{list(tensor.stride())}".encode()
    raw = tensor.contiguous().flatten()
    raw = torch.view_as_real(raw).contiguous().flatten() if raw.is_complex() else raw
    numbers = bytes(raw.view(torch.uint8).tolist() if raw.numel() else [])
    return hashlib.sha256(text + numbers).hexdigest()[:16]


def _bits(torch, case: str) -> list:
    torch.manual_seed(SEED)
    return [digest(torch, eval(case, {"torch": torch})), digest(torch, torch.get_rng_state())]


def _values(torch, case: str) -> list:
    torch.manual_seed(SEED)
    value = eval(case, {"torch": torch})
    return [value, torch.get_rng_state()[8:24].tolist()]  # as many words are drawn


def _state(torch, seed: int) -> list:
    torch.manual_seed(seed)
    torch.randn(3)
    return [torch.initial_seed(), digest(torch, torch.get_rng_state())]


def _continued(torch) -> list:
    """A state, and the numbers that are drawn after it."""
    torch.manual_seed(7)
    torch.randn(5)
    return [bytes(torch.get_rng_state().tolist()).hex(), torch.randn(4)]


def golden_cases() -> dict:
    return {
        **{f"bits {case}": lambda t, c=case: _bits(t, c) for case in EXACT},
        **{f"values {case}": lambda t, c=case: _values(t, c) for case in CLOSE},
        **{f"error {case}": lambda t, c=case: eval(c, {"torch": t}) for case in ERRORS},
        **{f"state {seed}": lambda t, s=seed: _state(t, s) for seed in (0, 42, -1, 2**40 + 7)},
        "state and what follows": _continued,
    }
