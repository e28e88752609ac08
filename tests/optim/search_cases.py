"""L-BFGS on functions that lead its line search through every branch, and with every limit."""

from __future__ import annotations

import copy
import math

from tests.golden.answers import refusal


def _start(torch, *values):
    return torch.nn.Parameter(torch.tensor(values, dtype=torch.float64))


def _rosenbrock(x):
    return (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2


def _waves(a, b, c):
    """A wavy bowl, in which line searches meet local minima, steep walls and flat parts."""
    return lambda x: (0.05 * x**2 + a * (b * x + c).sin()).sum()


def _trace(torch, function, start, steps=3, **options):
    x = _start(torch, *start)
    optimizer = torch.optim.LBFGS([x], **options)
    points = []

    def closure():
        optimizer.zero_grad()
        loss = function(x)
        loss.backward()
        points.append([*x.tolist(), loss.item()])
        return loss

    found = []
    for _ in range(steps):
        loss = optimizer.step(closure)
        state = optimizer.state[x]
        found.append(
            [
                loss.item(),
                x.tolist(),
                state["func_evals"],
                state["n_iter"],
                float(state.get("t", 0.0)),
                len(state.get("old_dirs", [])),
                float(state.get("prev_loss", 0.0)),
                float(state.get("H_diag", 0.0)),
            ]
        )
    return [found, points[:40]]


def _case(function, start, **options):
    return lambda torch: _trace(torch, function, start, **options)


WOLFE = {"line_search_fn": "strong_wolfe"}
CASES = {
    "plain": _case(_rosenbrock, (-0.5, 0.7), lr=0.1),
    "few_iterations": _case(_rosenbrock, (-0.5, 0.7), lr=0.1, max_iter=3),
    "few_evaluations": _case(_rosenbrock, (-0.5, 0.7), lr=0.1, max_eval=4),
    "one_iteration": _case(_rosenbrock, (-0.5, 0.7), lr=0.1, max_iter=1),
    "short_history": _case(_rosenbrock, (-0.5, 0.7), lr=0.1, history_size=2),
    "loose_gradient": _case(_rosenbrock, (-0.5, 0.7), lr=0.1, tolerance_grad=0.5),
    "loose_change": _case(_rosenbrock, (-0.5, 0.7), lr=0.1, tolerance_change=0.02),
    "at_the_minimum": _case(_rosenbrock, (1.0, 1.0), lr=0.1),
    "small_gradient": _case(lambda x: 1e-3 * (x**2).sum(), (0.2, 0.1), lr=1.0),
    "wolfe": _case(_rosenbrock, (-0.5, 0.7), **WOLFE),
    "wolfe_small_rate": _case(_rosenbrock, (-0.5, 0.7), lr=0.01, **WOLFE),
    "wolfe_large_rate": _case(_rosenbrock, (-0.5, 0.7), lr=30.0, **WOLFE),
    "wolfe_few_evaluations": _case(_rosenbrock, (-0.5, 0.7), lr=1e-4, max_eval=3, **WOLFE),
    "wolfe_one_iteration": _case(_rosenbrock, (-0.5, 0.7), lr=0.01, max_iter=1, **WOLFE),
    "wolfe_loose_gradient": _case(_rosenbrock, (-0.5, 0.7), tolerance_grad=0.5, **WOLFE),
    "wolfe_loose_change": _case(_rosenbrock, (-0.5, 0.7), tolerance_change=0.02, **WOLFE),
    "wolfe_downhill": _case(lambda x: (1 + x**2).log().sum(), (40.0, -30.0), lr=0.5, **WOLFE),
    "wolfe_exponential": _case(lambda x: (x.exp() - 3 * x).sum(), (-9.0, 4.0), lr=3.0, **WOLFE),
} | {
    f"wolfe_waves_{k}": _case(
        _waves(0.3 + 0.2 * (k % 5), 1.0 + 0.7 * (k % 7), 0.4 * k),
        (math.cos(k) * 4, math.sin(3 * k) * 5),
        lr=(0.02, 0.3, 1.0, 4.0, 25.0)[k % 5],
        max_iter=2 + k % 3,
        max_eval=(3, 9, 25, 6)[k % 4],
        steps=2,
        **WOLFE,
    )
    for k in range(48)
    if k != 34  # its path magnifies the rounding of the sine
}


def several_parameters(torch):
    """Parameters of several shapes. One has no gradient, and one is complex."""
    a, b = (
        _start(torch, 1.0, -2.0),
        torch.nn.Parameter(torch.tensor([[0.5 + 1j, -1.0]], dtype=torch.complex128)),
    )
    unused, c = _start(torch, 7.0), torch.nn.Parameter(torch.tensor(3.0, dtype=torch.float64))
    optimizer = torch.optim.LBFGS([a, b, unused, c], lr=0.3, max_iter=4)

    def closure():
        optimizer.zero_grad()
        loss = (a**2).sum() * 2 + ((b - 1j).abs() ** 2).sum() + (c - a[0]) ** 2
        loss.backward()
        return loss

    losses = [optimizer.step(closure).item() for _ in range(2)]
    return [losses, a.tolist(), torch.view_as_real(b.detach()).tolist(), unused.tolist(), c.item()]


def resumed(torch):
    x, y = _start(torch, -0.5, 0.7), None
    first = torch.optim.LBFGS([x], lr=0.1, max_iter=3)

    def closure_of(optimizer, p):
        def closure():
            optimizer.zero_grad()
            loss = _rosenbrock(p)
            loss.backward()
            return loss

        return closure

    first.step(closure_of(first, x))
    y = torch.nn.Parameter(x.detach().clone())
    second = torch.optim.LBFGS([y], lr=0.1, max_iter=3)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    first.step(closure_of(first, x))
    second.step(closure_of(second, y))
    return [x.tolist(), y.tolist(), sorted(second.state[y])]


def errors(torch):
    x = _start(torch, 1.0)
    found = [
        refusal(torch.optim.LBFGS, [{"params": [x]}, {"params": [_start(torch, 1.0)]}]),
        refusal(torch.optim.LBFGS, [x], lr=-0.1),
        refusal(torch.optim.LBFGS, [x], lr=torch.ones(2)),
    ]
    optimizer = torch.optim.LBFGS([x], line_search_fn="other")

    def closure():
        loss = (x**2).sum()
        loss.backward()
        return loss

    return [*found, refusal(optimizer.step, closure), optimizer.param_groups[0]["max_eval"]]


def rate_as_a_tensor(torch):
    x = _start(torch, -0.5, 0.7)
    optimizer = torch.optim.LBFGS([x], lr=torch.tensor(0.1, dtype=torch.float64), max_iter=3)

    def closure():
        optimizer.zero_grad()
        loss = _rosenbrock(x)
        loss.backward()
        return loss

    optimizer.step(closure)
    return x.tolist()


def gradients_are_on_inside(torch):
    x = _start(torch, -0.5, 0.7)
    optimizer = torch.optim.LBFGS([x], lr=0.1, max_iter=3)
    modes = []

    def closure():
        modes.append(torch.is_grad_enabled())
        optimizer.zero_grad()
        loss = _rosenbrock(x)
        loss.backward()
        return loss

    with torch.no_grad():
        optimizer.step(closure)
    return [modes, torch.is_grad_enabled()]
