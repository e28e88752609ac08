"""Hooks around forward and backward that gather and release a module's parameters and reduce its gradients."""

from __future__ import annotations

from enum import Enum

from ....autograd import Function, Variable, is_grad_enabled
from ....tensor import Tensor
from ....utils._pytree import tree_flatten, tree_map, tree_unflatten
from ..._composable_state import _get_module_state, _State


class Phase(Enum):
    """The phase in which the module is."""

    IDLE = 0
    FORWARD = 1
    BACKWARD = 2


class FSDPState(_State):
    """A module's group of parameters with its hooks. The first module that runs becomes the root of the modules below it."""

    def __init__(self, modules, group, policy, reshard_after_forward, auto):
        self.modules, self.group, self.policy = modules, group, policy
        self.reshard_after_forward, self.auto = reshard_after_forward, auto
        self.root: FSDPState | None = None
        self.states: list[FSDPState] = []
        self.phase, self.pending, self.entered, self.left = Phase.IDLE, False, 0, 0
        self.reshard_after_backward, self.is_last_backward = True, True
        for module in modules:
            module.register_forward_pre_hook(self._before_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self._after_forward, prepend=False)
            module.register_state_dict_pre_hook(lambda *_: self._parts_only())
            module.register_load_state_dict_pre_hook(lambda *_: self._parts_only())

    def _parts_only(self) -> None:
        """Reshards before a state dict is made, because state dicts contain sharded parameters."""
        if self.group is not None and self.phase is Phase.IDLE:
            self.group.reshard()

    def _become_root(self) -> None:
        """Collects the states of submodules. A root's parameters stay unsharded between forward and backward."""
        for module in self.modules:
            for sub in module.modules():
                state = _get_module_state(sub)
                if isinstance(state, FSDPState) and state not in self.states:
                    if state is not self and state.root is state:
                        state.states = []
                    state.root = self
                    self.states.append(state)
        if self.auto:
            self.reshard_after_forward = False
        for state in self.states:
            if state.group is not None:
                state.group.reread()

    # ---------------------------------------------------------------- forward
    def _before_forward(self, module, args, kwargs):
        if self.phase is Phase.BACKWARD:  # the forward of a recomputation
            if self.group is not None:
                self.group.unshard()
            return self._cast(args, kwargs)
        if self.root is None:
            self._become_root()
        self.phase = Phase.FORWARD
        args, kwargs = self._cast(args, kwargs)
        if self.group is not None:
            self.group.unshard()
            args, kwargs = self._watch_inputs(args, kwargs)
        self.entered += 1
        return args, kwargs

    def _cast(self, args, kwargs):
        wanted = self.policy.param_dtype
        if wanted is None or not self.policy.cast_forward_inputs:
            return args, kwargs
        return tree_map(lambda x: _as(x, wanted), args), tree_map(lambda x: _as(x, wanted), kwargs)

    def _watch_inputs(self, args, kwargs):
        """Registers after_backward on the inputs: when their gradients are computed, so are those of the parameters."""
        if not is_grad_enabled():
            return args, kwargs
        leaves, spec = tree_flatten((list(args), kwargs))
        places = [i for i, x in enumerate(leaves) if type(x) is Tensor and x.requires_grad]
        if places:
            watched = _AfterBackward.apply(self, *(leaves[i] for i in places))
            for i, x in zip(places, watched, strict=True):
                leaves[i] = x
        args, kwargs = tree_unflatten(leaves, spec)
        return tuple(args), kwargs

    def _after_forward(self, module, args, output):
        if self.phase is Phase.BACKWARD:
            return output
        self.left += 1
        if self.left >= len(self.modules):
            self.entered = self.left = 0
            if self.group is not None and self.reshard_after_forward:
                self.group.reshard()
            self.phase = Phase.IDLE
        if is_grad_enabled():
            for x in tree_flatten(output)[0]:
                if isinstance(x, Tensor) and x.requires_grad:
                    x.register_hook(self._before_backward)
        if self.policy.output_dtype is not None:
            output = tree_map(lambda x: _as(x, self.policy.output_dtype), output)
        return output

    # ---------------------------------------------------------------- backward
    def _before_backward(self, grad):
        root = self.root or self
        if not root.pending:
            root.pending = True
            Variable._execution_engine.queue_callback(root._end_of_backward)
        self.phase = Phase.BACKWARD
        if self.group is not None:
            self.group.unshard()
        return grad

    def after_backward(self) -> None:
        """Called when the parameters' gradients are computed."""
        if self.group is None:
            return
        if self.reshard_after_backward:
            self.group.reshard()
        self.group.reduce()
        self.phase = Phase.IDLE

    def _end_of_backward(self) -> None:
        """Handles modules whose inputs have no gradient, for which after_backward was not called."""
        for state in self.states:
            state.after_backward()
            state.phase = Phase.IDLE
        self.pending = False


def _as(x, wanted):
    return x.to(wanted) if isinstance(x, Tensor) and x.is_floating_point() else x


class _AfterBackward(Function):
    """Passes the inputs through. The arrival of their gradients signals the end of the module's backward."""

    @staticmethod
    def forward(ctx, state, *inputs):
        ctx.state = state
        return tuple(x.view_as(x) for x in inputs)

    @staticmethod
    def backward(ctx, *grads):
        ctx.state.after_backward()
        return None, *grads
