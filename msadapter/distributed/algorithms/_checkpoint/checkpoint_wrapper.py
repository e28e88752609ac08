"""Wrappers that recompute the activations of a module in backward, or offload them to the host."""

from __future__ import annotations

from enum import Enum, auto
from functools import partial

from ....autograd.graph import save_on_cpu
from ....nn import Module
from ....utils.checkpoint import checkpoint
from ...fsdp._wrap_utils import _construct_wrap_fn, _post_order_apply
from ...fsdp.wrap import _Policy, _recursive_wrap, lambda_auto_wrap_policy

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """The kind of recomputation."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """Base class of the wrappers. Attributes, indexing and parameter names are those of the wrapped module."""

    def __init__(self, mod: Module):
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self.register_state_dict_post_hook(self._without_prefix)
        self.register_load_state_dict_pre_hook(self._with_prefix)

    def forward(self, *args, **kwargs):
        """Defined by the wrappers."""
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key):
        return self._checkpoint_wrapped_module[key]

    def named_parameters(self, *args, **kwargs):
        """Parameters under the module's own names."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter

    @staticmethod
    def _without_prefix(module, state_dict, prefix, *args):
        for key in [k for k in state_dict if k.startswith(prefix + _CHECKPOINT_PREFIX)]:
            state_dict[prefix + key[len(prefix + _CHECKPOINT_PREFIX) :]] = state_dict.pop(key)

    @staticmethod
    def _with_prefix(module, state_dict, prefix, *args):
        for key in [
            k for k in state_dict if k.startswith(prefix) and not k.startswith(prefix + _CHECKPOINT_PREFIX)
        ]:
            state_dict[prefix + _CHECKPOINT_PREFIX + key[len(prefix) :]] = state_dict.pop(key)


class OffloadWrapper(ActivationWrapper):
    """Keeps the saved tensors of a module on the host."""

    def forward(self, *args, **kwargs):
        """The module's output."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """Recomputes the activations of a module in backward."""

    def __init__(
        self, mod, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs
    ):
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            self.checkpoint_fn = partial(
                checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT, **checkpoint_fn_kwargs
            )
        else:
            self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args, **kwargs):
        """The module's output."""
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)
        names = list(kwargs)  # re-entrant recomputation passes only positional arguments

        def run(*given):
            return self._checkpoint_wrapped_module(
                *given[: len(args)], **dict(zip(names, given[len(args) :], strict=True))
            )

        return self.checkpoint_fn(run, *args, *kwargs.values())


def offload_wrapper(module: Module) -> Module:
    """Wraps a module so that its saved tensors are kept on the host."""
    return OffloadWrapper(module)


def checkpoint_wrapper(
    module, checkpoint_impl=CheckpointImpl.NO_REENTRANT, checkpoint_fn=None, **checkpoint_fn_kwargs
) -> Module:
    """Wraps a module with recomputation by `torch.utils.checkpoint` or checkpoint_fn(module, *args, **kwargs)."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def apply_activation_checkpointing(
    model, checkpoint_wrapper_fn=checkpoint_wrapper, check_fn=lambda _: True, auto_wrap_policy=None
) -> None:
    """Wraps, in place, the submodules that check_fn or a policy of fsdp.wrap selects."""
    if isinstance(auto_wrap_policy, _Policy):
        chosen = auto_wrap_policy._run_policy(model, ignored_modules=set(), root_kwargs={})
        _post_order_apply(model, _construct_wrap_fn(model, chosen, checkpoint_wrapper_fn))
        return
    policy = auto_wrap_policy or partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    _recursive_wrap(
        module=model,
        auto_wrap_policy=policy,
        wrapper_cls=checkpoint_wrapper_fn,
        ignored_modules=set(),
        ignored_params=set(),
        only_wrap_children=True,
    )
