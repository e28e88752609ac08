"""Stochastic gradient descent with momentum."""

from .. import ops
from ..tensor import Tensor
from ._rules import RuleOptimizer, check, check_lr, decayed, signed
from .optimizer import _get_value, _to_scalar

__all__ = ["SGD", "sgd"]


class SGD(RuleOptimizer):
    """SGD with optional momentum (state: momentum_buffer), Nesterov momentum and weight decay."""

    _sparse = True

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum=0,
        dampening=0,
        weight_decay=0,
        nesterov=False,
        *,
        maximize=False,
        foreach=None,
        differentiable=False,
        fused=None,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_lr(lr)
        check(momentum, momentum >= 0.0, "momentum value")
        check(weight_decay, weight_decay >= 0.0, "weight_decay value")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        if fused and differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if fused and foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        super().__init__(
            params,
            {
                "lr": lr,
                "momentum": momentum,
                "dampening": dampening,
                "weight_decay": weight_decay,
                "nesterov": nesterov,
                "maximize": maximize,
                "foreach": foreach,
                "differentiable": differentiable,
                "fused": fused,
            },
        )
        if fused:
            self._step_supports_amp_scaling = True

    def _stateless(self, group):
        return group["momentum"] == 0

    def _run(self, group, rows):
        buffers = [state.get("momentum_buffer") for _, _, state in rows]
        sgd(
            [p for p, _, _ in rows],
            [g for _, g, _ in rows],
            buffers,
            foreach=group["foreach"],
            fused=group["fused"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            weight_decay=group["weight_decay"],
            momentum=group["momentum"],
            lr=group["lr"],
            dampening=group["dampening"],
            nesterov=group["nesterov"],
            maximize=group["maximize"],
        )
        if group["momentum"] != 0:
            for (_, _, state), buffer in zip(rows, buffers, strict=True):
                state["momentum_buffer"] = buffer


def sgd(
    params,
    d_p_list,
    momentum_buffer_list,
    has_sparse_grad=False,
    foreach=None,
    fused=None,
    grad_scale=None,
    found_inf=None,
    *,
    weight_decay,
    momentum,
    lr,
    dampening,
    nesterov,
    maximize,
):
    """Update `params` in place by one step of SGD.

    Missing momentum buffers (None) are added to their list.
    """
    if found_inf is not None and found_inf.item():
        return
    lr = _to_scalar(lr)
    for i, param in enumerate(params):
        grad = d_p_list[i] if grad_scale is None else d_p_list[i] / grad_scale
        grad = decayed(signed(grad, maximize), param, weight_decay)
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
