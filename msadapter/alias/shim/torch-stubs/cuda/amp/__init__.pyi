# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.cuda.amp import autocast_mode as autocast_mode
from torch.cuda.amp import grad_scaler as grad_scaler
from torch.cuda.amp.autocast_mode import autocast as autocast
from torch.cuda.amp.grad_scaler import GradScaler as GradScaler

custom_bwd: _Any
custom_fwd: _Any
