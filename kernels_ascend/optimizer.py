"""Optimizer steps as fused operators that work in place."""

from __future__ import annotations

import msadapter
from msadapter.ops import on_ascend, t

from ._mapping import ascend


def _number(x) -> float:
    return float(x)


def npu_apply_adam_w(
    beta1_power,
    beta2_power,
    lr,
    weight_decay,
    beta1,
    beta2,
    epsilon,
    grad,
    max_grad_norm=None,
    amsgrad=False,
    maximize=False,
    *,
    out,
):
    """One AdamW step. beta1_power and beta2_power are the betas to the power of the number of earlier steps.

    Args:
        out: (parameter, exp_avg, exp_avg_sq), changed in place. max_grad_norm: the running maximum, needed for amsgrad.

    Returns:
        out.
    """
    if amsgrad and max_grad_norm is None:
        raise RuntimeError("npu_apply_adam_w: amsgrad needs max_grad_norm")
    var, m, v = out
    beta1_power, beta2_power, lr = (_number(x) for x in (beta1_power, beta2_power, lr))
    with msadapter.no_grad():
        g = -grad if maximize else grad
        m.mul_(beta1).add_(g, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        second = v
        if amsgrad:
            second = max_grad_norm.copy_(t.maximum(max_grad_norm, v))
        denominator = (second / (1 - beta2_power * beta2)).sqrt_().add_(epsilon)
        var.mul_(1 - lr * weight_decay)
        var.addcdiv_(m, denominator, value=-lr / (1 - beta1_power * beta1))
    return out


def npu_apply_fused_adamw_v2(
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    max_exp_avg_sq,
    state_step,
    lr=1e-3,
    beta1=0.9,
    beta2=0.999,
    weight_decay=0.0,
    eps=1e-8,
    amsgrad=False,
    maximize=False,
) -> None:
    """One AdamW step in place. state_step is a tensor of one element whose value includes this step."""
    if on_ascend(param):
        ascend(
            "AdamW",
            var=param,
            m=exp_avg,
            v=exp_avg_sq,
            max_v=exp_avg_sq if max_exp_avg_sq is None else max_exp_avg_sq,  # used only with amsgrad
            gradient=grad,
            step=state_step - 1,
            lr=lr,
            beta1=beta1,
            beta2=beta2,
            decay=weight_decay,
            eps=eps,
            amsgrad=amsgrad,
            maximize=maximize,
        )
        return
    before = int(state_step) - 1
    npu_apply_adam_w(
        beta1**before,
        beta2**before,
        lr,
        weight_decay,
        beta1,
        beta2,
        eps,
        grad,
        max_exp_avg_sq if amsgrad else None,
        amsgrad,
        maximize,
        out=(param, exp_avg, exp_avg_sq),
    )


def npu_apply_fused_ema_adamw(
    grad,
    var,
    m,
    v,
    s,
    step,
    lr=1e-3,
    ema_decay=0.9999,
    beta1=0.9,
    beta2=0.999,
    eps=1e-8,
    mode=1,
    bias_correction=True,
    weight_decay=0.0,
):
    """One Adam step in place, followed by s = ema_decay * s + (1 - ema_decay) * var.

    Mode 1 decays the weight itself (AdamW). Mode 0 adds weight_decay * var to the gradient.
    """
    if mode not in (0, 1):
        raise RuntimeError(f"npu_apply_fused_ema_adamw: mode must be 0 or 1, but got {mode}")
    count = int(step)
    first, second = (1 - beta**count if bias_correction else 1.0 for beta in (beta1, beta2))
    with msadapter.no_grad():
        g = grad if mode else grad + weight_decay * var
        m.mul_(beta1).add_(g, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(g, g, value=1 - beta2)
        update = (m / first) / ((v / second).sqrt_() + eps)
        if mode:
            update = update + weight_decay * var
        var.add_(update, alpha=-lr)
        s.mul_(ema_decay).add_(var, alpha=1 - ema_decay)
    return var, m, v, s
