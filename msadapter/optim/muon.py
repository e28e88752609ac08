"""Muon (Jordan and others, 2024): orthogonalised momentum for the weight matrices of hidden layers."""

import math

from .. import ops
from .._values.dtype import ALL
from ..tensor import Tensor
from ._rules import RuleOptimizer, zeros_like
from .optimizer import _get_value

__all__ = ["Muon"]
_MOST_STEPS = 100


def _orthogonal(matrix, coefficients, steps: int, eps: float):
    """Return approximately the nearest orthogonal matrix, computed in bfloat16.

    This is the iteration of Newton and Schulz with a quintic polynomial.

    Raises:
        ValueError: too many steps, a tensor that is not a matrix, or not three coefficients.
    """
    if steps >= _MOST_STEPS:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if matrix.ndim != 2:
        raise ValueError("Input tensor gradient must be a 2D matrix")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    x = matrix.to(ALL["bfloat16"])
    tall = matrix.shape[0] > matrix.shape[1]
    x = x.t() if tall else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        gram = x @ x.t()
        x = ops.addmm(x, ops.addmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.t() if tall else x


def _scaled_lr(lr: float, rule, shape) -> float:
    """Return the learning rate for a matrix of this shape, by the rule 'original' or 'match_rms_adamw'."""
    rows, columns = shape[:2]
    if rule == "match_rms_adamw":
        return lr * 0.2 * math.sqrt(max(rows, columns))
    return lr * math.sqrt(max(1, rows / columns))


class Muon(RuleOptimizer):
    """Muon with decoupled weight decay. The state is momentum_buffer.

    Raises:
        ValueError: a parameter is not a matrix, or an option is out of range.
    """

    _options = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay=0.1,
        momentum=0.95,
        nesterov=True,
        ns_coefficients=(3.4445, -4.7750, 2.0315),
        eps=1e-7,
        ns_steps=5,
        adjust_lr_fn=None,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for value, name in ((lr, "Learning rate"), (momentum, "momentum"), (weight_decay, "weight decay")):
            if not value >= 0.0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, locals())
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}"
                    )

    def _check_gradient(self, grad):
        if grad.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        super()._check_gradient(grad)

    def _new_state(self, param, group):
        return {"momentum_buffer": zeros_like(param)}

    def _run(self, group, rows):
        lr, momentum = float(_get_value(group["lr"])), group["momentum"]
        for param, grad, state in rows:
            buffer = state["momentum_buffer"]
            buffer.lerp_(grad, 1 - momentum)
            update = grad.lerp(buffer, momentum) if group["nesterov"] else buffer
            update = _orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
            param.mul_(1 - lr * group["weight_decay"])
            param.add_(update, alpha=-_scaled_lr(lr, group["adjust_lr_fn"], param.shape))
