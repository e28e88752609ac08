# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.ao.quantization.qconfig import QConfig as QConfig
from torch.ao.quantization.qconfig import get_default_qat_qconfig as get_default_qat_qconfig
from torch.ao.quantization.qconfig import get_default_qconfig as get_default_qconfig

default_per_channel_qconfig: _Any
default_qat_qconfig: _Any
default_qconfig: _Any
