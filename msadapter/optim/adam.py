"""Adam (Kingma and Ba, 2014), also with decoupled weight decay."""

from .. import ops
from ..tensor import Tensor
from ._rules import RuleOptimizer, as_real, check, check_betas, check_lr, new_step, signed, zeros_like
from .optimizer import _get_value, _to_scalar

__all__ = ["Adam", "adam"]


class Adam(RuleOptimizer):
    """Adam. The state of a parameter is step, exp_avg, exp_avg_sq (and max_exp_avg_sq with amsgrad).

    In PyTorch, foreach, fused and capturable select an implementation. Here the fused kernel is used whenever
    the parameters allow it. The options change the numbers only by rounding.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas=(0.9, 0.999),
        eps=1e-8,
        weight_decay=0,
        amsgrad=False,
        *,
        foreach=None,
        maximize=False,
        capturable=False,
        differentiable=False,
        fused=None,
        decoupled_weight_decay=False,
    ):
        check_lr(lr, foreach, capturable)
        check(eps, eps >= 0.0, "epsilon value")
        check_betas(betas)
        check(weight_decay, weight_decay >= 0.0, "weight_decay value")
        if fused and differentiable:
            raise RuntimeError("`fused` does not support `differentiable`")
        if fused and foreach:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
        super().__init__(
            params,
            {
                "lr": lr,
                "betas": betas,
                "eps": eps,
                "weight_decay": weight_decay,
                "amsgrad": amsgrad,
                "maximize": maximize,
                "foreach": foreach,
                "capturable": capturable,
                "differentiable": differentiable,
                "fused": fused,
                "decoupled_weight_decay": decoupled_weight_decay,
            },
        )
        if fused:
            self._step_supports_amp_scaling = True

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
        states = [state for _, _, state in rows]
        beta1, beta2 = group["betas"]
        adam(
            [p for p, _, _ in rows],
            [g for _, g, _ in rows],
            [s["exp_avg"] for s in states],
            [s["exp_avg_sq"] for s in states],
            [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else [],
            [s["step"] for s in states],
            foreach=group["foreach"],
            capturable=group["capturable"],
            differentiable=group["differentiable"],
            fused=group["fused"],
            grad_scale=getattr(self, "grad_scale", None),
            found_inf=getattr(self, "found_inf", None),
            decoupled_weight_decay=group["decoupled_weight_decay"],
            amsgrad=group["amsgrad"],
            beta1=beta1,
            beta2=beta2,
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            maximize=group["maximize"],
        )


def adam(
    params,
    grads,
    exp_avgs,
    exp_avg_sqs,
    max_exp_avg_sqs,
    state_steps,
    foreach=None,
    capturable=False,
    differentiable=False,
    fused=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    decoupled_weight_decay=False,
    *,
    amsgrad,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
):
    """Update `params` in place by one step of Adam; state_steps are counters as tensors."""
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
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
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
    if (
        _has_kernel(decoupled_weight_decay)
        and fused is not False
        and foreach is not True
        and not differentiable
    ):
        lists = _fused(lists, options, decoupled_weight_decay, grad_scale, found_inf)
    elif found_inf is not None and found_inf.item():
        return
    elif grad_scale is not None:
        lists = (params, [g / grad_scale for g in grads], *lists[2:])
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
    """Update the parameters that the fused kernel supports, and return the lists of the others."""
    groups, rest = {}, []
    for i, param in enumerate(lists[0]):
        tensors = [column[i] for column in lists[:4]]
        dense = all(t.is_contiguous() and t.dtype == param.dtype for t in tensors)
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


def _update(
    param,
    grad,
    exp_avg,
    exp_avg_sq,
    max_exp_avg_sq,
    step_t,
    *,
    decoupled,
    differentiable,
    amsgrad,
    beta1,
    beta2,
    lr,
    weight_decay,
    eps,
    maximize,
):
    grad = signed(grad, maximize)
    step_t += 1
    if weight_decay != 0:
        if decoupled:
            param.mul_(1 - lr * weight_decay)
        else:
            grad = grad.add(param, alpha=weight_decay)
    param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq = as_real(
        param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq
    )
    exp_avg.lerp_(grad, 1 - beta1)
    exp_avg_sq.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
    step = _get_value(step_t)
    correction1, correction2 = 1 - beta1**step, 1 - beta2**step
    second = exp_avg_sq
    if amsgrad:
        max_exp_avg_sq.copy_(ops.maximum(max_exp_avg_sq, exp_avg_sq))
        second = max_exp_avg_sq
    if not differentiable:
        denominator = (second.sqrt() / correction2**0.5).add_(eps)
        param.addcdiv_(exp_avg, denominator, value=-_get_value(lr / correction1))
        return
    # the graph keeps the present values, because the averages change at the next step
    step_size = -(lr / correction1)
    denominator = second.clone().sqrt() / (correction2**0.5 * step_size) + eps / step_size
    param.addcdiv_(exp_avg.clone(), denominator)
