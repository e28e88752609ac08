# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class ColwiseParallel(ParallelStyle):
    desired_input_layouts: _Any
    input_layouts: _Any
    output_layouts: _Any
    use_local_output: _Any
    def __init__(self, *, input_layouts=..., output_layouts=..., use_local_output: _bool = ...) -> None: ...
    def __repr__(self) -> _Any: ...
class ParallelStyle:
    src_data_rank: _Any
class PrepareModuleInput(ParallelStyle):
    desired_input_kwarg_layouts: _Any
    desired_input_layouts: _Any
    input_kwarg_layouts: _Any
    input_layouts: _Any
    use_local_output: _Any
    def __init__(self, *, input_layouts=..., desired_input_layouts=..., input_kwarg_layouts=..., desired_input_kwarg_layouts=..., use_local_output: _bool = ...) -> None: ...
    def __repr__(self) -> _Any: ...
class PrepareModuleInputOutput(ParallelStyle):
    prepare_module_input: _Any
    prepare_module_output: _Any
    def __init__(self, *, input_layouts=..., desired_input_layouts=..., input_kwarg_layouts=..., desired_input_kwarg_layouts=..., use_local_input: _bool = ..., output_layouts, desired_output_layouts, use_local_output: _bool = ...) -> None: ...
class PrepareModuleOutput(ParallelStyle):
    desired_output_layouts: _Any
    output_layouts: _Any
    use_local_output: _Any
    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output: _bool = ...) -> None: ...
    def __repr__(self) -> _Any: ...
class RowwiseParallel(ParallelStyle):
    desired_input_layouts: _Any
    input_layouts: _Any
    output_layouts: _Any
    use_local_output: _Any
    def __init__(self, *, input_layouts=..., output_layouts=..., use_local_output: _bool = ...) -> None: ...
    def __repr__(self) -> _Any: ...
class SequenceParallel(ParallelStyle):
    desired_input_layouts: _Any
    input_layouts: _Any
    output_layouts: _Any
    sequence_sharding: _Any
    use_local_output: _Any
    def __init__(self, *, sequence_dim: _int = ..., use_local_output: _bool = ...) -> None: ...
    def __repr__(self) -> _Any: ...
def loss_parallel() -> _Any: ...
def parallelize_module(module, device_mesh=..., parallelize_plan=..., *, src_data_rank=...) -> _Any: ...
