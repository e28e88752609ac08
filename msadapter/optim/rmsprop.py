"""RMSprop (Hinton's lecture), also centered and with momentum."""

from ._rules import RuleOptimizer, as_real, check, check_steps, decayed, new_step, signed, zeros_like
from .optimizer import _get_value, _to_scalar

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(RuleOptimizer):
    """RMSprop. State: step, square_avg (momentum_buffer, grad_avg if asked for)."""

    _options = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"

    def __init__(self, params, lr=0.01, alpha=0.99, eps=1e-08, weight_decay=0, momentum=0, centered=False,
            capturable=False, foreach=None, maximize=False, differentiable=False):  # fmt: skip
        check(alpha, alpha >= 0.0, "alpha value")
        super().__init__(params, locals())

    def _new_state(self, param, group):
        state = {"step": new_step(param, group), "square_avg": zeros_like(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = zeros_like(param)
        if group["centered"]:
            state["grad_avg"] = zeros_like(param)
        return state

    def _run(self, group, rows):
        self._apply(rmsprop, group, rows, "square_avg", "grad_avg", "momentum_buffer", "step")


def rmsprop(params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, foreach=None,
        maximize=False, differentiable=False, capturable=False, has_complex=False, *, lr, alpha, eps,
        weight_decay, momentum, centered):  # fmt: skip
    """Update `params` in place by one step of RMSprop."""
    check_steps(state_steps)
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
