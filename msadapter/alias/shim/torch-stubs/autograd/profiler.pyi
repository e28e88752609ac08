# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.profiler import record_function as record_function
from typing import Any as _Any, Generic as _Generic
from typing_extensions import TypeVar as _TypeVar
_T = _TypeVar("_T", default=_Any)

class EventList(_builtins.list[_Any]):
    _profile_memory: _Any
    _with_flops: _Any
    self_cpu_time_total: _Any
    def __init__(self, events=..., *, profile_memory=..., with_flops=..., **_) -> None: ...
    def export_chrome_trace(self, path) -> None: ...
    def export_stacks(self, path: _str, metric: _str = ...) -> None: ...
    def key_averages(self, group_by_input_shapes=..., group_by_stack_n=..., group_by_overload_name=...) -> _Any: ...
    def table(self, sort_by=..., row_limit=..., max_src_column_width=..., max_name_column_width=..., max_shapes_column_width=..., header=..., top_level_events_only=..., time_unit=...) -> _str: ...
    def total_average(self) -> _Any: ...
class FunctionEvent:
    category: _Any
    concrete_inputs: _Any
    count: _Any
    cpu_children: _Any
    cpu_memory_usage: _Any
    cpu_parent: _Any
    cpu_time: _Any
    cpu_time_total: _Any
    cuda_time_total: _Any
    device_index: _Any
    device_memory_usage: _Any
    device_resource_id: _Any
    device_time_total: _Any
    device_type: _Any
    flops: _Any
    fwd_thread: _Any
    id: _Any
    input_shapes: _Any
    is_async: _Any
    is_legacy: _Any
    is_remote: _Any
    is_user_annotation: _Any
    key: _Any
    kwinputs: _Any
    name: _Any
    node_id: _Any
    overload_name: _Any
    scope: _Any
    self_cpu_memory_usage: _Any
    self_cpu_time_total: _Any
    self_cuda_time_total: _Any
    self_device_memory_usage: _Any
    self_device_time_total: _Any
    sequence_nr: _Any
    stack: _Any
    thread: _Any
    time_range: _Any
    trace_name: _Any
    use_device: _Any
    def __init__(self, id, name, thread, start_us, end_us, overload_name=..., fwd_thread=..., input_shapes=..., stack=..., scope=..., use_device=..., cpu_memory_usage=..., device_memory_usage=..., is_async=..., is_remote=..., sequence_nr=..., node_id=..., device_type=..., device_index=..., device_resource_id=..., is_legacy=..., flops=..., trace_name=..., concrete_inputs=..., kwinputs=..., is_user_annotation=...) -> None: ...
    def __repr__(self) -> _Any: ...
class emit_itt(emit_nvtx[_T]):
    ...
class emit_nvtx(_Generic[_T]):
    def __init__(self, enabled=..., record_shapes=...) -> None: ...
def kineto_available() -> _bool: ...
def load_nvprof(path) -> _Any: ...
class profile:
    _entered: _Any
    _inner: _Any
    enabled: _Any
    function_events: _Any
    self_cpu_time_total: _Any
    def __enter__(self) -> _Any: ...
    def __exit__(self, *exc) -> _Any: ...
    def __init__(self, enabled=..., *, use_cuda=..., use_device=..., record_shapes=..., with_flops=..., profile_memory=..., with_stack=..., with_modules=..., use_kineto=..., use_cpu=..., experimental_config=..., acc_events=..., custom_trace_id_callback=...) -> None: ...
    def export_chrome_trace(self, path) -> None: ...
    def export_stacks(self, path, metric=...) -> None: ...
    def key_averages(self, group_by_input_shape=..., group_by_stack_n=..., group_by_overload_name=...) -> _Any: ...
    def table(self, *args, **options) -> _str: ...
    def total_average(self) -> _Any: ...
