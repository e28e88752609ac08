"""The memory format of results and gradients.

Pooling, normalisation, resizing, padding and convolution keep that of the operand.
"""

from __future__ import annotations

import itertools

from tests.golden.answers import refusal

_PLANES = {
    "max_pool2d": "F.max_pool2d(x, 2)",
    "max_pool2d indices": "F.max_pool2d(x, 2, return_indices=True)[1] * x[..., :2, :2]",
    "avg_pool2d": "F.avg_pool2d(x, 3, 1, 1)",
    "adaptive_avg_pool2d": "F.adaptive_avg_pool2d(x, 3)",
    "adaptive_avg_pool2d to one": "F.adaptive_avg_pool2d(x, 1)",
    "adaptive_max_pool2d": "F.adaptive_max_pool2d(x, 3)",
    "lp_pool2d": "F.lp_pool2d(x, 2, 2)",
    "batch_norm": "F.batch_norm(x, None, None, torch.arange(3.0) + 1, torch.arange(3.0), training=True)",
    "batch_norm in evaluation": "F.batch_norm(x, torch.zeros(3), torch.ones(3))",
    "instance_norm": "F.instance_norm(x)",
    "group_norm": "F.group_norm(x, 3)",
    "layer_norm": "F.layer_norm(x, x.shape[1:])",
    "nearest": "F.interpolate(x, scale_factor=2)",
    "nearest-exact": "F.interpolate(x, scale_factor=1.5, mode='nearest-exact')",
    "bilinear": "F.interpolate(x, size=(3, 7), mode='bilinear')",
    "bicubic": "F.interpolate(x, size=(3, 7), mode='bicubic')",
    "area": "F.interpolate(x, size=(3, 3), mode='area')",
    "pad": "F.pad(x, (1, 2, 0, 1))",
    "conv2d": "F.conv2d(x, torch.arange(24.0).reshape(2, 3, 2, 2))",
    "relu": "F.relu(x)",
}
_VOLUMES = {
    "max_pool3d": "F.max_pool3d(x, 2)",
    "avg_pool3d": "F.avg_pool3d(x, 2)",
    "adaptive_avg_pool3d": "F.adaptive_avg_pool3d(x, 3)",
    "batch_norm": "F.batch_norm(x, None, None, training=True)",
    "group_norm": "F.group_norm(x, 1)",
    "nearest": "F.interpolate(x, scale_factor=2)",
    "trilinear": "F.interpolate(x, size=(3, 5, 2), mode='trilinear')",
    "conv3d": "F.conv3d(x, torch.arange(48.0).reshape(2, 3, 2, 2, 2))",
}


def _answers(torch, text, x, g):
    F = torch.nn.functional

    x = x.requires_grad_()
    y = eval(text, {"torch": torch, "F": F, "x": x})
    return y.detach(), torch.autograd.grad(y, x, g(y))[0]


def _case(text, shape, last, grad_last):
    """Return the strides of result and gradient, and whether the values equal those of contiguous operands."""

    def case(torch):
        format_ = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
        x = (
            torch.arange(torch.Size(shape).numel(), dtype=torch.float32).mul(7).remainder(11).reshape(shape)
            / 8
        )

        def plain(y):
            return (torch.arange(y.numel(), dtype=torch.float32) % 5).reshape(y.shape)

        def laid(y):
            return plain(y).contiguous(memory_format=format_) if grad_last else plain(y)

        found = _answers(torch, text, x.contiguous(memory_format=format_) if last else x.clone(), laid)
        expected = _answers(torch, text, x, plain)
        same = [torch.allclose(a, b, rtol=1e-4, atol=1e-4) for a, b in zip(found, expected, strict=True)]
        return [list(v.stride()) for v in found], same

    return case


_FORMATS = {True: "channels last", False: "contiguous"}
CASES = {
    f"{name}, {len(shape) - 2}d, {_FORMATS[last]}, gradient {_FORMATS[g]}": _case(text, shape, last, g)
    for texts, shape in ((_PLANES, (2, 3, 4, 6)), (_VOLUMES, (2, 3, 4, 4, 2)))
    for name, text in texts.items()
    for last in (True, False)
    for g in (True, False)
}


def transposes_of_other_ranks(torch):
    found = []
    for shape in ((), (2,), (2, 3), (2, 3, 4)):
        x = torch.arange(float(max(1, torch.Size(shape).numel()))).reshape(shape)
        for name in ("mT", "mH", "H"):
            found.append([shape, name, refusal(lambda x=x, name=name: getattr(x, name))] if shape else name)
        if len(shape) >= 2:
            found.append([tuple(x.mT.shape), tuple(x.mH.stride())])
    return found


def bytes_as_another_dtype_have_no_gradient(torch):
    x = torch.ones(2, 4, dtype=torch.float64, requires_grad=True)
    kinds = (torch.float32, torch.int64, torch.float64, torch.complex128)
    return [[str(k), x.view(k).requires_grad, tuple(x.view(dtype=k).shape)] for k in kinds]


def ravel_is_contiguous(torch):
    x = torch.arange(12.0)
    found = [x[::2].ravel(), x.view(3, 4).t().ravel(), x[3].ravel(), x.ravel()]
    return found, [f._base is x for f in found], x[::2].reshape(-1).stride()


def where_tensor_split_takes_positions(torch):
    x = torch.arange(10)
    split = torch.tensor_split
    return (
        split(x, torch.tensor([2, 5])),
        split(x, torch.tensor(3)),
        refusal(lambda: split(x, torch.tensor(1.5))),
        refusal(lambda: split(x, torch.tensor([[1]]))),
    )


def strides_of_likes_with_few_elements(torch):
    """Where dims have at most one element, the strides are not told by the shape. Likes and clones keep them."""
    found = []
    for shape in ((0,), (0, 3), (3, 0), (2, 0, 3), (0, 2, 3), (1, 3, 1), (1, 1), (2, 3, 0, 4), (1, 2, 1, 3)):
        for order in itertools.permutations(range(len(shape))):
            x = torch.empty([shape[d] for d in order]).permute([order.index(d) for d in range(len(shape))])
            for source in (x, x.expand(2, *shape) if len(shape) < 3 else x.unsqueeze(0), x[..., :1]):
                made = [
                    torch.empty_like(source),
                    torch.zeros_like(source, dtype=torch.int64),
                    torch.ones_like(source),
                    torch.full_like(source, 2.0),
                    torch.rand_like(source),
                    source.clone(),
                ]
                formats = [torch.contiguous_format, torch.preserve_format]
                formats += [torch.channels_last] * (source.dim() == 4)
                made += [torch.zeros_like(source, memory_format=one) for one in formats]
                made += [source.clone(memory_format=one) for one in formats]
                found.append([list(source.stride()), *[list(m.stride()) for m in made]])
    return found
