"""DistributedDataParallel: every process has the same model, and gradients are averaged in backward."""

import contextlib
import itertools

from ..._errors import unsupported
from ...autograd import is_grad_enabled, no_grad
from ...distributed import collectives
from ...distributed.algorithms.ddp_comm_hooks import default_hooks
from ...distributed.algorithms.join import Join, Joinable
from ...distributed.process_group import resolve
from ...distributed.setup import get_world_size
from ...distributed.utils import (
    _cast_forward_inputs,
    _sync_module_states,
    _verify_param_shape_across_processes,
)
from ...tensor import Tensor
from ..modules.module import Module
from ._joining import DDPJoinHook, common_rank, gradients_are_due
from ._mixed import _MixedPrecision, cast_buffers, cast_parameters
from ._reducer import Reducer, unreached

__all__ = ["DistributedDataParallel", "_MixedPrecision"]


class DistributedDataParallel(Module, Joinable):
    """Wraps `module` and averages its gradients over the processes of a group while backward runs.

    Gradients are reduced in buckets of `bucket_cap_mb` (default 25 MiB; the first bucket has 1 MiB). If a
    parameter takes no part in a backward pass, the next forward raises RuntimeError, unless
    `find_unused_parameters` or `static_graph` is set; then a parameter that no process has used keeps its
    gradient. With `gradient_as_bucket_view`, `.grad` is a view of the bucket's memory.
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
        if mixed_precision is not None and mixed_precision.keep_low_precision_grads:
            raise unsupported(
                "torch.nn.parallel.DistributedDataParallel", "keep_low_precision_grads is not supported"
            )
        self.mixed_precision = mixed_precision
        self.process_group = device_mesh.get_group() if device_mesh is not None else resolve(process_group)
        self.module = module
        self.device_ids = device_ids
        self.output_device = output_device
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.require_backward_grad_sync = True
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
        if mixed_precision is not None and mixed_precision.buffer_dtype is not None:
            cast_buffers(module, mixed_precision.buffer_dtype)
        self._ignored = {p for name, p in module.named_parameters() if name in ignored}
        self._divide_by_initial_world_size = True
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        cap = int((25 if bucket_cap_mb is None else bucket_cap_mb) * 1024 * 1024)
        self.reducer = Reducer(self._parameters_to_reduce, self.process_group, cap, gradient_as_bucket_view)
        if mixed_precision is not None:
            self.reducer.dtype = mixed_precision.reduce_dtype or mixed_precision.param_dtype
        self._handles = [
            p.register_post_accumulate_grad_hook(self._reduce) for p in self._parameters_to_reduce
        ]

    def _reduce(self, parameter):
        due = self.require_backward_grad_sync and parameter.grad is not None
        if due and (self.process_group.size() > 1 or self.reducer.hook is not None):
            self.reducer.ready(parameter)

    def forward(self, *inputs, **kwargs):
        """Return the module's output.

        With `broadcast_buffers`, the first process's buffers are sent first.
        """
        self._before_forward()
        return self._after_forward(self._run(inputs, kwargs))

    def _before_forward(self) -> None:
        """Send the first process's buffers to all."""
        self._tell_joined()
        if self.process_group.size() > 1 and self.require_backward_grad_sync:
            self._share_buffers(candidate=True)

    def _after_forward(self, output):
        """Prepare the reduction of the gradients, and return the output."""
        due = self.process_group.size() > 1 or self.reducer.hook is not None
        if is_grad_enabled() and self.require_backward_grad_sync and due:
            unused = None
            if self.find_unused_parameters or self.static_graph:
                unused = unreached(_tensors(output), self._parameters_to_reduce)
            self.reducer.start(unused)
        return output

    def _tell_joined(self) -> None:
        """Inside a `join` block, notify the processes without inputs, so that they take part in this step."""
        work = Join.notify_join_context(self)
        if work is not None:
            active = int(work.get_future().wait()[0].item())
            self.reducer.divisor = self.process_group.size() if self._divide_by_initial_world_size else active
        if self._join_config.enable:
            gradients_are_due(self, joined=False)
        else:
            self.reducer.divisor = self.process_group.size()

    def _share_buffers(self, candidate: bool) -> None:
        """Copy the buffers of the first process to all (inside `join`: of the last process with inputs)."""
        buffers = list(self.module.buffers()) if self.broadcast_buffers else []
        if not buffers:
            return
        root = common_rank(self, candidate) if self._join_config.enable else 0
        with no_grad():
            for buffer in buffers:
                collectives.broadcast(buffer, group=self.process_group, group_src=root)

    def _run(self, inputs, kwargs):
        policy = self.mixed_precision
        if policy is None:
            return self.module(*inputs, **kwargs)
        if policy.param_dtype is not None and policy.cast_forward_inputs:
            inputs, kwargs = _cast_forward_inputs(policy.param_dtype, *inputs, **kwargs)
        if policy.param_dtype is None:
            return self.module(*inputs, **kwargs)
        with cast_parameters(self.module, policy.param_dtype, self._ignored):
            return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """Do not reduce the gradients of backward passes inside this block."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def join(self, divide_by_initial_world_size=True, enable=True, throw_on_early_termination=False):
        """Allow processes to have different numbers of inputs inside this block.

        A process without inputs takes part in the collectives of the others, with gradients of zero.
        Gradients are divided by the number of all processes, or by the number of processes with inputs if
        `divide_by_initial_world_size` is False.
        """
        return Join(
            [self],
            enable,
            throw_on_early_termination,
            divide_by_initial_world_size=divide_by_initial_world_size,
        )

    def join_hook(self, divide_by_initial_world_size: bool = True, **kwargs):
        """Return the hook that runs for this module in a process without inputs."""
        return DDPJoinHook(self, divide_by_initial_world_size)

    @property
    def join_device(self):
        """The device of the parameters."""
        return self._parameters_to_reduce[0].device

    @property
    def join_process_group(self):
        """The process group of this module."""
        return self.process_group

    def register_comm_hook(self, state, hook) -> None:
        """Let `hook(state, bucket) -> Future` reduce each bucket instead of the average."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self.reducer.hook = (state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type) -> None:
        """Register one of the two built-in hooks: the plain average, or the average in float16."""
        compressed = getattr(comm_hook_type, "name", str(comm_hook_type)).endswith("FP16_COMPRESS")
        self.register_comm_hook(
            None, default_hooks.fp16_compress_hook if compressed else default_hooks.allreduce_hook
        )

    def scatter(self, inputs, kwargs, device_ids):
        """Return the inputs unchanged, because each process has one device."""
        return (inputs,), (kwargs,)

    def train(self, mode: bool = True):
        """Set training or evaluation mode of this wrapper and of the module."""
        super().train(mode)
        return self

    def _set_static_graph(self) -> None:
        """Declare that every iteration uses the same parameters. Unused ones are still detected each time."""
        self.static_graph = True

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module, params_and_buffers_to_ignore) -> None:
        """Exclude the parameters and buffers with these names from synchronisation."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore
        for name, tensor in itertools.chain(module.named_parameters(), module.named_buffers()):
            tensor._ddp_ignored = name in params_and_buffers_to_ignore


def _tensors(value) -> list:
    """Return all tensors in nested lists, tuples, dicts and dataclasses."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    elif hasattr(value, "__dataclass_fields__"):
        value = [getattr(value, name) for name in value.__dataclass_fields__]
    return [t for inner in value for t in _tensors(inner)] if isinstance(value, (list, tuple)) else []
