# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from multiprocessing.context import AuthenticationError as AuthenticationError
from multiprocessing.context import BufferTooShort as BufferTooShort
from multiprocessing.context import Process as Process
from multiprocessing.context import ProcessError as ProcessError
from multiprocessing.context import TimeoutError as TimeoutError
from torch.multiprocessing import reductions as reductions
from torch.multiprocessing.spawn import ProcessContext as ProcessContext
from torch.multiprocessing.spawn import ProcessContext as SpawnContext
from torch.multiprocessing.spawn import ProcessException as ProcessException
from torch.multiprocessing.spawn import ProcessExitedException as ProcessExitedException
from torch.multiprocessing.spawn import ProcessRaisedException as ProcessRaisedException
from torch.multiprocessing.spawn import spawn as spawn
from torch.multiprocessing.spawn import start_processes as start_processes

Array: _Any
Barrier: _Any
BoundedSemaphore: _Any
Condition: _Any
Event: _Any
JoinableQueue: _Any
Lock: _Any
Manager: _Any
Pipe: _Any
Pool: _Any
Queue: _Any
RLock: _Any
RawArray: _Any
RawValue: _Any
Semaphore: _Any
SimpleQueue: _Any
Value: _Any
def active_children() -> _Any: ...
allow_connection_pickling: _Any
cpu_count: _Any
def current_process() -> _Any: ...
freeze_support: _Any
def get_all_sharing_strategies() -> _Any: ...
get_all_start_methods: _Any
get_context: _Any
get_logger: _Any
def get_sharing_strategy() -> _str: ...
get_start_method: _Any
log_to_stderr: _Any
def parent_process() -> _Any: ...
set_executable: _Any
set_forkserver_preload: _Any
def set_sharing_strategy(new_strategy: _str) -> None: ...
set_start_method: _Any
