"""RAdam (Liu et al., 2019): Adam that uses its denominator only when enough steps have determined it."""

from ._rules import RuleOptimizer, as_real, check_steps, decay, new_step, signed, zeros_like
from .optimizer import _get_value, _to_scalar

__all__ = ["RAdam", "radam"]


class RAdam(RuleOptimizer):
    """RAdam. State: step, exp_avg, exp_avg_sq."""

    _options = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0,
            decoupled_weight_decay=False, *, foreach=None, maximize=False, capturable=False,
            differentiable=False):  # fmt: skip
        super().__init__(params, locals())

    def _new_state(self, param, group):
        return {"step": new_step(param, group), "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}

    def _run(self, group, rows):
        self._apply(radam, group, rows, "exp_avg", "exp_avg_sq", "step")


def radam(params, grads, exp_avgs, exp_avg_sqs, state_steps, decoupled_weight_decay=False, foreach=None,
        differentiable=False, capturable=False, has_complex=False, maximize=False, *, beta1, beta2, lr,
        weight_decay, eps):  # fmt: skip
    """Update `params` in place by one step of RAdam."""
    check_steps(state_steps)
    lr = _to_scalar(lr)
    rho_inf = 2 / (1 - beta2) - 1
    for param, grad, exp_avg, exp_avg_sq, step_t in zip(
        params, grads, exp_avgs, exp_avg_sqs, state_steps, strict=True
    ):
        grad = signed(grad, maximize)
        param, grad, exp_avg, exp_avg_sq = as_real(param, grad, exp_avg, exp_avg_sq)
        step_t += 1
        step = _get_value(step_t)
        grad = decay(param, grad, lr, weight_decay, decoupled_weight_decay)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        correction1, correction2 = 1 - beta1**step, 1 - beta2**step
        update = exp_avg / correction1 * lr
        rho = rho_inf - 2 * step * (beta2**step) / correction2
        if rho > 5.0:
            rectified = ((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
            second = exp_avg_sq.clone() if differentiable else exp_avg_sq
            update = update * (correction2**0.5 / second.sqrt().add(eps)) * rectified
        param.add_(update, alpha=-1.0)
