# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.cpu.amp import autocast_mode as autocast_mode
from torch.cpu.amp import grad_scaler as grad_scaler
from torch.cpu.amp.autocast_mode import autocast as autocast
from torch.cpu.amp.grad_scaler import GradScaler as GradScaler

