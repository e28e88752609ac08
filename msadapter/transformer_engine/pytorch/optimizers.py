"""Optimizers that count steps in the parameter group and run one fused call per step."""

from ... import no_grad, optim, tensor, zeros_like
from ..._errors import unsupported
from ...ops import _fused_adam_, _fused_adamw_


class FusedAdam(optim.Optimizer):
    """Adam, or AdamW with adam_w_mode. exp_avg and exp_avg_sq are float32 unless the parameter is wider."""

    def __init__(
        self,
        params,
        lr=1e-3,
        bias_correction=True,
        betas=(0.9, 0.999),
        eps=1e-8,
        adam_w_mode=True,
        weight_decay=0.0,
        amsgrad=False,
        *,
        set_grad_none=None,
        capturable=False,
        master_weights=False,
        **others,
    ):
        if amsgrad or not bias_correction or master_weights or others:
            raise unsupported(
                "transformer_engine.pytorch.optimizers.FusedAdam",
                f"amsgrad, master_weights, bias_correction=False or {sorted(others)} is not supported",
            )
        super().__init__(
            params,
            {"lr": lr, "bias_correction": True, "betas": betas, "eps": eps, "weight_decay": weight_decay},
        )
        self.adam_w_mode = 1 if adam_w_mode else 0

    @no_grad()
    def step(self, closure=None, grad_scaler=None):
        """Steps all parameters that have a gradient. Returns the closure's loss."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            group["step"] = group.get("step", 0) + 1
            self._step(group)
        return loss

    def _step(self, group) -> None:
        params = [p for p in group["params"] if p.grad is not None]
        if not params:
            return
        for p in params:
            state = self.state[p]
            if not state:
                state["exp_avg"], state["exp_avg_sq"] = zeros_like(p), zeros_like(p)
        averages, squares = ([self.state[p][name] for p in params] for name in ("exp_avg", "exp_avg_sq"))
        steps = [tensor(float(group["step"])) for _ in params]
        update = _fused_adamw_ if self.adam_w_mode else _fused_adam_
        beta1, beta2 = group["betas"]
        update(
            params,
            [p.grad for p in params],
            averages,
            squares,
            [],
            steps,
            lr=group["lr"],
            beta1=beta1,
            beta2=beta2,
            weight_decay=group["weight_decay"],
            eps=group["eps"],
            amsgrad=False,
            maximize=False,
        )


class FusedSGD(optim.SGD):
    """SGD with momentum."""

    def __init__(
        self, params, lr=1e-3, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False, **others
    ):
        others = {name: value for name, value in others.items() if value}
        others.pop("materialize_master_grads", None)
        if others:
            raise unsupported(
                "transformer_engine.pytorch.optimizers.FusedSGD", f"{sorted(others)} is not supported"
            )
        super().__init__(
            params,
            lr=lr,
            momentum=momentum,
            dampening=dampening,
            weight_decay=weight_decay,
            nesterov=nesterov,
        )
