"""Modules that learn the shapes of their parameters from the first input."""

from __future__ import annotations

import warnings

from ..parameter import is_lazy

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """Delays the choice of parameter shapes until the first call.

    A subclass creates its parameters uninitialised and defines ``initialize_parameters(*args)``. After the
    first call, the object becomes an instance of ``cls_to_become``.
    """

    cls_to_become = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)
        warnings.warn(
            "Lazy modules are a new feature under heavy development so changes to the API or functionality "
            "can happen at any moment.",
            stacklevel=2,
        )

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        for name, value in [*self._parameters.items(), *self._buffers.items()]:
            if value is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = value if is_lazy(value) or keep_vars else value.detach()

    def _lazy_load_hook(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        """Give an uninitialised parameter the shape of the stored tensor, before the values are copied."""
        for name, value in [*self._parameters.items(), *self._buffers.items()]:
            key = prefix + name
            if key in state_dict and value is not None:
                stored = state_dict[key]
                if is_lazy(value) and not is_lazy(stored):
                    value.materialize(stored.shape)

    def initialize_parameters(self, *args, **kwargs):
        """Give every uninitialised parameter its shape. The arguments are those of forward."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self):
        """Return whether any parameter or buffer has no shape yet."""
        return any(is_lazy(v) for v in [*self._parameters.values(), *self._buffers.values()])

    def _infer_parameters(self, module, args, kwargs=None):
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook
        del module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. "
            "Run a dummy forward pass to correctly initialize the modules"
        )
