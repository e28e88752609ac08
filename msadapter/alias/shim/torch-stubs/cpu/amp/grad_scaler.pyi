# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.amp.grad_scaler import GradScaler as _base_GradScaler

class GradScaler(_base_GradScaler):
    def __init__(self, init_scale=..., growth_factor=..., backoff_factor=..., growth_interval=..., enabled=...) -> None: ...
