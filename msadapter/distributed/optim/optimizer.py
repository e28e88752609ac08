"""torch.distributed.optim.DistributedOptimizer: an optimizer for parameters on several workers."""

from __future__ import annotations

import threading

from ... import futures
from .. import autograd, rpc

__all__ = ["DistributedOptimizer"]

_step = threading.Lock()  # calls of other workers come in several threads


class _LocalOptimizer:
    """The optimizer of the parameters that this worker owns."""

    def __init__(self, optim_cls, local_params_rref, *args, **kwargs):
        self._local_params = [rref.local_value() for rref in local_params_rref]
        self.optim = optim_cls(self._local_params, *args, **kwargs)

    def step(self, autograd_ctx_id: int) -> None:
        """Step with the gradients of a context. A parameter without one stays as it is."""
        gradients = autograd.get_gradients(autograd_ctx_id)
        with _step:
            before = [parameter.grad for parameter in self._local_params]
            try:
                for parameter in self._local_params:
                    parameter.grad = gradients.get(parameter)
                self.optim.step()
            finally:
                for parameter, grad in zip(self._local_params, before, strict=True):
                    parameter.grad = grad


def _new_local_optimizer(optim_cls, local_params_rref, *args, **kwargs):
    return rpc.RRef(_LocalOptimizer(optim_cls, local_params_rref, *args, **kwargs))


def _step_of(local_optimizer, autograd_ctx_id: int) -> None:
    local_optimizer.local_value().step(autograd_ctx_id)


class DistributedOptimizer:
    """Steps ``optimizer_class(parameters, *args, **kwargs)`` on each worker that owns some of the parameters.

    ``params_rref`` are RRefs of parameters. ``step(context_id)`` takes the gradients of a context of distributed autograd, does
    not touch `.grad`, and returns when all workers have made their step.
    """

    def __init__(self, optimizer_class, params_rref, *args, **kwargs):
        by_owner: dict = {}
        for rref in params_rref:
            by_owner.setdefault(rref.owner(), []).append(rref)
        self.is_functional_optim = False
        self.remote_optimizers = futures.wait_all(
            rpc.rpc_async(worker, _new_local_optimizer, (optimizer_class, owned, *args), kwargs)
            for worker, owned in by_owner.items()
        )

    def step(self, context_id: int) -> None:
        """Update all parameters with the gradients of a context."""
        autograd._is_valid_context(context_id)
        futures.wait_all(
            rpc.rpc_async(optimizer.owner(), _step_of, (optimizer, context_id))
            for optimizer in self.remote_optimizers
        )
