# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.lazy import LazyModuleMixin as _base_LazyModuleMixin
from torch.nn.modules.module import Module as _base_Module

class Conv1d(_base_Module):
    _reversed_padding_repeated_twice: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Parameter
    def __init__(self, in_channels, out_channels, kernel_size, stride=..., padding=..., dilation=..., groups=..., bias=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class Conv2d(_base_Module):
    _reversed_padding_repeated_twice: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Parameter
    def __init__(self, in_channels, out_channels, kernel_size, stride=..., padding=..., dilation=..., groups=..., bias=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class Conv3d(_base_Module):
    _reversed_padding_repeated_twice: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Parameter
    def __init__(self, in_channels, out_channels, kernel_size, stride=..., padding=..., dilation=..., groups=..., bias=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class ConvTranspose1d(_base_Module):
    _reversed_padding_repeated_twice: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Parameter
    def __init__(self, in_channels, out_channels, kernel_size, stride=..., padding=..., output_padding=..., groups=..., bias=..., dilation=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input, output_size=...) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class ConvTranspose2d(_base_Module):
    _reversed_padding_repeated_twice: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Parameter
    def __init__(self, in_channels, out_channels, kernel_size, stride=..., padding=..., output_padding=..., groups=..., bias=..., dilation=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input, output_size=...) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class ConvTranspose3d(_base_Module):
    _reversed_padding_repeated_twice: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Parameter
    def __init__(self, in_channels, out_channels, kernel_size, stride=..., padding=..., output_padding=..., groups=..., bias=..., dilation=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input, output_size=...) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class LazyConv1d(_base_LazyModuleMixin, _base_Module):
    _reversed_padding_repeated_twice: _Any
    bias: _Any
    cls_to_become: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Any
    def __init__(self, out_channels, kernel_size, stride=..., padding=..., dilation=..., groups=..., bias=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
    def initialize_parameters(self, input, *args, **kwargs) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class LazyConv2d(_base_LazyModuleMixin, _base_Module):
    _reversed_padding_repeated_twice: _Any
    bias: _Any
    cls_to_become: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Any
    def __init__(self, out_channels, kernel_size, stride=..., padding=..., dilation=..., groups=..., bias=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
    def initialize_parameters(self, input, *args, **kwargs) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class LazyConv3d(_base_LazyModuleMixin, _base_Module):
    _reversed_padding_repeated_twice: _Any
    bias: _Any
    cls_to_become: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Any
    def __init__(self, out_channels, kernel_size, stride=..., padding=..., dilation=..., groups=..., bias=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
    def initialize_parameters(self, input, *args, **kwargs) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class LazyConvTranspose1d(_base_LazyModuleMixin, _base_Module):
    _reversed_padding_repeated_twice: _Any
    bias: _Any
    cls_to_become: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Any
    def __init__(self, out_channels, kernel_size, stride=..., padding=..., output_padding=..., groups=..., bias=..., dilation=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input, output_size=...) -> _Any: ...
    def initialize_parameters(self, input, *args, **kwargs) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class LazyConvTranspose2d(_base_LazyModuleMixin, _base_Module):
    _reversed_padding_repeated_twice: _Any
    bias: _Any
    cls_to_become: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Any
    def __init__(self, out_channels, kernel_size, stride=..., padding=..., output_padding=..., groups=..., bias=..., dilation=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input, output_size=...) -> _Any: ...
    def initialize_parameters(self, input, *args, **kwargs) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
class LazyConvTranspose3d(_base_LazyModuleMixin, _base_Module):
    _reversed_padding_repeated_twice: _Any
    bias: _Any
    cls_to_become: _Any
    dilation: _Any
    groups: _Any
    in_channels: _Any
    kernel_size: _Any
    out_channels: _Any
    output_padding: _Any
    padding: _Any
    padding_mode: _Any
    stride: _Any
    transposed: _Any
    weight: _Any
    def __init__(self, out_channels, kernel_size, stride=..., padding=..., output_padding=..., groups=..., bias=..., dilation=..., padding_mode=..., device=..., dtype=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input, output_size=...) -> _Any: ...
    def initialize_parameters(self, input, *args, **kwargs) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
