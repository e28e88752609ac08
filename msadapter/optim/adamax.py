"""Adamax: Adam with the infinity norm."""

from .. import ops
from ._rules import (
    RuleOptimizer,
    as_real,
    check,
    check_betas,
    check_lr,
    decayed,
    new_step,
    signed,
    zeros_like,
)
from .optimizer import _get_value, _to_scalar

__all__ = ["Adamax", "adamax"]


class Adamax(RuleOptimizer):
    """Adamax. State: step, exp_avg, exp_inf."""

    def __init__(
        self,
        params,
        lr=2e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        capturable=False,
    ):
        check_lr(lr, foreach, capturable)
        check(eps, eps >= 0.0, "epsilon value")
        check_betas(betas)
        check(weight_decay, weight_decay >= 0.0, "weight_decay value")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "capturable": capturable,
            },
        )

    def _new_state(self, param, group):
        return {"step": new_step(param, group), "exp_avg": zeros_like(param), "exp_inf": zeros_like(param)}

    def _run(self, group, rows):
        beta1, beta2 = group["betas"]
        states = [s for _, _, s in rows]
        adamax(
            [p for p, _, _ in rows],
            [g for _, g, _ in rows],
            [s["exp_avg"] for s in states],
            [s["exp_inf"] for s in states],
            [s["step"] for s in states],
            maximize=group["maximize"],
            differentiable=group["differentiable"],
            capturable=group["capturable"],
            eps=group["eps"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
        )


def adamax(
    params,
    grads,
    exp_avgs,
    exp_infs,
    state_steps,
    foreach=None,
    maximize=False,
    differentiable=False,
    capturable=False,
    has_complex=False,
    *,
    eps,
    beta1,
    beta2,
    lr,
    weight_decay,
):
    """Update `params` in place by one step of Adamax."""
    lr = _to_scalar(lr)
    for param, grad, exp_avg, exp_inf, step in zip(
        params, grads, exp_avgs, exp_infs, state_steps, strict=True
    ):
        step += 1
        grad = decayed(signed(grad, maximize), param, weight_decay)
        param, grad, exp_avg, exp_inf = as_real(param, grad, exp_avg, exp_inf)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_inf.copy_(ops.maximum(exp_inf.mul_(beta2), grad.abs().add_(eps)))
        size = lr / (1 - beta1 ** _get_value(step))
        numerator, denominator = (exp_avg.clone(), exp_inf.clone()) if differentiable else (exp_avg, exp_inf)
        param.addcdiv_(numerator, denominator, value=-_get_value(size))
