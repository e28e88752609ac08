"""NAdam (Dozat, 2016): Adam with Nesterov momentum."""

from .. import ops
from ._rules import (
    RuleOptimizer,
    as_real,
    check_steps,
    decay,
    new_step,
    signed,
    zeros_like,
)
from .optimizer import _get_scalar_dtype, _get_value, _to_scalar

__all__ = ["NAdam", "nadam"]


class NAdam(RuleOptimizer):
    """NAdam. State: step, mu_product, exp_avg, exp_avg_sq."""

    _options = (
        "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize "
        "foreach capturable differentiable"
    )

    def __init__(self, params, lr=0.002, betas=(0.9, 0.999), eps=1e-08, weight_decay=0,
            momentum_decay=0.004, decoupled_weight_decay=False, *, foreach=None, maximize=False,
            capturable=False, differentiable=False):  # fmt: skip
        super().__init__(params, locals())

    def _new_state(self, param, group):
        device = param.device if group["capturable"] else "cpu"
        return {
            "step": new_step(param, group),
            "mu_product": ops.ones((), dtype=_get_scalar_dtype(), device=device),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }

    def _run(self, group, rows):
        self._apply(nadam, group, rows, "exp_avg", "exp_avg_sq", "mu_product", "step")


def nadam(params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, decoupled_weight_decay=False,
        foreach=None, capturable=False, differentiable=False, has_complex=False, maximize=False, *, beta1,
        beta2, lr, weight_decay, momentum_decay, eps):  # fmt: skip
    """Update `params` in place by one step of NAdam."""
    check_steps(state_steps)
    lr = _get_value(_to_scalar(lr))
    rows = zip(params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, strict=True)
    for param, grad, exp_avg, exp_avg_sq, mu_product, step_t in rows:
        grad = signed(grad, maximize)
        param, grad, exp_avg, exp_avg_sq = as_real(param, grad, exp_avg, exp_avg_sq)
        step_t += 1
        step = _get_value(step_t)
        grad = decay(param, grad, lr, weight_decay, decoupled_weight_decay)
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * momentum_decay)))
        mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * momentum_decay)))
        mu_product *= mu
        product = _get_value(mu_product)
        exp_avg.lerp_(grad, 1 - beta1)
        exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        denominator = exp_avg_sq.div(1 - beta2**step).sqrt().add(eps)
        param.addcdiv_(grad, denominator, value=-lr * (1.0 - mu) / (1.0 - product))
        average = exp_avg.clone() if differentiable else exp_avg
        param.addcdiv_(average, denominator, value=(-lr * mu_next) / (1.0 - product * mu_next))
