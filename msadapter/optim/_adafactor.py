"""Adafactor (Shazeer and Stern, 2018). It stores second moments of a matrix as a row and a column."""

from .. import ops
from .._values.limits import finfo
from ..tensor import Tensor
from ..tensor import _tensor as factory
from ._rules import RuleOptimizer, signed
from .optimizer import _get_scalar_dtype, _get_value, _to_scalar

__all__ = ["Adafactor", "adafactor"]


class Adafactor(RuleOptimizer):
    """Adafactor. The state is step, and row_var and col_var (matrices) or variance (vectors)."""

    _options = "lr beta2_decay eps d weight_decay foreach maximize"

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay=-0.8,
        eps=(None, 1e-3),
        d=1.0,
        weight_decay=0.0,
        *,
        foreach=None,
        maximize=False,
    ):
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0.0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0.0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0.0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1.0:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(params, locals())

    def _check_gradient(self, grad):
        if grad.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        super()._check_gradient(grad)

    def _new_state(self, param, group):
        state = {"step": factory.tensor(0.0, dtype=_get_scalar_dtype())}
        shape = tuple(param.grad.shape)
        if len(shape) > 1:
            state["row_var"] = param.grad.new_zeros((*shape[:-1], 1))
            state["col_var"] = param.grad.new_zeros((*shape[:-2], 1, shape[-1]))
        else:
            state["variance"] = ops.zeros_like(param.grad)
        return state

    def _run(self, group, rows):
        self._apply(adafactor, group, rows, "row_var", "col_var", "variance", "step")


def adafactor(
    params,
    grads,
    row_vars,
    col_vars,
    variances,
    state_steps,
    foreach=None,
    grad_scale=None,
    found_inf=None,
    has_complex=False,
    *,
    d,
    lr,
    beta2_decay,
    weight_decay,
    eps1,
    eps2,
    maximize,
):
    """Update `params` in place by one step of Adafactor."""
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError("`state_steps` argument must contain a list of singleton tensors")
    lr = _get_value(_to_scalar(lr))
    rows = zip(params, grads, row_vars, col_vars, variances, state_steps, strict=True)
    for param, grad, row_var, col_var, variance, step_t in rows:
        grad = signed(grad, maximize)
        smallest = finfo(param.dtype).eps if eps1 is None else eps1
        step_t += 1
        step = step_t.item()
        fresh = step**beta2_decay
        alpha = max(eps2, param.norm(2).item() / (param.numel() ** 0.5)) * min(lr, 1 / (step**0.5))
        if weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        if grad.dim() > 1:
            estimate = _factored(grad, row_var, col_var, fresh, smallest)
        else:
            variance.lerp_(grad * grad, fresh)
            estimate = variance.clone()
        update = estimate.clamp_(min=smallest * smallest).rsqrt_()
        update.mul_(grad)
        denominator = max(1.0, update.norm(2).item() / ((update.numel() ** 0.5) * d))
        param.add_(update, alpha=-alpha / denominator)


def _factored(grad, row_var, col_var, fresh, smallest):
    for variance, dim in ((row_var, -1), (col_var, -2)):
        mean = ops.norm(grad, dim=dim, keepdim=True).square_().div_(grad.size(dim))
        variance.lerp_(mean, fresh)
    estimate = row_var @ col_var
    return estimate.div_(row_var.mean(dim=-2, keepdim=True).clamp_(min=smallest))
