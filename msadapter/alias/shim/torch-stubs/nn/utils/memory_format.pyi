# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.conv import Conv2d as Conv2d
from torch.nn.modules.conv import Conv3d as Conv3d
from torch.nn.modules.conv import ConvTranspose2d as ConvTranspose2d
from torch.nn.modules.conv import ConvTranspose3d as ConvTranspose3d

def convert_conv2d_weight_memory_format(module, memory_format) -> _Any: ...
def convert_conv3d_weight_memory_format(module, memory_format) -> _Any: ...
