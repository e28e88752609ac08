"""Strides of results, of resized tensors and of tensors given as ``out=``; memory formats; and which object a base is."""

SETUP = """
import torch.nn as nn, torch.nn.functional as F
last, last3, plain, keep = torch.channels_last, torch.channels_last_3d, torch.contiguous_format, torch.preserve_format
x = torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1)
image = torch.arange(2.0 * 4 * 6 * 6).reshape(2, 4, 6, 6).sin().to(memory_format=last)
one = torch.arange(2.0 * 36).reshape(2, 1, 6, 6).cos()
volume = torch.arange(2.0 * 3 * 125).reshape(2, 3, 5, 5, 5).sin().to(memory_format=last3)
def weighted(module, format):
    torch.manual_seed(1)
    module = module.to(memory_format=format)
    return module
def shape(t):
    return tuple(t.shape), t.stride()
def empty(*dtype):
    return torch.empty(0, dtype=dtype[0] if dtype else None)
"""

_OUT = [
    "torch.eq(x, x, out=empty(torch.bool))",
    "torch.exp(x, out=empty())",
    "torch.add(x, x, out=empty())",
    "torch.add(x, x, out=torch.empty(4, 2, 3))",
    "torch.clamp(x, 0, 1, out=empty())",
    "torch.where(x > 0, x, x, out=empty())",
    "torch.cumsum(x, 0, out=empty())",
    "torch.sum(x, 0, out=empty())",
    "torch.lerp(x, x, 0.5, out=empty())",
    "torch.cat([x, x], out=empty())",
    "torch.tril(x, out=empty())",
    "torch.add(x[:, :, :1], x[:, :, :1], out=empty())",
    "torch.mul(x.expand(2, 4, 2, 3), 2, out=empty())",
]
_RESIZED = [
    "torch.rand(2, 3, 4).resize_(2, 3, 4, 5, memory_format=last)",
    "torch.rand(120).resize_(1, 2, 3, 4, 5, memory_format=last3)",
    "torch.rand(2, 3, 4, 5).resize_(2, 3, 4, 5, memory_format=last)",
    "torch.rand(2, 3, 4, 5).resize_as_(image)",
    "torch.rand(2, 3, 4, 5).resize_as_(image, memory_format=keep)",
    "torch.rand(2, 3, 4, 5).resize_as_(image, memory_format=plain)",
    "torch.rand(2, 3, 4, 5).resize_as_(volume, memory_format=keep)",
]
_TO = [
    "one.to(memory_format=last)",
    "one.contiguous(memory_format=last)",
    "one.to(memory_format=last).to(memory_format=plain)",
    "image.to(memory_format=plain)",
    "image.to(torch.float64, memory_format=last)",
    "image[:, :, ::2].to(memory_format=plain)",
    "volume.to(memory_format=last3)",
    "weighted(nn.Conv2d(1, 8, 3), last).weight",
    "weighted(nn.Conv2d(8, 8, 3, groups=8), last).weight",
]
_LAYERS = [
    "weighted(nn.Conv2d(1, 8, 3), last)(one)",
    "weighted(nn.Conv2d(4, 8, 3, groups=4), last)(image.contiguous())",
    "weighted(nn.ConvTranspose2d(4, 4, 3, groups=4), last)(image.contiguous())",
    "weighted(nn.Conv2d(4, 8, 1), plain)(image)",
    "nn.PixelShuffle(2)(image)",
    "nn.ReflectionPad2d(1)(image)",
    "nn.ReplicationPad2d(1)(image)",
    "nn.CircularPad2d(1)(image)",
    "nn.ReflectionPad3d(1)(volume)",
    "nn.ReplicationPad3d(1)(volume)",
    "nn.ReflectionPad2d(1)(one)",
    "nn.BatchNorm2d(2).eval()(torch.arange(6.0).reshape(1, 3, 2, 1).permute(0, 2, 1, 3))",
    "nn.MaxPool3d(2)(volume)",
    "nn.MaxPool3d(2)(volume[0])",
    "nn.MaxPool3d(2, return_indices=True)(volume[0].clone())[1]",
]
_EXPANDED = [
    "torch.rand(5).expand(1, 5)",
    "torch.rand(5).expand(1, 1, 5)",
    "torch.rand(5).expand(2, 1, 5)",
    "torch.rand(5).expand(1, 2, 5)",
    "torch.rand(1, 5).expand(1, 3, 5)",
    "torch.rand(2, 5)[:, 1].expand(1, 2)",
    "torch.tensor(1.0).expand(1)",
    "torch.tensor(1.0).expand(1, 1, 2)",
]

CASES = [
    *(f"shape({call})" for call in (*_OUT, *_RESIZED, *_TO, *_LAYERS, *_EXPANDED)),
    "t = torch.rand(1); v = [t._version]; t.resize_(1, 2); v.append(t._version); t.resize_as_(x); v.append(t._version); "
    "t.resize_(4, 2, 3); [*v, t._version]",
    "torch.rand(2).resize_(2, memory_format=keep)",
    "torch.rand(2, 3).resize_(2, 3, memory_format=last)",
    "torch.rand(3).resize_(2**62, 8)",
    "torch.rand(3).resize_(3, -1)",
    "torch.empty((), dtype=torch.float64).resize_([0, 4, 2**61])",
    "t = torch.ones(720).as_strided((2, 3, 2, 3, 5, 4), (6, 2, 15, 5, 1, 0)); v = t.flatten(0, 1); w = v.flatten(1, 3); "
    "[v._base is t._base, w._base is t._base, w.flatten(2, 2)._base is t._base]",
    "v = torch.rand(4)[1:]; w = v[1:]; [v._base is v._base, w._base is v._base]",
    "torch.cummax(torch.zeros(3), 0, out=(empty(torch.int16), empty(torch.int64)))",
    "torch.logcumsumexp(torch.zeros(3), 0, out=empty(torch.float64))",
    "torch.quint8.is_signed",
    "e = torch.ones(()).expand(5, 0); [f(torch.ones_like(e)).stride() for f in (lambda t: t.add_(1), lambda t: t.mul_(e), "
    "lambda t: t.fill_(2), torch.relu_, lambda t: torch.add(t, t, out=t), torch.rand_like)]",
    "torch.tensor([2, 1]).sort(stable=None)",
    "torch.unique(torch.zeros(0, 3), dim=0)",
    "torch.unique(torch.zeros(3, 0), dim=0)",
    "torch.unique(torch.zeros(0, 3), dim=1)",
    "torch.unique_consecutive(torch.zeros(0, 2), dim=0)",
    "F.grid_sample(torch.zeros(1, 2, 2), torch.zeros(1, 1, 1, 2))",
    "F.grid_sample(torch.zeros(1, 2, 2, 2), torch.zeros(2, 1, 1, 2))",
    "F.grid_sample(torch.zeros(1, 2, 2, 2), torch.zeros(1, 1, 2))",
    "F.max_unpool3d(torch.ones(1, 3, 1, 1, 1), torch.zeros(1, 3, 1, 1, 1, dtype=torch.int64), [1, 1])",
    "F.max_unpool2d(torch.ones(1, 3, 1, 1), torch.zeros(1, 3, 1, 1, dtype=torch.int64), [1])",
    "F.adaptive_avg_pool2d(torch.ones(1, 2, 4, 4), (2,))",
    "F.adaptive_max_pool2d(torch.ones(1, 2, 4, 4), [2])",
    "F.adaptive_avg_pool1d(torch.ones(1, 2, 4), (2,))",
]
