# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from enum import Enum as _Enum
from torch.nn.modules.module import Module as _base_Module

class Pipe(_base_Module):
    has_loss_and_backward: _Any
    loss_spec: _Any
    num_stages: _Any
    split_gm: _Any
    def __init__(self, split_gm, num_stages: _int, has_loss_and_backward: _bool = ..., loss_spec=...) -> None: ...
    def build_stage(self, stage_index: _int, device, group=...) -> _Any: ...
    def forward(self, *args, **kwargs) -> _Any: ...
    @staticmethod
    def from_tracing(mod, example_args, example_kwargs=..., split_policy=...) -> _Any: ...
    def get_stage_module(self, stage_idx: _int) -> _Any: ...
    def info(self) -> _Any: ...
    def print_readable(self) -> None: ...
class PipelineStage:
    _arrived: _Any
    _backwards: _Any
    _group: _Any
    _has_backward: _Any
    _neighbours: _Any
    _sending: _Any
    bwd_cache: _Any
    chunks: _Any
    device: _Any
    fwd_cache: _Any
    group: _Any
    group_rank: _Any
    group_size: _Any
    has_backward: _Any
    is_first: _Any
    is_last: _Any
    num_stages: _Any
    output_chunks: _Any
    stage_index: _Any
    stage_index_to_group_rank: _Any
    submod: _Any
    def __init__(self, submodule, stage_index, num_stages, device, input_args=..., output_args=..., output_grads=..., input_grads=..., group=..., dw_builder=..., get_mesh=...) -> None: ...
    def backward_one_chunk(self, bwd_chunk_id: _int, loss=..., full_backward: _bool = ..., last_backward: _bool = ...) -> None: ...
    def clear_runtime_states(self) -> None: ...
    def count_backward(self) -> _bool: ...
    def finish_sending(self) -> None: ...
    def forward_maybe_with_nosync(self, *args, **kwargs) -> _Any: ...
    def forward_one_chunk(self, fwd_chunk_id: _int, args, kwargs=..., save_forward_output=...) -> _Any: ...
    def scale_grads(self, grad_scale_factor: _int) -> None: ...
class Schedule1F1B:
    _args_chunk_spec: _Any
    _has_backward: _Any
    _internal_losses: _Any
    _kwargs_chunk_spec: _Any
    _loss_fn: _Any
    _n_microbatches: _Any
    _num_stages: _Any
    _output_merge_spec: _Any
    _stage: _Any
    _stages: _Any
    pipeline_order: _Any
    pp_group_size: _Any
    rank: _Any
    scale_grads: _Any
    def __init__(self, stage, n_microbatches: _int, *args, **kwargs) -> None: ...
    def eval(self, *args, target=..., losses=..., **kwargs) -> _Any: ...
    def step(self, *args, target=..., losses=..., return_outputs: _bool = ..., **kwargs) -> _Any: ...
class ScheduleDualPipeV:
    def __init__(self, *args, **kwargs) -> None: ...
class ScheduleGPipe:
    _args_chunk_spec: _Any
    _has_backward: _Any
    _internal_losses: _Any
    _kwargs_chunk_spec: _Any
    _loss_fn: _Any
    _n_microbatches: _Any
    _num_stages: _Any
    _output_merge_spec: _Any
    _stage: _Any
    _stages: _Any
    pipeline_order: _Any
    pp_group_size: _Any
    rank: _Any
    scale_grads: _Any
    def __init__(self, stage, n_microbatches: _int, *args, **kwargs) -> None: ...
    def eval(self, *args, target=..., losses=..., **kwargs) -> _Any: ...
    def step(self, *args, target=..., losses=..., return_outputs: _bool = ..., **kwargs) -> _Any: ...
class ScheduleInterleaved1F1B:
    _args_chunk_spec: _Any
    _has_backward: _Any
    _internal_losses: _Any
    _kwargs_chunk_spec: _Any
    _loss_fn: _Any
    _n_microbatches: _Any
    _num_stages: _Any
    _output_merge_spec: _Any
    _stages: _Any
    microbatches_per_round: _Any
    n_local_stages: _Any
    number_of_rounds: _Any
    pipeline_order: _Any
    pp_group_size: _Any
    rank: _Any
    scale_grads: _Any
    def __init__(self, stages, n_microbatches: _int, loss_fn=..., args_chunk_spec=..., kwargs_chunk_spec=..., output_merge_spec=..., scale_grads: _bool = ..., backward_requires_autograd: _bool = ..., defer_pp_recv: _bool = ...) -> None: ...
    def eval(self, *args, target=..., losses=..., **kwargs) -> _Any: ...
    def step(self, *args, target=..., losses=..., return_outputs: _bool = ..., **kwargs) -> _Any: ...
class ScheduleInterleavedZeroBubble:
    def __init__(self, *args, **kwargs) -> None: ...
class ScheduleLoopedBFS:
    _args_chunk_spec: _Any
    _has_backward: _Any
    _internal_losses: _Any
    _kwargs_chunk_spec: _Any
    _loss_fn: _Any
    _n_microbatches: _Any
    _num_stages: _Any
    _output_merge_spec: _Any
    _stages: _Any
    n_local_stages: _Any
    pipeline_order: _Any
    pp_group_size: _Any
    rank: _Any
    scale_grads: _Any
    def __init__(self, stages, n_microbatches: _int, loss_fn=..., output_merge_spec=..., scale_grads: _bool = ..., backward_requires_autograd: _bool = ..., defer_pp_recv: _bool = ...) -> None: ...
    def eval(self, *args, target=..., losses=..., **kwargs) -> _Any: ...
    def step(self, *args, target=..., losses=..., return_outputs: _bool = ..., **kwargs) -> _Any: ...
class ScheduleZBVZeroBubble:
    def __init__(self, *args, **kwargs) -> None: ...
class SplitPoint(_Enum):
    BEGINNING = ...
    END = ...
def build_stage(stage_module, stage_index, pipe_info, device, group=...) -> _Any: ...
def pipe_split() -> None: ...
def pipeline(module, mb_args, mb_kwargs=..., split_spec=..., split_policy=...) -> _Any: ...
