"""Resilient backpropagation (Riedmiller and Braun, 1993)."""

from .. import ops
from ._rules import RuleOptimizer, as_real, check_steps, new_step, signed, zeros_like
from .optimizer import _get_value

__all__ = ["Rprop", "rprop"]


class Rprop(RuleOptimizer):
    """Rprop. State: step, prev, step_size."""

    _options = "lr etas step_sizes foreach maximize differentiable capturable"

    def __init__(self, params, lr=0.01, etas=(0.5, 1.2), step_sizes=(1e-06, 50), *, capturable=False,
            foreach=None, maximize=False, differentiable=False):  # fmt: skip
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(params, locals())

    def _new_state(self, param, group):
        size = _get_value(group["lr"])
        size = complex(size, size) if param.is_complex() else size
        return {
            "step": new_step(param, group),
            "prev": zeros_like(param),
            "step_size": ops.full_like(param, size),
        }

    def _run(self, group, rows):
        self._apply(rprop, group, rows, "prev", "step_size", "step")


def rprop(params, grads, prevs, step_sizes, state_steps, foreach=None, capturable=False, maximize=False,
        differentiable=False, has_complex=False, *, step_size_min, step_size_max, etaminus,
        etaplus):  # fmt: skip
    """Update `params` in place by one step of Rprop."""
    check_steps(state_steps)
    for param, grad, prev, step_size, step in zip(params, grads, prevs, step_sizes, state_steps, strict=True):
        step += 1
        grad = signed(grad, maximize)
        param, grad, prev, step_size = as_real(param, grad, prev, step_size)
        agreement = grad.mul(prev.clone() if differentiable else prev).sign()
        factor = ops.ones_like(agreement).masked_fill(agreement.gt(0), etaplus)
        factor = factor.masked_fill(agreement.lt(0), etaminus)
        step_size.mul_(factor).clamp_(step_size_min, step_size_max)
        # if the sign of the gradient has changed, the parameter stays for one step
        grad = ops.where(agreement.lt(0), ops.zeros_like(grad), grad)
        param.addcmul_(grad.sign(), step_size, value=-1)
        prev.copy_(grad)
