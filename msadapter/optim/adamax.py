"""Adamax: Adam with the infinity norm."""

from .. import ops
from ._rules import (
    RuleOptimizer,
    as_real,
    check_steps,
    decayed,
    new_step,
    signed,
    zeros_like,
)
from .optimizer import _get_value, _to_scalar

__all__ = ["Adamax", "adamax"]


class Adamax(RuleOptimizer):
    """Adamax. State: step, exp_avg, exp_inf."""

    _options = "lr betas eps weight_decay foreach maximize differentiable capturable"

    def __init__(self, params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, foreach=None, *,
            maximize=False, differentiable=False, capturable=False):  # fmt: skip
        super().__init__(params, locals())

    def _new_state(self, param, group):
        return {"step": new_step(param, group), "exp_avg": zeros_like(param), "exp_inf": zeros_like(param)}

    def _run(self, group, rows):
        self._apply(adamax, group, rows, "exp_avg", "exp_inf", "step")


def adamax(params, grads, exp_avgs, exp_infs, state_steps, foreach=None, maximize=False,
        differentiable=False, capturable=False, has_complex=False, *, eps, beta1, beta2, lr,
        weight_decay):  # fmt: skip
    """Update `params` in place by one step of Adamax."""
    check_steps(state_steps)
    lr = _to_scalar(lr)
    for param, grad, exp_avg, exp_inf, step in zip(
        params, grads, exp_avgs, exp_infs, state_steps, strict=True
    ):
        step += 1
        grad = decayed(signed(grad, maximize), param, weight_decay)
        param, grad, exp_avg, exp_inf = as_real(param, grad, exp_avg, exp_inf)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_inf.mul_(beta2)
        before = exp_inf.clone() if differentiable else exp_inf
        exp_inf.copy_(ops.maximum(before, grad.abs().add_(eps)))
        size = lr / (1 - beta1 ** _get_value(step))
        numerator, denominator = (exp_avg.clone(), exp_inf.clone()) if differentiable else (exp_avg, exp_inf)
        param.addcdiv_(numerator, denominator, value=-_get_value(size))
