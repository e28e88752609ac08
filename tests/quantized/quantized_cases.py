"""Quantised tensors, and linear layers with dynamic quantisation, compared with PyTorch's."""

from __future__ import annotations

import warnings

KINDS = ("qint8", "quint8", "qint32")


def _refused(function):
    try:
        return function()
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        return [type(error).__name__, str(error)[:60]]


def _numbers(torch, seed: int, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator) * 3


def _described(q):
    return [
        q.int_repr(),
        q.dequantize(),
        str(q.dtype),
        str(q.qscheme()),
        q.is_quantized,
        list(q.shape),
        list(q.stride()),
    ]


def one_scale(torch):
    found = []
    for kind in KINDS:
        dtype = getattr(torch, kind)
        for scale, point in ((0.1, 3), (0.037, 0), (2.0, 5), (1e-3, 100), (0.5, -7)):
            if kind == "quint8" and point < 0:
                continue
            x = _numbers(torch, point + 50, 6, 41)
            x[0] = torch.arange(41) * scale / 2
            q = torch.quantize_per_tensor(x, scale, point, dtype)
            found += [*_described(q), q.q_scale(), q.q_zero_point(), torch.equal(q, q.clone())]
    return found


def scales_of_channels(torch):
    found = []
    for kind in KINDS:
        for axis in (0, 1, 2):
            x = _numbers(torch, 7, 4, 5, 3)
            count = x.shape[axis]
            scales, points = torch.linspace(0.05, 0.4, count), torch.arange(count)
            q = torch.quantize_per_channel(x, scales, points, axis, getattr(torch, kind))
            found += [
                *_described(q),
                q.q_per_channel_scales(),
                q.q_per_channel_zero_points(),
                q.q_per_channel_axis(),
            ]
            found.append(q.clone().int_repr().sum())
    return found


def zero_points_between_integers(torch):
    """Zero points of a floating point dtype are not rounded, and the scheme is another one."""
    found = []
    for kind in ("quint8", "qint8"):  # PyTorch crashes with qint32
        for dtype in (torch.float32, torch.float64):
            x, points = _numbers(torch, 7, 4, 3), torch.linspace(-3.3, 40.7, 4, dtype=dtype)
            q = torch.quantize_per_channel(x, torch.linspace(0.05, 0.4, 4), points, 0, getattr(torch, kind))
            found += [
                *_described(q),
                q.q_per_channel_scales(),
                q.q_per_channel_zero_points(),
                q.q_per_channel_axis(),
            ]
    return found


def scales_that_values_need(torch):
    given = (
        _numbers(torch, 1, 10),
        _numbers(torch, 2, 5).abs() + 1,
        -_numbers(torch, 3, 7).abs(),
        torch.zeros(3),
        _numbers(torch, 4, 9) * 1e-6,
        _numbers(torch, 5, 3) * 1e6,
    )
    found = []
    for x in given:
        for kind in ("qint8", "quint8"):
            for narrow in (False, True):
                q = torch.quantize_per_tensor_dynamic(x, getattr(torch, kind), narrow)
                found += [q.q_scale(), q.q_zero_point(), q.int_repr()]
    return found


def moved_elements(torch):
    q = torch.quantize_per_tensor(torch.arange(24.0).reshape(2, 3, 4), 0.5, 1, torch.quint8)
    moved = [
        q.permute(2, 0, 1),
        q.view(-1)[3:5],
        q.flip((0,)),
        q.transpose(0, 2).contiguous(),
        q[1],
        q.reshape(6, 4),
        q.flatten(1),
        q.unsqueeze(0).squeeze(0),
        q.detach(),
        *q.unbind(0),
        *q.split(1, 1),
        *q.chunk(2, 2),
    ]
    found = [[m.int_repr(), list(m.stride()), m.q_scale(), m.q_zero_point()] for m in moved]
    q[0].copy_(torch.full((3, 4), 100.25))
    found += [q.int_repr(), torch.dequantize(q), [x.sum() for x in torch.dequantize([q, q[0]])]]
    channels = _numbers(torch, 3, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    found.append(list(torch.quantize_per_tensor(channels, 0.1, 0, torch.qint8).stride()))
    values, places = q[1].flatten().topk(3)
    found += [
        values.int_repr(),
        values.q_scale(),
        places,
        [x.int_repr() if x.is_quantized else x for x in q[1].sort(1)],
    ]
    found += [
        q.ravel()._base is q,
        q[1][0]._base is q,
        q._base is None,
        q.clone()._is_view(),
        q.contiguous() is q,
    ]
    found.append(list(torch.quantize_per_tensor(torch.ones(4), 0.5, 1, torch.quint8).resize_(2, 1).shape))
    empty = torch._empty_affine_quantized([2, 0], scale=2, zero_point=3, dtype=torch.quint8)
    return [*found, list(empty.shape), empty.q_scale(), empty.q_zero_point(), empty.numel()]


def refusals(torch):
    x = torch.tensor([1.0, 2.0])
    q = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)
    c = torch.quantize_per_channel(
        torch.ones(2, 2), torch.ones(2), torch.zeros(2, dtype=torch.int64), 0, torch.qint8
    )
    calls = [
        lambda: torch.quantize_per_tensor(x.double(), 0.1, 0, torch.qint8),
        lambda: torch.quantize_per_tensor(x, 0.1, 300, torch.qint8),
        lambda: torch.quantize_per_tensor(x, 0.1, -1, torch.quint8),
        lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.int8),
        lambda: q.requires_grad_(),
        lambda: c.q_scale(),
        lambda: q.q_per_channel_axis(),
        lambda: c.transpose(0, 1),
        lambda: torch.quantize_per_channel(
            torch.ones(2, 2), torch.ones(2), torch.zeros(2, dtype=torch.int64), -1, torch.qint8
        ),
        lambda: x.int_repr()[:1],
    ]
    return [_refused(call) if i < 9 else _refused(call)[0] for i, call in enumerate(calls)]


def _model(torch):
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(37, 16),
        torch.nn.ReLU(),
        torch.nn.Sequential(torch.nn.Linear(16, 8, bias=False), torch.nn.Tanh()),
        torch.nn.Linear(8, 3),
    )


def linear_layers(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = _model(torch)
        quantised = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
        found = [str(quantised), quantised.training, model.training, list(quantised.state_dict())]
        for i, shape in enumerate(((5, 37), (2, 3, 37), (1, 37))):
            for factor in (0.01, 2.0):
                found.append(quantised(_numbers(torch, i, *shape) * factor))
        found += [quantised(torch.zeros(2, 37)), quantised(_numbers(torch, 9, 2, 37).abs())]
        first = quantised[0]
        found += [first.weight().q_scale(), first.weight().int_repr(), first.bias(), quantised[2][0].bias()]
        found.append(str(torch.ao.quantization.quantize_dynamic(model, {"2", "0"})))
        found.append(_refused(lambda: first(torch.ones(2, 37).double())))
        found.append(_refused(lambda: first(torch.ones(37))))
        found.append(_refused(lambda: torch.ao.quantization.quantize_dynamic(model, dtype=torch.float32)))
        zeros = torch.nn.Linear(3, 2)
        torch.nn.init.zeros_(zeros.weight)
        again = torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(zeros), inplace=True)
        return [*found, again[0].weight().q_scale()]
