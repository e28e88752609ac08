"""Averaged stochastic gradient descent (Polyak and Juditsky, 1992)."""

from .. import ops
from ..tensor import _tensor as factory
from ._rules import RuleOptimizer, as_real, decayed, signed, zeros_like
from .optimizer import _get_scalar_dtype, _get_value, _to_scalar

__all__ = ["ASGD", "asgd"]


class ASGD(RuleOptimizer):
    """ASGD. State: step, eta, mu, ax (the average)."""

    _options = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"

    def __init__(self, params, lr=0.01, lambd=0.0001, alpha=0.75, t0=1000000.0, weight_decay=0,
            foreach=None, maximize=False, differentiable=False, capturable=False):  # fmt: skip
        super().__init__(params, locals())

    def _new_state(self, param, group):
        scalar = {"dtype": _get_scalar_dtype(), "device": param.device}
        return {
            "step": ops.zeros((), **scalar),
            "eta": ops.full((), _get_value(group["lr"]), **scalar),
            "mu": ops.ones((), **scalar),
            "ax": zeros_like(param),
        }

    def _run(self, group, rows):
        self._apply(asgd, group, rows, "ax", "mu", "eta", "step")


def asgd(params, grads, axs, mus, etas, state_steps, foreach=None, maximize=False, differentiable=False,
        capturable=False, has_complex=False, *, lambd, lr, t0, alpha, weight_decay):  # fmt: skip
    """Update `params` in place by one step of ASGD."""
    lr = _get_value(_to_scalar(lr))
    for param, grad, ax, mu, eta, step_t in zip(params, grads, axs, mus, etas, state_steps, strict=True):
        grad = signed(grad, maximize)
        param, grad, ax = as_real(param, grad, ax)
        step_t += 1
        step = _get_value(step_t)
        grad = decayed(grad, param, weight_decay)
        size = _get_value(eta)
        param.mul_(1 - lambd * size).add_(grad, alpha=-size)
        if mu.item() != 1:
            ax.add_(param.sub(ax).mul_(mu))
        else:
            ax.copy_(param)
        eta.copy_(factory.tensor(lr / ((1 + lambd * lr * step) ** alpha)))
        mu.copy_(factory.tensor(1 / max(1, step - t0)))
