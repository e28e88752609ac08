"""Adam (Kingma and Ba, 2014), also with decoupled weight decay."""

from .. import ops
from ..ops._declare import _C
from ..tensor import Tensor
from ._rules import (
    RuleOptimizer,
    as_real,
    check_steps,
    decay,
    new_step,
    overflowed,
    signed,
    unscaled,
    zeros_like,
)
from .optimizer import _get_value, _to_scalar

__all__ = ["Adam", "adam"]


class Adam(RuleOptimizer):
    """Adam. The state of a parameter is step, exp_avg, exp_avg_sq (and max_exp_avg_sq with amsgrad).

    foreach, fused and capturable choose an implementation in PyTorch. Here the fused kernel is used if fused=True, or if
    neither fused nor foreach is given, wherever the parameters allow it. The results agree up to rounding.
    """

    _options = (
        "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable "
        "fused decoupled_weight_decay"
    )

    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-08, weight_decay=0, amsgrad=False, *,
            foreach=None, maximize=False, capturable=False, differentiable=False, fused=None,
            decoupled_weight_decay=False):  # fmt: skip
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        super().__init__(params, locals())

    def _check_gradient(self, grad):
        if grad.is_sparse:
            raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    def _new_state(self, param, group):
        state = {
            "step": new_step(param, group),
            "exp_avg": zeros_like(param),
            "exp_avg_sq": zeros_like(param),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = zeros_like(param)
        return state

    def _run(self, group, rows):
        self._apply(adam, group, rows, "exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")


def adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=None, capturable=False,
        differentiable=False, fused=None, grad_scale=None, found_inf=None, has_complex=False,
        decoupled_weight_decay=False, *, amsgrad, beta1, beta2, lr, weight_decay, eps,
        maximize):  # fmt: skip
    """Update `params` in place by one step of Adam; state_steps are counters as tensors."""
    check_steps(state_steps)
    lr, beta1, beta2 = _to_scalar(lr), _to_scalar(beta1), _to_scalar(beta2)
    options = {
        "amsgrad": amsgrad,
        "beta1": beta1,
        "beta2": beta2,
        "lr": lr,
        "weight_decay": weight_decay,
        "eps": eps,
        "maximize": maximize,
    }
    largest = max_exp_avg_sqs if amsgrad else []
    lists = (params, grads, exp_avgs, exp_avg_sqs, largest, state_steps)
    # Whoever names another implementation (foreach=False is one) gets no fused kernel.
    wanted = fused or (fused is None and foreach is None and not differentiable)
    if wanted and _has_kernel(decoupled_weight_decay):
        lists = _fused(lists, options, decoupled_weight_decay, grad_scale, found_inf)
    elif overflowed(found_inf):
        return
    else:
        lists = (params, unscaled(grads, grad_scale), *lists[2:])
    params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps = lists
    for i, param in enumerate(params):
        largest = max_exp_avg_sqs[i] if amsgrad else None
        _update(
            param,
            grads[i],
            exp_avgs[i],
            exp_avg_sqs[i],
            largest,
            state_steps[i],
            decoupled=decoupled_weight_decay,
            differentiable=differentiable,
            **options,
        )


def _kernel_name(decoupled):
    return "_fused_adamw_" if decoupled else "_fused_adam_"


def _has_kernel(decoupled):
    return hasattr(ops, _kernel_name(decoupled))


def _fused(lists, options, decoupled, grad_scale, found_inf):
    """Update the parameters that the fused kernel supports, and return the lists of the others.

    That of an NPU supports float32 and numbers of 16 bits.
    """
    groups, rest = {}, []
    for i, param in enumerate(lists[0]):
        tensors = [column[i] for column in lists[:4]]
        dense = all(t.is_contiguous() and t.dtype == param.dtype for t in tensors)
        there = _C.in_device_memory(param)
        if there:
            dense = dense and param.dtype.itemsize <= 4 and param.numel() > 0
        if dense and param.is_floating_point():
            groups.setdefault((str(param.device), param.dtype), []).append(i)
        else:
            rest.append(i)
    kernel = getattr(ops, _kernel_name(decoupled))
    pick = lambda column, rows: [column[i] for i in rows] if column else []  # noqa: E731
    for rows in groups.values():
        steps = pick(lists[5], rows)
        for step in steps:
            step.add_(1)
        kernel(
            *(pick(column, rows) for column in lists), grad_scale=grad_scale, found_inf=found_inf, **options
        )
        if found_inf is not None and found_inf.item():
            for step in steps:
                step.sub_(1)
    return [pick(column, rest) for column in lists]


def _update(param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq, step_t, *, decoupled, differentiable, amsgrad,
        beta1, beta2, lr, weight_decay, eps, maximize):  # fmt: skip
    grad = signed(grad, maximize)
    step_t += 1
    grad = decay(param, grad, lr, weight_decay, decoupled)
    param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq = as_real(
        param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq
    )
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    step = _get_value(step_t)
    correction1, correction2 = 1 - beta1**step, 1 - beta2**step
    second = exp_avg_sq
    if amsgrad:
        before = max_exp_avg_sq.clone() if differentiable else max_exp_avg_sq
        max_exp_avg_sq.copy_(ops.maximum(before, exp_avg_sq))
        second = max_exp_avg_sq
    if not differentiable:
        denominator = (second.sqrt() / correction2**0.5).add_(eps)
        param.addcdiv_(exp_avg, denominator, value=-_get_value(lr / correction1))
        return
    # the graph keeps the present values, because the averages change at the next step
    step_size = -(lr / correction1)
    denominator = second.clone().sqrt() / (correction2**0.5 * step_size) + eps / step_size
    param.addcdiv_(exp_avg.clone(), denominator)
