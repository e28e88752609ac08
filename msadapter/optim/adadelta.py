"""Adadelta (Zeiler, 2012)."""

from .. import ops
from ._rules import RuleOptimizer, as_real, check, check_steps, decayed, new_step, signed, zeros_like
from .optimizer import _get_value, _to_scalar

__all__ = ["Adadelta", "adadelta"]


class Adadelta(RuleOptimizer):
    """Adadelta. State: step, square_avg, acc_delta."""

    _options = "lr rho eps weight_decay maximize capturable foreach differentiable"

    def __init__(self, params, lr=1.0, rho=0.9, eps=1e-06, weight_decay=0, foreach=None, *,
            capturable=False, maximize=False, differentiable=False):  # fmt: skip
        check(rho, 0.0 <= rho <= 1.0, "rho value")
        super().__init__(params, locals())

    def _new_state(self, param, group):
        return {
            "step": new_step(param, group),
            "square_avg": zeros_like(param),
            "acc_delta": zeros_like(param),
        }

    def _run(self, group, rows):
        self._apply(adadelta, group, rows, "square_avg", "acc_delta", "step")


def adadelta(params, grads, square_avgs, acc_deltas, state_steps, capturable=False, foreach=None,
        differentiable=False, has_complex=False, *, lr, rho, eps, weight_decay, maximize):  # fmt: skip
    """Update `params` in place by one step of Adadelta."""
    check_steps(state_steps)
    lr = _to_scalar(lr)
    for param, grad, square_avg, acc_delta, step in zip(
        params, grads, square_avgs, acc_deltas, state_steps, strict=True
    ):
        step += 1
        grad = decayed(signed(grad, maximize), param, weight_decay)
        real, grad, square_avg, acc_delta = as_real(param, grad, square_avg, acc_delta)
        square_avg.mul_(rho).addcmul_(grad, grad, value=1 - rho)
        std = square_avg.add(eps).sqrt_()
        delta = acc_delta.add(eps).sqrt_()
        if differentiable:
            delta = delta.clone()
        delta.div_(std).mul_(grad)
        acc_delta.mul_(rho).addcmul_(delta, delta, value=1 - rho)
        param.add_(ops.view_as_complex(delta) if param.is_complex() else delta, alpha=-_get_value(lr))
