"""Stochastic gradient descent with momentum."""

from .. import ops
from ..tensor import Tensor
from ._rules import RuleOptimizer, decayed, overflowed, signed, unscaled
from .optimizer import _get_value, _to_scalar

__all__ = ["SGD", "sgd"]


class SGD(RuleOptimizer):
    """SGD with optional momentum (state: momentum_buffer), Nesterov momentum and weight decay."""

    _sparse = True

    _options = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"

    def __init__(self, params, lr=0.001, momentum=0, dampening=0, weight_decay=0, nesterov=False, *,
            maximize=False, foreach=None, differentiable=False, fused=None):  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, locals())

    def __setstate__(self, state):
        for group in state.get("param_groups", ()):
            group.setdefault("fused", False)
        super().__setstate__(state)

    def _stateless(self, group):
        return group["momentum"] == 0

    def _run(self, group, rows):
        buffers = [state.get("momentum_buffer") for _, _, state in rows]
        params, grads = ([row[k] for row in rows] for k in range(2))
        sgd(params, grads, buffers, **self._rule_options(sgd, group))
        if group["momentum"] != 0:
            for (_, _, state), buffer in zip(rows, buffers, strict=True):
                state["momentum_buffer"] = buffer


def sgd(params, d_p_list, momentum_buffer_list, has_sparse_grad=False, foreach=None, fused=None,
        grad_scale=None, found_inf=None, *, weight_decay, momentum, lr, dampening, nesterov,
        maximize):  # fmt: skip
    """Update `params` in place by one step of SGD; missing momentum buffers (None) are put into their list."""
    if overflowed(found_inf):
        return
    lr = _to_scalar(lr)
    grads = unscaled(d_p_list, grad_scale)
    for i, param in enumerate(params):
        grad = decayed(signed(grads[i], maximize), param, weight_decay)
        if momentum != 0:
            buffer = momentum_buffer_list[i]
            if buffer is None:
                buffer = momentum_buffer_list[i] = ops.clone(grad).detach()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        if isinstance(lr, Tensor) and lr.requires_grad:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=-_get_value(lr))
