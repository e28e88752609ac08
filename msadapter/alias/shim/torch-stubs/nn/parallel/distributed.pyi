# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed.algorithms.join import Joinable as _base_Joinable
from torch.nn.modules.module import Module as _base_Module

class DistributedDataParallel(_base_Module, _base_Joinable):
    _divide_by_initial_world_size: _Any
    _handles: _Any
    _ignored: _Any
    _parameters_to_reduce: _Any
    broadcast_buffers: _Any
    device_ids: _Any
    dim: _Any
    find_unused_parameters: _Any
    gradient_as_bucket_view: _Any
    join_device: _Any
    join_process_group: _Any
    mixed_precision: _Any
    module: _Any
    output_device: _Any
    process_group: _Any
    reducer: _Any
    require_backward_grad_sync: _Any
    static_graph: _Any
    def __init__(self, module, device_ids=..., output_device=..., dim=..., broadcast_buffers=..., init_sync=..., process_group=..., bucket_cap_mb=..., find_unused_parameters=..., check_reduction=..., gradient_as_bucket_view=..., static_graph=..., delay_all_reduce_named_params=..., param_to_hook_all_reduce=..., mixed_precision=..., device_mesh=..., skip_all_reduce_unused_params=...) -> None: ...
    def forward(self, *inputs, **kwargs) -> _Any: ...
    def join(self, divide_by_initial_world_size=..., enable=..., throw_on_early_termination=...) -> _Any: ...
    def join_hook(self, divide_by_initial_world_size: _bool = ..., **kwargs) -> _Any: ...
    def no_sync(self) -> _Any: ...
    def register_comm_hook(self, state, hook) -> None: ...
    def scatter(self, inputs, kwargs, device_ids) -> _Any: ...
    def train(self, mode: _bool = ...) -> _Any: ...
