# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.cuda.amp import autocast_mode as autocast_mode
from torch.cuda.amp import grad_scaler as grad_scaler
from torch.cuda.amp.autocast_mode import autocast as autocast
from torch.cuda.amp.autocast_mode import custom_bwd as custom_bwd
from torch.cuda.amp.autocast_mode import custom_fwd as custom_fwd
from torch.cuda.amp.grad_scaler import GradScaler as GradScaler

