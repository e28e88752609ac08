"""Adagrad (Duchi et al., 2011)."""

from .. import ops
from ..tensor import _tensor as factory
from ._rules import RuleOptimizer, as_real, check_steps, overflowed, signed, unscaled
from .optimizer import _get_scalar_dtype, _get_value, _to_scalar

__all__ = ["Adagrad", "adagrad"]


class Adagrad(RuleOptimizer):
    """Adagrad. The state, which is made at construction, is step and sum."""

    _sparse = True

    _options = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"

    def __init__(self, params, lr=0.01, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
            foreach=None, *, maximize=False, differentiable=False, fused=None):  # fmt: skip
        super().__init__(params, locals())
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].update(self._new_state(p, group))

    def _new_state(self, param, group):
        start = group["initial_accumulator_value"]
        start = complex(start, start) if param.is_complex() else start
        return {"step": factory.tensor(0.0, dtype=_get_scalar_dtype()), "sum": ops.full_like(param, start)}

    def share_memory(self):
        """Move the state into shared memory, for training with several processes."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def _run(self, group, rows):
        self._apply(adagrad, group, rows, "sum", "step")


def adagrad(params, grads, state_sums, state_steps, fused=None, grad_scale=None, found_inf=None,
        has_sparse_grad=False, foreach=None, differentiable=False, has_complex=False, *, lr, weight_decay,
        lr_decay, eps, maximize):  # fmt: skip
    """Update `params` in place by one step of Adagrad."""
    check_steps(state_steps)
    if overflowed(found_inf):
        return
    grads = unscaled(grads, grad_scale)
    lr = _to_scalar(lr)
    for param, grad, state_sum, step in zip(params, grads, state_sums, state_steps, strict=True):
        step += 1
        grad = signed(grad, maximize)
        size = lr / (1 + (_get_value(step) - 1) * lr_decay)
        if grad.is_sparse:
            _sparse_update(param, grad, state_sum, size, weight_decay, eps)
            continue
        if weight_decay != 0:
            grad = grad.add(param, alpha=weight_decay)
        param, grad, state_sum = as_real(param, grad, state_sum)
        state_sum.addcmul_(grad, grad, value=1)
        std = (state_sum.clone() if differentiable else state_sum).sqrt().add(eps)
        param.addcdiv_(grad, std, value=-_get_value(size))


def _sparse_update(param, grad, state_sum, size, weight_decay, eps):
    if weight_decay != 0:
        raise RuntimeError("weight_decay option is not compatible with sparse gradients")
    grad = grad.coalesce()
    where = tuple(grad._indices())
    values = grad._values()
    state_sum.index_put_(where, values.pow(2), accumulate=True)
    param.index_put_(where, values / state_sum[where].sqrt_().add_(eps) * -size, accumulate=True)
