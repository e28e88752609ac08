"""Convolutions and transposed convolutions for 1, 2 and 3 spatial dimensions, with lazy variants."""

import math

from ... import ops
from .. import functional as F
from .. import init
from ..parameter import Parameter, UninitializedParameter
from .lazy import LazyModuleMixin
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple

__all__ = [
    f"{lazy}Conv{transpose}{n}d"
    for lazy in ("", "Lazy")
    for transpose in ("", "Transpose")
    for n in (1, 2, 3)
]

_EXPAND = {1: _single, 2: _pair, 3: _triple}
_PADDING_MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """Base class of convolutions: sizes, weight and bias."""

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation, transposed,
            output_padding, groups, bias, padding_mode, device=None, dtype=None):  # fmt: skip
        super().__init__()
        self._check(in_channels, out_channels, groups, padding, stride, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = self._border()
        outer, inner = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = Parameter(ops.empty((outer, inner // groups, *kernel_size), device=device, dtype=dtype))
        self.register_parameter(
            "bias", Parameter(ops.empty(out_channels, device=device, dtype=dtype)) if bias else None
        )
        self.reset_parameters()

    @staticmethod
    def _check(in_channels, out_channels, groups, padding, stride, padding_mode):
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        if in_channels % groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        if out_channels % groups != 0:
            raise ValueError("out_channels must be divisible by groups")
        valid = {"same", "valid"}
        if isinstance(padding, str):
            if padding not in valid:
                raise ValueError(f"Invalid padding string {padding!r}, should be one of {valid}")
            if padding == "same" and any(s != 1 for s in stride):
                raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'"
            )

    def _border(self):
        """Return the padding in the order of ``F.pad``. The padding modes other than zeros need it."""
        if not isinstance(self.padding, str):
            return _reverse_repeat_tuple(self.padding, 2)
        border = [0, 0] * len(self.kernel_size)
        if self.padding == "same":
            for i, (d, k) in enumerate(zip(self.dilation, self.kernel_size, strict=True)):
                total = d * (k - 1)
                at = 2 * (len(self.kernel_size) - 1 - i)
                border[at] = total // 2
                border[at + 1] = total - total // 2
        return border

    def reset_parameters(self):
        """Fill weight and bias with uniform values in +-1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self):
        n = len(self.kernel_size)
        text = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        )
        if self.padding != (0,) * n:
            text += f", padding={self.padding}"
        if self.dilation != (1,) * n:
            text += f", dilation={self.dilation}"
        if self.output_padding != (0,) * n:
            text += f", output_padding={self.output_padding}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        self.__dict__.setdefault("padding_mode", "zeros")


class _Conv(_ConvNd):
    """A convolution with ``_n`` spatial dimensions."""

    _n: int

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1,
            bias=True, padding_mode='zeros', device=None, dtype=None):  # fmt: skip
        expand = _EXPAND[self._n]
        super().__init__(
            in_channels,
            out_channels,
            expand(kernel_size),
            expand(stride),
            padding if isinstance(padding, str) else expand(padding),
            expand(dilation),
            False,
            expand(0),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _conv_forward(self, input, weight, bias):
        conv = getattr(F, f"conv{self._n}d")
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            return conv(input, weight, bias, self.stride, _EXPAND[self._n](0), self.dilation, self.groups)
        return conv(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input):
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Conv):
    """Convolution of (N, C, L) or (C, L)."""

    _n = 1


class Conv2d(_Conv):
    """Convolution of (N, C, H, W) or (C, H, W)."""

    _n = 2


class Conv3d(_Conv):
    """Convolution of (N, C, D, H, W) or (C, D, H, W)."""

    _n = 3


class _ConvTransposeNd(_ConvNd):
    """A transposed convolution with ``_n`` spatial dimensions."""

    _n: int

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, output_padding=0,
            groups=1, bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        expand = _EXPAND[self._n]
        super().__init__(
            in_channels,
            out_channels,
            expand(kernel_size),
            expand(stride),
            expand(padding),
            expand(dilation),
            True,
            expand(output_padding),
            groups,
            bias,
            padding_mode,
            device=device,
            dtype=dtype,
        )

    def _output_padding(
        self, input, output_size, stride, padding, kernel_size, num_spatial_dims, dilation=None
    ):
        """Return the output padding that gives ``output_size`` (the spatial sizes, or the whole shape).

        A size that no output padding can give raises ValueError.
        """
        if output_size is None:
            return _single(self.output_padding)
        n = num_spatial_dims
        leading = 2 if input.dim() == n + 2 else 1
        if len(output_size) == leading + n:
            output_size = output_size[leading:]
        if len(output_size) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or "
                f"{leading + n} elements (got {len(output_size)})"
            )
        low = [
            (input.size(d + leading) - 1) * stride[d]
            - 2 * padding[d]
            + (dilation[d] if dilation is not None else 1) * (kernel_size[d] - 1)
            + 1
            for d in range(n)
        ]
        high = [low[d] + stride[d] - 1 for d in range(n)]
        for size, least, most in zip(output_size, low, high, strict=True):
            if not least <= size <= most:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from {low} to "
                    f"{high} (for an input of {input.size()[2:]})"
                )
        return [size - least for size, least in zip(output_size, low, strict=True)]

    def forward(self, input, output_size=None):
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for ConvTranspose{self._n}d")
        output_padding = self._output_padding(
            input, output_size, self.stride, self.padding, self.kernel_size, self._n, self.dilation
        )
        conv = getattr(F, f"conv_transpose{self._n}d")
        return conv(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of (N, C, L) or (C, L)."""

    _n = 1


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of (N, C, H, W) or (C, H, W)."""

    _n = 2


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of (N, C, D, H, W) or (C, D, H, W)."""

    _n = 3


class _LazyConvMixin(LazyModuleMixin):
    """Mixin of lazy convolutions: ``in_channels`` is read from the first input."""

    def _finish(self, bias, out_channels, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self):
        """Reset like the ordinary convolution, if the shape is known already."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs):
        """Give the weight and the bias the shapes that fit ``input``."""
        if not self.has_uninitialized_params():
            return
        if input.dim() not in (self._n + 1, self._n + 2):
            raise RuntimeError(
                f"Expected {self._n + 1}D (unbatched) or {self._n + 2}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        self.in_channels = input.shape[-self._n - 1]
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        pair = (
            (self.in_channels, self.out_channels // self.groups)
            if self.transposed
            else (self.out_channels, self.in_channels // self.groups)
        )
        self.weight.materialize((*pair, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()


class _LazyConv(_LazyConvMixin, _Conv):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, dilation=1, groups=1, bias=True,
            padding_mode='zeros', device=None, dtype=None):  # fmt: skip
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._finish(bias, out_channels, device, dtype)


class _LazyConvTranspose(_LazyConvMixin, _ConvTransposeNd):
    def __init__(self, out_channels, kernel_size, stride=1, padding=0, output_padding=0, groups=1,
            bias=True, dilation=1, padding_mode='zeros', device=None, dtype=None):  # fmt: skip
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode
        )
        self._finish(bias, out_channels, device, dtype)


class LazyConv1d(_LazyConv):
    """Conv1d that reads ``in_channels`` from its first input."""

    _n = 1
    cls_to_become = Conv1d


class LazyConv2d(_LazyConv):
    """Conv2d that reads ``in_channels`` from its first input."""

    _n = 2
    cls_to_become = Conv2d


class LazyConv3d(_LazyConv):
    """Conv3d that reads ``in_channels`` from its first input."""

    _n = 3
    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose):
    """ConvTranspose1d that reads ``in_channels`` from its first input."""

    _n = 1
    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose):
    """ConvTranspose2d that reads ``in_channels`` from its first input."""

    _n = 2
    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose):
    """ConvTranspose3d that reads ``in_channels`` from its first input."""

    _n = 3
    cls_to_become = ConvTranspose3d
