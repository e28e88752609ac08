"""RMSprop (Hinton's lecture), also centered and with momentum."""

from ._rules import RuleOptimizer, as_real, check, check_lr, decayed, new_step, signed, zeros_like
from .optimizer import _get_value, _to_scalar

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(RuleOptimizer):
    """RMSprop. State: step, square_avg (momentum_buffer, grad_avg if asked for)."""

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha=0.99,
        eps=1e-8,
        weight_decay=0,
        momentum=0,
        centered=False,
        capturable=False,
        foreach=None,
        maximize=False,
        differentiable=False,
    ):
        check_lr(lr, foreach, capturable)
        check(eps, eps >= 0.0, "epsilon value")
        check(momentum, momentum >= 0.0, "momentum value")
        check(weight_decay, weight_decay >= 0.0, "weight_decay value")
        check(alpha, alpha >= 0.0, "alpha value")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "alpha": alpha,
                "eps": eps,
                "centered": centered,
                "weight_decay": weight_decay,
                "capturable": capturable,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
            },
        )

    def _new_state(self, param, group):
        state = {"step": new_step(param, group), "square_avg": zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)
        return state

    def _run(self, group, rows):
        states = [s for _, _, s in rows]
        rmsprop(
            [p for p, _, _ in rows],
            [g for _, g, _ in rows],
            [s["square_avg"] for s in states],
            [s["grad_avg"] for s in states] if group["centered"] else [],
            [s["momentum_buffer"] for s in states] if group["momentum"] > 0 else [],
            [s["step"] for s in states],
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            capturable=group["capturable"],
            lr=group["lr"],
            alpha=group["alpha"],
            eps=group["eps"],
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            centered=group["centered"],
        )


def rmsprop(
    params,
    grads,
    square_avgs,
    grad_avgs,
    momentum_buffer_list,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    lr,
    alpha,
    eps,
    weight_decay,
    momentum,
    centered,
):
    """Update `params` in place by one step of RMSprop."""
    lr = _get_value(_to_scalar(lr))
    for i, param in enumerate(params):
        state_steps[i] += 1
        grad = decayed(signed(grads[i], maximize), param, weight_decay)
        grad_avg = grad_avgs[i] if centered else None
        buffer = momentum_buffer_list[i] if momentum > 0 else None
        param, grad, square_avg, grad_avg, buffer = as_real(param, grad, square_avgs[i], grad_avg, buffer)
        square_avg.mul_(alpha).addcmul_(grad, grad, value=1 - alpha)
        second = square_avg.clone() if differentiable else square_avg
        if centered:
            grad_avg.lerp_(grad, 1 - alpha)
            mean = grad_avg.clone() if differentiable else grad_avg
            average = second.addcmul(mean, mean, value=-1).sqrt()
        else:
            average = second.sqrt()
        average = average.add(eps)
        if momentum > 0:
            buffer.mul_(momentum).addcdiv_(grad, average)
            param.add_(buffer, alpha=-lr)
        else:
            param.addcdiv_(grad, average, value=-lr)
