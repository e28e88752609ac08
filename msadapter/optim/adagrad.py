"""Adagrad (Duchi et al., 2011)."""

from .. import ops
from ..tensor import Tensor
from ..tensor import _tensor as factory
from ._rules import RuleOptimizer, as_real, check, check_lr, signed
from .optimizer import _get_scalar_dtype, _get_value, _to_scalar

__all__ = ["Adagrad", "adagrad"]


class Adagrad(RuleOptimizer):
    """Adagrad. The state, which is made at construction, is step and sum."""

    _sparse = True

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay=0,
        weight_decay=0,
        initial_accumulator_value=0,
        eps=1e-10,
        foreach=None,
        *,
        maximize=False,
        differentiable=False,
        fused=None,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_lr(lr)
        check(lr_decay, lr_decay >= 0.0, "lr_decay value")
        check(weight_decay, weight_decay >= 0.0, "weight_decay value")
        check(initial_accumulator_value, initial_accumulator_value >= 0.0, "initial_accumulator_value value")
        check(eps, eps >= 0.0, "epsilon value")
        if fused and differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if fused and foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        super().__init__(
            params,
            {
                "lr": lr,
                "lr_decay": lr_decay,
                "eps": eps,
                "weight_decay": weight_decay,
                "initial_accumulator_value": initial_accumulator_value,
                "foreach": foreach,
                "maximize": maximize,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
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
        adagrad(
            [p for p, _, _ in rows],
            [g for _, g, _ in rows],
            [s["sum"] for _, _, s in rows],
            [s["step"] for _, _, s in rows],
            differentiable=group["differentiable"],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            lr_decay=group["lr_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


def adagrad(
    params,
    grads,
    state_sums,
    state_steps,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_sparse_grad=False,
    foreach=None,
    differentiable=False,
    has_complex=False,
    *,
    lr,
    weight_decay,
    lr_decay,
    eps,
    maximize,
):
    """Update `params` in place by one step of Adagrad."""
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
