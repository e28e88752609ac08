"""Parts that the optimizers share: the loop over parameters, checks of options, small computations."""

from .. import ops
from ..autograd import enable_grad
from ..tensor import Tensor
from ..tensor import _tensor as factory
from .optimizer import Optimizer, _get_scalar_dtype, _use_grad_for_differentiable


def check(value, ok: bool, what: str):
    """Raise ValueError('Invalid <what>: <value>') unless ok."""
    if not ok:
        raise ValueError(f"Invalid {what}: {value}")


def check_lr(lr, foreach=False, capturable=False):
    """Check that a learning rate is a number >= 0, or a tensor with one element."""
    if isinstance(lr, Tensor):
        if foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
        if lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
    check(lr, lr >= 0.0, "learning rate")


def check_betas(betas):
    for i in (0, 1):
        if not 0.0 <= betas[i] < 1.0:
            raise ValueError(f"Invalid beta parameter at index {i}: {betas[i]}")


def new_step(param, group):
    """Return a step counter, on the parameter's device for capturable and fused groups, else on the CPU."""
    if group.get("capturable") or group.get("fused"):
        return ops.zeros((), dtype=_get_scalar_dtype(is_fused=group.get("fused")), device=param.device)
    return factory.tensor(0.0, dtype=_get_scalar_dtype())


def zeros_like(param):
    return ops.zeros_like(param, memory_format=_preserve())


def _preserve():
    from .._serialization.names import root

    return root().preserve_format


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


def unzip(rows, width: int):
    """Return the columns of a list of tuples as lists."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


class RuleOptimizer(Optimizer):
    """An optimizer whose step is a loop over the parameters.

    Subclasses define `_new_state(param, group)`, which runs once, and `_run(group, rows)`. rows holds (param,
    grad, state) for each parameter that has a gradient.
    """

    _sparse = False

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
