"""DistributedDataParallel: the same model on every process, gradients averaged after backward."""

import contextlib
import itertools

from ...autograd import no_grad
from ...distributed import collectives
from ...distributed.process_group import resolve
from ...distributed.reduce_op import ReduceOp
from ...distributed.setup import get_world_size
from ...distributed.utils import _sync_module_states, _verify_param_shape_across_processes
from ..modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Wraps `module`; its gradients are averaged over the group when backward has accumulated them.

    Every parameter's gradient is reduced as soon as it is complete. A parameter that took no part in a
    backward pass is an error in the next forward unless find_unused_parameters (it then keeps its gradient).
    Communication hooks get a bucket of one gradient.
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=True,
        init_sync=True,
        process_group=None,
        bucket_cap_mb=None,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        delay_all_reduce_named_params=None,
        param_to_hook_all_reduce=None,
        mixed_precision=None,
        device_mesh=None,
        skip_all_reduce_unused_params=False,
    ):
        super().__init__()
        if mixed_precision is not None:
            raise NotImplementedError(
                "torch.nn.parallel.DistributedDataParallel: mixed_precision is not "
                "supported "
                "(docs/coverage.md)"
            )
        self.process_group = device_mesh.get_group() if device_mesh is not None else resolve(process_group)
        self.module = module
        self.device_ids = device_ids
        self.output_device = output_device
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
        self._comm_hook = None
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        self._parameters_to_reduce = [
            p for name, p in module.named_parameters() if p.requires_grad and name not in ignored
        ]
        if not self._parameters_to_reduce:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any "
                "parameters that "
                "require a gradient."
            )
        if init_sync and get_world_size(self.process_group) > 1:
            _verify_param_shape_across_processes(self.process_group, self._parameters_to_reduce)
            _sync_module_states(module, self.process_group, 0, self.process_group._ranks[0], ignored)
        self._handles = [
            p.register_post_accumulate_grad_hook(self._reduce) for p in self._parameters_to_reduce
        ]

    def _reduce(self, parameter):
        if not self.require_backward_grad_sync or parameter.grad is None:
            return
        with no_grad():
            if self._comm_hook is not None:
                self._run_hook(parameter)
            elif self.process_group.size() > 1:
                collectives.all_reduce(parameter.grad, ReduceOp.SUM, self.process_group)
                parameter.grad.div_(self.process_group.size())

    def _run_hook(self, parameter):
        from ...distributed import GradBucket

        state, hook = self._comm_hook
        flat = parameter.grad.reshape(-1)
        index = next(i for i, p in enumerate(self._parameters_to_reduce) if p is parameter)
        bucket = GradBucket(index, flat, [parameter.grad], [parameter], index == 0)
        result = hook(state, bucket).wait()
        result = result[0] if isinstance(result, (list, tuple)) else result
        parameter.grad.copy_(result.reshape(parameter.grad.shape))

    def forward(self, *inputs, **kwargs):
        """The module's output; buffers are those of the first process if broadcast_buffers."""
        if self.broadcast_buffers and self.process_group.size() > 1:
            with no_grad():
                for buffer in self.module.buffers():
                    collectives.broadcast(buffer, group=self.process_group, group_src=0)
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """A block whose backward passes do not reduce gradients."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """A block for uneven inputs: nothing to do for one process."""
        if self.process_group.size() > 1:
            raise NotImplementedError(
                "torch.nn.parallel.DistributedDataParallel.join is not supported (docs/coverage.md)"
            )
        return contextlib.nullcontext()

    def register_comm_hook(self, state, hook) -> None:
        """`hook(state, bucket) -> Future` replaces the averaging."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._comm_hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._comm_hook = (state, hook)

    def scatter(self, inputs, kwargs, device_ids):
        """The inputs as they are: each process has one device."""
        return (inputs,), (kwargs,)

    def train(self, mode: bool = True):
        """Training or evaluation mode, of the module too."""
        super().train(mode)
        return self

    def _set_static_graph(self) -> None:
        """Nothing is planned ahead."""

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module, params_and_buffers_to_ignore) -> None:
        """Names that are not synchronised."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore
        for name, tensor in itertools.chain(module.named_parameters(), module.named_buffers()):
            tensor._ddp_ignored = name in params_and_buffers_to_ignore
