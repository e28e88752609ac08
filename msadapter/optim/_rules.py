"""Parts that the optimizers share: the loop over parameters, checks of options, small computations."""

import functools
import inspect

from .. import ops
from .._values.layout import FORMATS
from ..autograd import enable_grad
from ..tensor import Tensor
from ..tensor import _tensor as factory
from .optimizer import Optimizer, _get_scalar_dtype, _use_grad_for_differentiable


def check(value, ok: bool, what: str):
    """Raise ValueError('Invalid <what>: <value>') unless ok."""
    if not ok:
        raise ValueError(f"Invalid {what}: {value}")


def check_lr(lr):
    """A learning rate is a number >= 0, or a tensor with one such element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    check(lr, lr >= 0.0, "learning rate")


def check_betas(betas):
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


# Options that must not be negative, with the name that PyTorch's message gives them.
_NOT_NEGATIVE = {
    "eps": "epsilon value",
    "momentum": "momentum value",
    "weight_decay": "weight_decay value",
    "momentum_decay": "momentum_decay value",
    "lr_decay": "lr_decay value",
    "initial_accumulator_value": "initial_accumulator_value value",
}

# Options that hold several numbers, with the names by which the update rules take them.
_PARTS = {
    "betas": ("beta1", "beta2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
    "eps": ("eps1", "eps2"),  # Adafactor's; elsewhere eps is one number
}


def check_options(options: dict) -> None:
    """Checks that all optimizers share.

    Raises:
        ValueError: a number is out of its range.
        RuntimeError: `fused` together with `differentiable` or `foreach`.
    """
    check_lr(options["lr"])
    for name, what in _NOT_NEGATIVE.items():
        value = options.get(name, 0)
        if not isinstance(value, tuple):
            check(value, value >= 0.0, what)
    if "betas" in options:
        check_betas(options["betas"])
    if options.get("fused"):
        if options["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if options["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


@functools.cache
def option_names(rule) -> tuple[str, ...]:
    """Return the options of an update rule: its parameters that have a default or are keyword-only."""
    parameters = inspect.signature(rule).parameters.values()
    return tuple(p.name for p in parameters if p.default is not p.empty or p.kind is p.KEYWORD_ONLY)


def new_step(param, group):
    """Return a step counter, on the parameter's device for capturable and fused groups, else on the CPU."""
    if group.get("capturable") or group.get("fused"):
        return ops.zeros((), dtype=_get_scalar_dtype(is_fused=group.get("fused")), device=param.device)
    return factory.tensor(0.0, dtype=_get_scalar_dtype())


def check_steps(state_steps) -> None:
    """Raise PyTorch's error unless the step counters that an update rule takes are tensors."""
    if not all(isinstance(t, Tensor) for t in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")


def zeros_like(param):
    return ops.zeros_like(param, memory_format=FORMATS["preserve_format"])


def as_real(param, *tensors):
    """Return complex tensors as pairs of real numbers. None stays None."""
    if not param.is_complex():
        return (param, *tensors)
    return tuple(t if t is None else ops.view_as_real(t) for t in (param, *tensors))


def signed(grad, maximize: bool):
    return -grad if maximize else grad


def decayed(grad, param, weight_decay):
    """Return grad + weight_decay * param."""
    return grad.add(param, alpha=weight_decay) if weight_decay != 0 else grad


def decay(param, grad, lr, weight_decay, decoupled: bool):
    """Apply the weight decay of the Adam family and return the gradient for the update.

    Decoupled decay multiplies `param` by 1 - lr * weight_decay in place and leaves the gradient as it is. Otherwise the gradient
    that is returned contains weight_decay * param.
    """
    if not decoupled:
        return decayed(grad, param, weight_decay)
    if weight_decay != 0:
        param.mul_(1 - lr * weight_decay)
    return grad


def overflowed(found_inf) -> bool:
    """Return whether a gradient scaler has found an infinite gradient or a NaN. The step is then skipped."""
    return found_inf is not None and bool(found_inf.item())


def unscaled(grads, grad_scale):
    """Divide the gradients by the factor of a gradient scaler, in place as PyTorch's fused steps do, and return them."""
    return grads if grad_scale is None else [g.div_(grad_scale) for g in grads]


class RuleOptimizer(Optimizer):
    """An optimizer whose step is a loop over the parameters.

    rows: one (param, grad, state) for each parameter that has a gradient.

    A subclass lists the names of its options in `_options`, in the order of PyTorch's groups, and hands the arguments
    of its constructor on as `super().__init__(params, locals())`. Checks that concern one optimizer alone come before.
    """

    _options = ""
    _sparse = False

    def __init__(self, params, arguments: dict):
        options = {name: arguments[name] for name in self._options.split()}
        check_options(options)
        super().__init__(params, options)
        if options.get("fused"):
            self._step_supports_amp_scaling = True

    def __setstate__(self, state):
        known = set(state.get("defaults") or self.defaults)
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later_options(known).items():
                group.setdefault(name, value)
            for p in group["params"]:
                self._tensor_step(self.state.get(p), p, group)

    @staticmethod
    def _later_options(known: set) -> dict:
        # options that are missing in the groups of older files
        options = {
            "foreach": None,
            "maximize": False,
            "differentiable": False,
            "capturable": False,
            "fused": None,
            "decoupled_weight_decay": False,
            "amsgrad": False,
            "nesterov": False,
            "centered": False,
            "momentum": 0,
        }
        return {name: value for name, value in options.items() if name in known}

    @staticmethod
    def _tensor_step(state, param, group):
        if state and "step" in state and not isinstance(state["step"], Tensor):
            state["step"] = new_step(param, group) + float(state["step"])

    def _check_gradient(self, grad):
        if grad.is_sparse and not self._sparse:
            raise RuntimeError(f"{type(self).__name__} does not support sparse gradients")

    def _stateless(self, group) -> bool:
        # parameters without a state do not appear in the state_dict
        return False

    def _new_state(self, param, group) -> dict:
        return {}

    def _run(self, group, rows) -> None:
        raise NotImplementedError

    def _rule_options(self, rule, group) -> dict:
        """Return the keyword arguments of an update rule: options of the group, and what a gradient scaler has set."""
        known = {
            "grad_scale": getattr(self, "grad_scale", None),
            "found_inf": getattr(self, "found_inf", None),
        }
        known.update(group)
        for name, parts in _PARTS.items():
            if isinstance(group.get(name), (tuple, list)):
                known.update(zip(parts, group[name], strict=True))
        return {name: known[name] for name in option_names(rule) if name in known}

    def _apply(self, rule, group, rows, *parts: str) -> None:
        """Calls an update rule with lists of the parameters, the gradients and each named part of the states."""
        params, grads, states = ([row[k] for row in rows] for k in range(3))
        lists = [[state.get(part) for state in states] for part in parts]
        rule(params, grads, *lists, **self._rule_options(rule, group))

    @_use_grad_for_differentiable
    def step(self, closure=None):
        """Update all parameters once.

        `closure` recomputes the loss and its gradients; its value is returned.
        """
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            rows = []
            for p in group["params"]:
                grad = p.grad
                if grad is None:
                    continue
                self._check_gradient(grad)
                state = {} if self._stateless(group) else self.state[p]
                if not state:
                    state.update(self._new_state(p, group))
                rows.append((p, grad, state))
            if rows:
                self._run(group, rows)
        return loss
