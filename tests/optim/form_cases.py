"""Every optimizer with options away from their defaults, in every form: the same code runs on PyTorch and on msadapter.

The gradients are drawn, not computed: some are zero, some tiny, some large, and each step has its own. Parameters are a
matrix, a vector and a single number.
"""

import numpy as np

BETAS = {"betas": (0.7, 0.9)}
OPTIONS = {
    "Adam": [
        {"lr": 0.1, **BETAS, "eps": 0.3, "weight_decay": 0.2},
        {"lr": 0.1, **BETAS, "eps": 0.03, "amsgrad": True, "maximize": True},
        {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.2},
    ],
    "AdamW": [
        {"lr": 0.1, **BETAS, "eps": 0.3, "weight_decay": 0.2},
        {"lr": 0.1, "amsgrad": True, "maximize": True, "weight_decay": 0.3},
    ],
    "SGD": [
        {"lr": 0.1, "momentum": 0.8, "dampening": 0.3, "weight_decay": 0.2},
        {"lr": 0.1, "momentum": 0.8, "nesterov": True, "maximize": True},
        {"lr": 0.1, "weight_decay": 0.2, "maximize": True},
    ],
    "Adamax": [{"lr": 0.1, **BETAS, "eps": 0.3, "weight_decay": 0.2}, {"lr": 0.1, "maximize": True}],
    "NAdam": [
        {"lr": 0.1, **BETAS, "eps": 0.3, "weight_decay": 0.2, "momentum_decay": 0.3},
        {"lr": 0.1, "decoupled_weight_decay": True, "weight_decay": 0.2, "maximize": True},
    ],
    "RAdam": [
        {"lr": 0.1, **BETAS, "eps": 0.3, "weight_decay": 0.2},
        {
            "lr": 0.1,
            "betas": (0.7, 0.99),
            "decoupled_weight_decay": True,
            "weight_decay": 0.2,
            "maximize": True,
        },
    ],
    "Adagrad": [
        {"lr": 0.3, "lr_decay": 0.4, "weight_decay": 0.2, "initial_accumulator_value": 0.2, "eps": 0.3},
        {"lr": 0.3, "maximize": True, "eps": 0.01},
    ],
    "Adadelta": [{"lr": 0.4, "rho": 0.6, "eps": 0.3, "weight_decay": 0.2}, {"lr": 0.4, "maximize": True}],
    "RMSprop": [
        {"lr": 0.1, "alpha": 0.7, "eps": 0.3, "weight_decay": 0.2},
        {"lr": 0.1, "alpha": 0.7, "eps": 0.2, "momentum": 0.8, "centered": True, "maximize": True},
        {"lr": 0.1, "momentum": 0.8, "eps": 0.1},
    ],
    "Rprop": [
        {"lr": 0.1, "etas": (0.3, 1.4), "step_sizes": (0.05, 0.15)},
        {"lr": 0.1, "maximize": True, "etas": (0.6, 1.7)},
    ],
    "ASGD": [
        {"lr": 0.1, "lambd": 0.3, "alpha": 0.5, "t0": 2, "weight_decay": 0.2},
        {"lr": 0.1, "t0": 0, "maximize": True},
    ],
    "Adafactor": [
        {"lr": 0.1, "beta2_decay": -0.5, "eps": (0.01, 0.2), "d": 1.5, "weight_decay": 0.2},
        {"lr": 0.1, "maximize": True},
    ],
}
FUSED = ("Adam", "AdamW", "SGD", "Adagrad")
FORMS = {"default": {}, "loop": {"foreach": False}, "foreach": {"foreach": True}, "fused": {"fused": True}}
WITHOUT_DIFFERENTIABLE = ("Adafactor",)
DTYPES = ("float64", "float32", "bfloat16", "complex128")
SHAPES = ((3, 2), (4,), ())
STEPS = 6


def cases() -> dict[str, tuple[str, dict, str]]:
    """(optimizer, options, dtype) by name. Only the first options run in the narrow dtypes and in complex numbers."""
    found = {}
    for kind, rows in OPTIONS.items():
        for k, options in enumerate(rows):
            for dtype in DTYPES if k == 0 else DTYPES[:1]:
                if dtype != "complex128" or kind != "Adafactor":
                    found[f"{kind}-{k}-{dtype}"] = kind, options, dtype
    return found


def forms(kind: str, dtype: str) -> dict[str, dict]:
    """The forms of an optimizer in PyTorch, by name. Fused kernels do not support complex numbers."""
    fused = kind in FUSED and dtype != "complex128"
    return {name: form for name, form in FORMS.items() if name != "fused" or fused}


def drawn(torch, dtype: str, seed: int) -> list:
    """One tensor for each shape, with magnitudes from 0 to about 100."""
    rng = np.random.RandomState(seed)
    found = []
    for shape in SHAPES:
        values = (
            rng.randn(*shape, 2)
            * np.array([0.0, 1e-6, 0.1, 1.0, 1.0, 1.0, 30.0])[rng.randint(0, 7, (*shape, 1))]
        )
        x = torch.tensor(values, dtype=torch.float64)
        found.append(
            (torch.view_as_complex(x) if dtype == "complex128" else x[..., 0])
            .contiguous()
            .to(getattr(torch, dtype))
        )
    return found


def numbers(torch, x) -> list[float]:
    """All numbers of a tensor as float64. Complex numbers become real and imaginary parts."""
    x = torch.view_as_real(x.detach()) if x.is_complex() else x.detach()
    return x.to(torch.float64).contiguous().reshape(-1).tolist()


def run(torch, name: str, form: dict, lr_tensor: bool = False) -> dict:
    """Parameters after every second step, and the state at the end, by name."""
    kind, options, dtype = cases()[name]
    weights = [torch.nn.Parameter(w) for w in drawn(torch, dtype, 1)]
    options = {**options, **form}
    if lr_tensor:
        options["lr"] = torch.tensor(options["lr"], dtype=torch.float64)
    optimizer = getattr(torch.optim, kind)(weights, **options)
    seen = {}
    for step in range(STEPS):
        for w, g in zip(weights, drawn(torch, dtype, 10 + step), strict=True):
            w.grad = g
        optimizer.step()
        if step % 2:
            seen[f"after {step + 1}"] = [numbers(torch, w) for w in weights]
    for key in sorted(optimizer.state[weights[0]]):
        values = (optimizer.state[w].get(key) for w in weights)
        seen[key] = [numbers(torch, v) for v in values if isinstance(v, torch.Tensor)]
    return seen


def run_differentiable(torch, kind: str, row: int, steps: int) -> list[list[float]]:
    """The gradients of the parameters after the steps with respect to their initial values and to every step's gradient."""
    options = OPTIONS[kind][row]
    starts = [w.requires_grad_() for w in drawn(torch, "float64", 1)]
    weights = [w.clone() for w in starts]
    optimizer = getattr(torch.optim, kind)(weights, **options, differentiable=True)
    grads = []
    for step in range(steps):
        # Away from zero, where roots have no derivative.
        given = [(g.sign() + (g == 0)) * (g.abs() + 0.5) for g in drawn(torch, "float64", 10 + step)]
        grads.append([g.requires_grad_() for g in given])
        for w, g in zip(weights, grads[-1], strict=True):
            w.grad = g
        optimizer.step()
    total = sum((w * torch.arange(1.0, w.numel() + 1, dtype=w.dtype).reshape(w.shape)).sum() for w in weights)
    found = torch.autograd.grad(total, [*starts, *sum(grads, [])], allow_unused=True)
    return [[] if g is None else numbers(torch, g) for g in found]


def differentiable(torch) -> dict:
    """Gradients by optimizer, options and number of steps (3, or 1 if PyTorch can differentiate only one).

    The updates are made in place, so some optimizers overwrite values that the gradient of the previous step needs.
    """
    found = {}
    for kind in OPTIONS:
        for row in range(len(OPTIONS[kind]) if kind not in WITHOUT_DIFFERENTIABLE else 0):
            for steps in (3, 1):
                try:
                    found[f"{kind}-{row}-{steps}"] = run_differentiable(torch, kind, row, steps)
                except RuntimeError:
                    continue
                break
    return found


def golden_answers(torch) -> dict:
    values = {name: run(torch, name, FORMS["loop"]) for name in cases()}
    return values | {f"gradients {name}": found for name, found in differentiable(torch).items()}
