"""Limited-memory BFGS with an optional strong Wolfe line search."""

import math

from .. import ops
from ..autograd import enable_grad, no_grad
from ._rules import check_lr
from .optimizer import Optimizer, _to_scalar

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """L-BFGS for one parameter group. `step(closure)` calls the closure several times.

    line_search_fn: None (fixed step) or 'strong_wolfe'. The state is that of the first parameter: func_evals,
    n_iter, d, t, old_dirs, old_stps, ro, H_diag, prev_flat_grad, prev_loss.
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter=20,
        max_eval=None,
        tolerance_grad=1e-7,
        tolerance_change=1e-9,
        history_size=100,
        line_search_fn=None,
    ):
        check_lr(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]
        self._numel_cache = None

    def _gather_flat_grad(self):
        flat = []
        for p in self._params:
            if p.grad is None:
                piece = p.new_zeros(p.numel())
            else:
                piece = (p.grad.to_dense() if p.grad.is_sparse else p.grad).reshape(-1)
            flat.append(ops.view_as_real(piece).reshape(-1) if piece.is_complex() else piece)
        return ops.cat(flat, 0)

    def _add_grad(self, step_size, direction):
        offset = 0
        for p in self._params:
            target = ops.view_as_real(p) if p.is_complex() else p
            count = target.numel()
            target.add_(direction[offset : offset + count].view_as(target), alpha=float(step_size))
            offset += count

    def _directional_evaluate(self, closure, start, t, direction):
        self._add_grad(t, direction)
        loss = float(closure())
        gradient = self._gather_flat_grad()
        for p, value in zip(self._params, start, strict=True):
            p.copy_(value)
        return loss, gradient

    @no_grad()
    def step(self, closure):
        """Do up to max_iter iterations. Returns the loss at the start."""
        group = self.param_groups[0]

        def evaluate():
            with enable_grad():
                return closure()

        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = evaluate()
        state["func_evals"] += 1
        flat_grad = self._gather_flat_grad()
        if flat_grad.abs().max() <= group["tolerance_grad"]:
            return first_loss
        self._iterate(group, state, evaluate, float(first_loss), flat_grad)
        return first_loss

    def _iterate(self, group, state, evaluate, loss, flat_grad):
        lr = _to_scalar(group["lr"])
        tolerance = group["tolerance_change"]
        evaluations, iteration, d, t = 1, 0, state.get("d"), state.get("t")
        while iteration < group["max_iter"]:
            iteration += 1
            state["n_iter"] += 1
            d = self._direction(group, state, flat_grad, d, t)
            state["prev_flat_grad"], state["prev_loss"] = flat_grad.clone(), loss
            t = min(1.0, 1.0 / flat_grad.abs().sum()) * lr if state["n_iter"] == 1 else lr
            slope = flat_grad.dot(d)
            if slope > -tolerance:
                break
            loss, flat_grad, t, used, optimal = self._advance(
                group,
                evaluate,
                d,
                t,
                loss,
                flat_grad,
                slope,
                group["max_eval"] - evaluations,
                last=iteration == group["max_iter"],
            )
            evaluations += used
            state["func_evals"] += used
            if iteration == group["max_iter"] or evaluations >= group["max_eval"] or optimal:
                break
            if d.mul(t).abs().max() <= tolerance or abs(loss - state["prev_loss"]) < tolerance:
                break
        state["d"], state["t"] = d, t

    def _advance(self, group, evaluate, d, t, loss, flat_grad, slope, budget, last):
        used, optimal = 0, False
        if group["line_search_fn"] is not None:
            if group["line_search_fn"] != "strong_wolfe":
                raise RuntimeError("only 'strong_wolfe' is supported")
            start = [p.clone() for p in self._params]
            search = _StrongWolfe(lambda size: self._directional_evaluate(evaluate, start, size, d), d)
            loss, flat_grad, t, used = search.run(t, loss, flat_grad, slope, budget)
            self._add_grad(t, d)
            optimal = bool(flat_grad.abs().max() <= group["tolerance_grad"])
        else:
            self._add_grad(t, d)
            if not last:
                loss = float(evaluate())
                flat_grad = self._gather_flat_grad()
                optimal = bool(flat_grad.abs().max() <= group["tolerance_grad"])
                used = 1
        return loss, flat_grad, t, used, optimal

    @staticmethod
    def _direction(group, state, flat_grad, d, t):
        """Return the quasi-Newton direction. `state` holds the history of steps and gradient changes."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return flat_grad.neg()
        changes, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = flat_grad.sub(state["prev_flat_grad"])
        s = d.mul(t)
        ys = y.dot(s)
        if ys > 1e-10:
            if len(changes) == group["history_size"]:
                for history in (changes, steps, ro):
                    history.pop(0)
            changes.append(y)
            steps.append(s)
            ro.append(1.0 / ys)
            state["H_diag"] = ys / y.dot(y)
        q = flat_grad.neg()
        alphas = state.setdefault("al", [None] * group["history_size"])
        for i in reversed(range(len(changes))):
            alphas[i] = steps[i].dot(q) * ro[i]
            q.add_(changes[i], alpha=-alphas[i].item())
        r = ops.mul(q, state["H_diag"])
        for i in range(len(changes)):
            beta = changes[i].dot(r) * ro[i]
            r.add_(steps[i], alpha=(alphas[i] - beta).item())
        return r


def _cubic_minimum(x1, f1, g1, x2, f2, g2, bounds=None):
    """Return the minimum, inside the bounds, of the cubic through two points with given slopes."""
    low, high = bounds or (min(x1, x2), max(x1, x2))
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if square < 0:
        return (low + high) / 2.0
    d2 = math.sqrt(square)
    if x1 <= x2:
        place = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        place = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(place, low), high)


class _Point:
    """A step size with its loss, its gradient and the slope along the direction."""

    __slots__ = ("t", "loss", "grad", "slope")

    def __init__(self, t, loss, grad, slope):
        self.t, self.loss, self.grad, self.slope = t, loss, grad, slope


class _StrongWolfe:
    """A line search. It brackets a step that meets the strong Wolfe conditions, then narrows the bracket."""

    c1, c2, tolerance = 1e-4, 0.9, 1e-9

    def __init__(self, evaluate, direction):
        self._evaluate = evaluate
        self._direction = direction
        self._width = float(direction.abs().max())
        self._count = 0

    def _at(self, t) -> _Point:
        loss, grad = self._evaluate(t)
        self._count += 1
        return _Point(t, loss, grad, float(grad.dot(self._direction)))

    def run(self, t, loss, grad, slope, budget):
        """Return (loss, gradient, step size, evaluations) of the point that was found."""
        start = _Point(0.0, loss, grad.clone(), float(slope))
        bracket, done, iterations = self._bracket(start, float(t), budget)
        if not done:
            bracket = self._zoom(start, bracket, iterations, budget)
        best = min(bracket, key=lambda point: point.loss)
        return best.loss, best.grad, best.t, self._count

    def _bracket(self, start, t, budget):
        previous, point, iterations = start, self._at(t), 0
        while iterations < budget:
            too_high = point.loss > start.loss + self.c1 * point.t * start.slope
            if too_high or (iterations > 1 and point.loss >= previous.loss):
                return [previous, point], False, iterations
            if abs(point.slope) <= -self.c2 * start.slope:
                return [point], True, iterations
            if point.slope >= 0:
                return [previous, point], False, iterations
            bounds = (point.t + 0.01 * (point.t - previous.t), point.t * 10)
            t = _cubic_minimum(
                previous.t, previous.loss, previous.slope, point.t, point.loss, point.slope, bounds
            )
            previous, point = point, self._at(t)
            iterations += 1
        return [start, point], False, iterations

    def _zoom(self, start, bracket, iterations, budget):
        stuck = False
        low, high = (0, 1) if bracket[0].loss <= bracket[-1].loss else (1, 0)
        while iterations < budget:
            a, b = bracket
            if abs(b.t - a.t) * self._width < self.tolerance:
                break
            t, stuck = self._trial(a, b, stuck)
            point = self._at(t)
            iterations += 1
            if point.loss > start.loss + self.c1 * t * start.slope or point.loss >= bracket[low].loss:
                bracket[high] = point
                low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
                continue
            if abs(point.slope) <= -self.c2 * start.slope:
                return [point]
            if point.slope * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = point
        return [bracket[low]]

    @staticmethod
    def _trial(a, b, stuck):
        """Return the next step size.

        If the last trial was close to an end of the bracket, stay a tenth of its length away from both ends.
        """
        t = _cubic_minimum(a.t, a.loss, a.slope, b.t, b.loss, b.slope)
        smallest, largest = min(a.t, b.t), max(a.t, b.t)
        margin = 0.1 * (largest - smallest)
        if min(largest - t, t - smallest) >= margin:
            return t, False
        if not (stuck or t >= largest or t <= smallest):
            return t, True
        return (largest - margin if abs(t - largest) < abs(t - smallest) else smallest + margin), False
