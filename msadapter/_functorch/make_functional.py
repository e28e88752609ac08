"""torch._functorch.make_functional: modules as functions of their parameters, in the older form of the package functorch."""

import copy

from .. import ops
from ..func import functional_call
from ..func._modules import of_one_kind
from ..nn import Module, Parameter

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


def _without_values(model: Module) -> Module:
    """Return a copy of a module whose parameters and buffers have shapes, but no elements. The names of shared ones share one."""
    copied = copy.deepcopy(model)
    made: dict[int, object] = {}
    for module in copied.modules():
        for held in (module._parameters, module._buffers):
            for name, value in held.items():
                if value is None:
                    continue
                if id(value) not in made:
                    empty = ops.empty_like(value, device="meta")
                    made[id(value)] = (
                        Parameter(empty, value.requires_grad) if held is module._parameters else empty
                    )
                held[name] = made[id(value)]
    return copied


def _tracked(model: Module, disable_autograd_tracking: bool) -> tuple:
    """Return the parameters of a module. Without tracking they are leaves that need no gradient."""
    if not disable_autograd_tracking:
        return tuple(model.parameters())
    return tuple(parameter.detach().requires_grad_(False) for parameter in model.parameters())


class FunctionalModule(Module):
    """A module without values: ``f(params, *args, **kwargs)`` calls it with these parameters."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = param_names

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False):
        names = tuple(name for name, _ in model.named_parameters())
        return FunctionalModule(_without_values(model), names), _tracked(model, disable_autograd_tracking)

    def forward(self, params, *args, **kwargs):
        return functional_call(
            self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs
        )


class FunctionalModuleWithBuffers(Module):
    """A module without values: ``f(params, buffers, *args, **kwargs)`` calls it with these parameters and buffers."""

    def __init__(
        self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names, self.buffer_names = param_names, buffer_names

    @staticmethod
    def _create_from(model: Module, disable_autograd_tracking: bool = False):
        params = tuple(name for name, _ in model.named_parameters())
        buffers = tuple(name for name, _ in model.named_buffers())
        made = FunctionalModuleWithBuffers(_without_values(model), params, buffers)
        return made, _tracked(model, disable_autograd_tracking), tuple(model.buffers())

    def forward(self, params, buffers, *args, **kwargs):
        given = zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True)
        return functional_call(self.stateless_model, dict(given), args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False):
    """Return (a `FunctionalModule`, the parameters) of a module without buffers.

    Raises:
        RuntimeError: the module has buffers.
    """
    if any(True for _ in model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule._create_from(model, disable_autograd_tracking)


def make_functional_with_buffers(model: Module, disable_autograd_tracking: bool = False):
    """Return (a `FunctionalModuleWithBuffers`, the parameters, the buffers) of a module."""
    return FunctionalModuleWithBuffers._create_from(model, disable_autograd_tracking)


def combine_state_for_ensemble(models):
    """Return (a `FunctionalModuleWithBuffers`, parameters, buffers) of modules of one kind, for `vmap` over its first arguments.

    Each parameter and buffer is a copy without a gradient, with a new first dimension of size len(models).

    Raises:
        RuntimeError: there is no module, they are in different modes, or of different classes.
    """
    models = of_one_kind(models, "combine_state_for_ensemble")
    functions, parameters, buffers = zip(*map(make_functional_with_buffers, models), strict=True)
    return functions[0], _stacked(parameters), _stacked(buffers)


def _stacked(states) -> tuple:
    return tuple(ops.stack(same).detach() for same in zip(*states, strict=True))


def functional_init(model_class, ensemble_shape=(), device="cpu"):
    """Return a function that makes a module without buffers, or an ensemble of several of them.

    Args:
        ensemble_shape: () for one module, or (number,) for an ensemble, whose parameters are stacked.

    Returns:
        a function with the arguments of the class. It returns (parameters, the module as a function of the parameters and a tuple
        of inputs, the parameters' names).
    """

    def made(*args, **kwargs):
        model, states = _ensemble(model_class, ensemble_shape, device, args, kwargs)
        function, own = make_functional(model)
        parameters = _stacked([list(state.parameters()) for state in states]) if states else own
        return parameters, lambda weights, inputs: function(weights, *inputs), function.param_names

    return made


def functional_init_with_buffers(model_class, ensemble_shape=(), device="cpu"):
    """Like `functional_init`, for modules with buffers.

    Returns:
        a function that returns (parameters, buffers, the module as a function, the parameters' names, the buffers' names).
    """

    def made(*args, **kwargs):
        model, states = _ensemble(model_class, ensemble_shape, device, args, kwargs)
        function, parameters, buffers = make_functional_with_buffers(model)
        if states:
            parameters = _stacked([list(state.parameters()) for state in states])
            buffers = _stacked([list(state.buffers()) for state in states])

        def called(weights, buffers, inputs):
            return function(weights, buffers, *inputs)

        return parameters, buffers, called, function.param_names, function.buffer_names

    return made


def _ensemble(model_class, ensemble_shape, device, args, kwargs) -> tuple[Module, list[Module]]:
    """Return a module and, for an ensemble, all of its modules."""
    if len(ensemble_shape) >= 2:
        raise ValueError("NYI: ensemble_shape with more than 1 element")
    if not ensemble_shape:
        return model_class(*args, **kwargs).to(device), []
    if ensemble_shape[0] <= 0:
        raise ValueError(f"num_models {ensemble_shape[0]} should be > 0")
    states = [model_class(*args, **kwargs).to(device) for _ in range(ensemble_shape[0])]
    return states[0], states
