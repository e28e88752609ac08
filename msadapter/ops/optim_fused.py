"""Optimizer steps and norms for lists of tensors. Each is one kernel call. The steps work in place."""

from __future__ import annotations

from .._values.dtype import ALL
from ._declare import _C, composite, raw, t
from ._linalg_tools import check_floating

_ADAM = (
    "(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, Tensor[] max_exp_avg_sqs, Tensor[] state_steps, *, "
    "any lr, float beta1, float beta2, float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, "
    "Tensor? found_inf=None) -> any"
)


def _changed(*lists):
    for tensors in lists:
        for x in tensors:
            _C.bump_version(x)


def _npu_adam(params, grads, averages, squares, highest, steps, options, decoupled: bool) -> None:
    """Update each parameter by one operator of CANN, ApplyAdamWV2. It adds one to the number of steps itself."""
    before: dict[float, object] = {}
    decay, maximize = options["weight_decay"], options["maximize"]
    for i, param in enumerate(params):
        grad, step = grads[i], steps[i]
        if not _C.in_device_memory(step):
            done = step.item() - 1
            if done not in before:
                before[done] = t.full([1], done, dtype=ALL["float32"], device=param.device)
            step = before[done]
        else:
            step = (step - 1).view(1)
        if decay and not decoupled:  # Adam's decay is a part of the gradient
            grad = (-grad if maximize else grad).add(param, alpha=decay)
        raw.AdamW(
            param,
            averages[i],
            squares[i],
            highest[i] if highest else squares[i],  # not read without amsgrad
            grad,
            step,
            options["lr"],
            options["beta1"],
            options["beta2"],
            decay if decoupled else 0.0,
            options["eps"],
            options["amsgrad"],
            maximize and (decoupled or not decay),
        )


def _declare_adam(name: str, decoupled: bool, doc: str) -> None:
    """Declare a step of all parameters with Adam's moments. ``decoupled`` weight decay makes it AdamW."""

    def step(self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, *, lr, amsgrad, maximize,
            grad_scale, found_inf, **factors):  # fmt: skip
        highest = list(max_exp_avg_sqs) if amsgrad else None
        numbers = (factors[k] for k in ("beta1", "beta2", "weight_decay", "eps"))
        lists = [list(x) for x in (self, grads, exp_avgs, exp_avg_sqs)]
        if self and _C.in_device_memory(self[0]):
            if found_inf is not None and found_inf.item():
                return
            if grad_scale is not None:
                lists[1] = [g / grad_scale for g in lists[1]]
            options = {**factors, "lr": float(lr), "amsgrad": amsgrad, "maximize": maximize}
            _npu_adam(*lists, highest, state_steps, options, decoupled)
            _changed(self, exp_avgs, exp_avg_sqs, highest or ())
            return
        raw.FusedAdam(
            *lists,
            highest,
            list(state_steps),
            float(lr),
            *numbers,
            amsgrad,
            maximize,
            decoupled,
            grad_scale,
            found_inf,
        )
        _changed(self, exp_avgs, exp_avg_sqs, highest or ())

    step.__doc__ = doc
    composite(name + _ADAM, forms="f")(step)


_declare_adam("_fused_adamw_", True, "One AdamW step of all parameters; `state_steps` have been advanced.")
_declare_adam("_fused_adam_", False, "One Adam step of all parameters; `state_steps` have been advanced.")


@composite(
    "_fused_sgd_(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, float momentum, any lr, "
    "float dampening, bool nesterov, bool maximize, bool is_first_step, Tensor? grad_scale=None, Tensor? found_inf=None) -> any",
    forms="f",
)
def _fused_sgd_(self, grads, momentum_buffer_list, *, weight_decay, momentum, lr, dampening, nesterov,
        maximize, is_first_step, grad_scale, found_inf):  # fmt: skip
    """Do one SGD step of all parameters in place."""
    raw.FusedSgd(
        list(self),
        list(grads),
        list(momentum_buffer_list),
        weight_decay,
        momentum,
        float(lr),
        dampening,
        nesterov,
        maximize,
        is_first_step,
        grad_scale,
        found_inf,
    )
    _changed(self, momentum_buffer_list)


@composite("_foreach_norm(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> any", forms="f")
def _foreach_norm(self, ord, dtype):
    """Return the norm of each tensor, as a tuple of tensors without dims."""
    tensors = list(self)
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for x in tensors:
        check_floating(x, "linalg.vector_norm", low_precision=True)
        if ord == float("inf") and not x.numel():
            raise RuntimeError(
                "_foreach_norm cannot compute the infinity norm on an empty tensor because the operation does not have an "
                "identity"
            )
    if any(x.is_complex() or x.dtype is not tensors[0].dtype or not x.numel() for x in tensors) or (
        _C.is_grad_enabled() and any(x.requires_grad for x in tensors)
    ):
        return tuple(t.linalg_vector_norm(x, ord, dtype=dtype) for x in tensors)
    return tuple(t._norms(tensors if dtype is None else [x.to(dtype) for x in tensors], float(ord)).unbind(0))


@composite("_norms(Tensor[] tensors, float ord) -> Tensor", forms="f")
def _norms(tensors, ord):
    """Return the norms of all tensors as one 1-dimensional tensor. There is no gradient."""
    values = [x.detach() for x in tensors]
    if values and _C.in_device_memory(values[0]):  # CANN has no such operator
        return t.stack([t.linalg_vector_norm(x, ord) for x in values])
    return raw.ForeachNorm(values, ord)


@composite("_scale_all_(Tensor[] tensors, Tensor factor) -> any", forms="f")
def _scale_all_(tensors, factor):
    """Multiply every tensor in place by a tensor with one element. There is no gradient."""
    values = [x.detach() for x in tensors]
    if values and _C.in_device_memory(values[0]):
        for x in values:
            x.mul_(factor)
        return
    raw.ForeachScale(values, factor.detach())
    _changed(tensors)


@composite(
    "_amp_foreach_non_finite_check_and_unscale_(Tensor[] self, Tensor found_inf, Tensor inv_scale) -> any",
    forms="f",
)
def _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale):
    """Multiply the tensors in place by inv_scale. There is no gradient.

    found_inf becomes 1 if a tensor holds inf or nan, and otherwise stays as it is.
    """
    for name, scalar in (("inv_scale", inv_scale), ("found_inf", found_inf)):
        if scalar.numel() != 1 or scalar.dtype.name != "float32":
            raise RuntimeError(f"{name} must be a {'1-element' if scalar.numel() != 1 else 'float'} tensor.")
    factor = inv_scale.item()
    for tensor in self:
        tensor = tensor.detach()
        if not t.isfinite(tensor).all():
            found_inf.fill_(1.0)
        if factor != 1.0:
            tensor.mul_(factor)


@composite(
    "_amp_update_scale_(Tensor self, Tensor growth_tracker, Tensor found_inf, float scale_growth_factor, "
    "float scale_backoff_factor, int growth_interval) -> any",
    forms="f",
)
def _amp_update_scale_(
    self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, growth_interval
):
    """Update the scale of losses after a step, in place.

    It shrinks after inf or nan, and grows (if it stays finite) after growth_interval steps without them.
    """
    if found_inf.item():
        self.mul_(scale_backoff_factor)
        growth_tracker.fill_(0)
        return self
    successful = int(growth_tracker.item()) + 1
    if successful == growth_interval:
        grown = self * scale_growth_factor
        if t.isfinite(grown):
            self.copy_(grown)
        successful = 0
    growth_tracker.fill_(successful)
    return self
