"""Adam for sparse gradients. It updates only the rows that have a gradient."""

from ._rules import RuleOptimizer, check, signed, zeros_like
from .optimizer import _get_value

__all__ = ["SparseAdam"]


class SparseAdam(RuleOptimizer):
    """Lazy Adam for sparse COO gradients. The state is step (an int), exp_avg, exp_avg_sq."""

    _sparse = True

    _options = "lr betas eps maximize"

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, maximize=False):
        check(lr, lr > 0.0, "learning rate")
        check(eps, eps > 0.0, "epsilon value")
        super().__init__(params, locals())
        sparse = [
            [k, i]
            for k, group in enumerate(self.param_groups)
            for i, p in enumerate(group["params"])
            if p.is_sparse
        ]
        if sparse:
            raise ValueError(
                f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors"
            )

    def _check_gradient(self, grad):
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _new_state(self, param, group):
        return {"step": 0, "exp_avg": zeros_like(param), "exp_avg_sq": zeros_like(param)}

    @staticmethod
    def _tensor_step(state, param, group):
        """Return the step counter unchanged, because this optimizer keeps it as a number."""

    def _run(self, group, rows):
        beta1, beta2 = group["betas"]
        lr = _get_value(group["lr"])
        for param, grad, state in rows:
            state["step"] += 1
            grad = signed(grad, group["maximize"]).coalesce()
            if grad._nnz() == 0:
                continue
            where, values = tuple(grad._indices()), grad._values()
            first, second = state["exp_avg"], state["exp_avg_sq"]
            first[where] = first[where] + (values - first[where]) * (1 - beta1)
            second[where] = second[where] + (values.pow(2) - second[where]) * (1 - beta2)
            correction1, correction2 = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
            size = lr * correction2**0.5 / correction1
            param.index_put_(
                where, first[where] / second[where].sqrt().add(group["eps"]) * -size, accumulate=True
            )
