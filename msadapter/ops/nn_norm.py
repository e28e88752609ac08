"""softmax and the normalisations.

The fused gradient is used unless a graph of the gradient is recorded (``create_graph``). Then the gradient is
computed from the plain formula, whose operators have gradients of every order.
"""

from __future__ import annotations

import math
import warnings

from .._values.size import Size
from ._declare import _C, composite, op, raw, t
from .nn_normalize import _verify_batch_size

recording = _C.is_grad_enabled


# ---- softmax
def _to(x, dtype):
    return x if dtype is None or x.dtype == dtype else x.to(dtype)


@op(
    "softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    forms="fmo",
    aliases=("special.softmax",),
    grad={"self": lambda g, result, dim: t._softmax_backward(g, result, dim)},
    along="dim",
    autocast={"accelerator": "float32"},
    native=("body", "gradient"),
)
def softmax(self, dim, dtype):
    """exp(x) divided by its sum along `dim`."""
    return raw.Softmax(_to(self, dtype), [dim])


@op(
    "log_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    forms="fmo",
    aliases=("special.log_softmax",),
    grad={"self": lambda g, result, dim: t._log_softmax_backward(g, result, dim)},
    along="dim",
    autocast={"accelerator": "float32"},
    native=("body", "gradient"),
)
def log_softmax(self, dim, dtype):
    """x - log(sum(exp(x))) along `dim`."""
    return raw.LogSoftmax(_to(self, dtype), dim)


op(
    "_softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor",
    ms="SoftmaxBackward",
    forms="f",
    grad={
        "grad": lambda g, output, dim: t._softmax_backward(g, output, dim),
        "output": lambda g, grad, output, dim: (
            g * (grad - (grad * output).sum(dim, keepdim=True)) - grad * (g * output).sum(dim, keepdim=True)
        ),
    },
    along="dim",
)


@op(
    "_log_softmax_backward(Tensor grad, Tensor output, int dim) -> Tensor",
    forms="f",
    grad={
        "grad": lambda g, output, dim: g - (g * output.exp()).sum(dim, keepdim=True),
        "output": lambda g, grad, output, dim: -g * output.exp() * grad.sum(dim, keepdim=True),
    },
    along="dim",
)
def _log_softmax_backward(grad, output, dim):
    return raw.LogSoftmaxGrad(output, grad, dim)


def default_dim(name: str, x, stacklevel: int) -> int:
    """Return the dim that a softmax uses when none is given, with a warning."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if x.dim() in (0, 1, 3) else 1


@composite(
    "nn.functional.softmax(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    forms="f",
    along="dim",
    autocast={"accelerator": "float32"},
    short=False,
)
def functional_softmax(input, dim, _stacklevel, dtype):
    """exp(x) divided by its sum along `dim`."""
    return t.softmax(input, default_dim("softmax", input, _stacklevel) if dim is None else dim, dtype)


@composite(
    "nn.functional.log_softmax(Tensor input, int? dim=None, int _stacklevel=3, ScalarType? dtype=None) -> Tensor",
    forms="f",
    along="dim",
    autocast={"accelerator": "float32"},
    short=False,
)
def functional_log_softmax(input, dim, _stacklevel, dtype):
    """The logarithm of softmax along `dim`."""
    return t.log_softmax(input, default_dim("log_softmax", input, _stacklevel) if dim is None else dim, dtype)


@op(
    "_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    forms="f",
    grad={"self": lambda g, result, dim: t._softmax_backward(g, result, dim)},
    along="dim",
)
def _safe_softmax(self, dim, dtype):
    """softmax that returns zeros where all values along `dim` are -inf."""
    masked = (self == float("-inf")).all(dim, keepdim=True)
    return t.masked_fill_(raw.Softmax(_to(self, dtype), [dim]), masked, 0.0)


# ---- layer_norm
def _normalized_dims(x, normalized_shape):
    return list(range(x.dim() - len(normalized_shape), x.dim()))


def _computed(x):
    """Return x in float32 if it has a 16-bit dtype, else x."""
    return x.float() if x.element_size() == 2 else x


def _standardized(x, dims, eps):
    centred = x - x.mean(dims, keepdim=True)
    return centred * t.rsqrt((centred * centred).mean(dims, keepdim=True) + eps)


def gradients_of(function, inputs, needs, g):
    """Return the gradients of `function(*inputs)` such that autograd records their computation.

    The function returns a tensor, or a tuple; then `g` is a tuple too. Inputs without `needs` get None.
    """
    # The views separate the inputs from the graph that produced them, so that backward stops at them.
    views = [None if x is None else x.view_as(x) for x in inputs]
    wanted = tuple(v for v, n in zip(views, needs, strict=True) if n and v is not None)
    if not wanted:
        return tuple(None for _ in inputs)
    results = function(*views)
    pairs = (
        [(r, x) for r, x in zip(results, g, strict=True) if x is not None]
        if isinstance(results, tuple)
        else [(results, g)]
    )
    found = iter(
        _C.backward(tuple(r for r, _ in pairs), tuple(x for _, x in pairs), wanted, True, True, True, False)
    )
    return tuple(next(found) if n and v is not None else None for v, n in zip(views, needs, strict=True))


def outputs(result, count):
    """Return the results of a raw call with an output mask as a list.

    Results that were not asked for are None.
    """
    found = list(result) if isinstance(result, (tuple, list)) else [result]
    return found + [None] * (count - len(found))


def _layer_norm_reference(x, weight, bias, normalized_shape, eps):
    y = _standardized(_computed(x), _normalized_dims(x, normalized_shape), eps)
    if weight is not None:
        y = y * _computed(weight)
    if bias is not None:
        y = y + _computed(bias)
    return y.to(x.dtype)


def _layer_norm_grad(gs, input, normalized_shape, weight, bias, eps, result1, result2, needs):
    g = gs[0]
    if g is None:
        return None, None, None
    if recording():
        return gradients_of(
            lambda x, w, b: _layer_norm_reference(x, w, b, normalized_shape, eps),
            (input, weight, bias),
            needs,
            g,
        )
    mask = [int(needs[0]), int(needs[1]), int(needs[2])]
    found = outputs(
        raw.LayerNormGradExt(g, input, list(normalized_shape), result1, result2, weight, bias, mask), 3
    )
    return tuple(
        one if need else None for one, need in zip(found, needs, strict=True)
    )  # MindSpore's are empty


op(
    "_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    ms="LayerNormExt",
    forms="f",
    grad={("input", "weight", "bias"): _layer_norm_grad},
    native="gradient",
    node="NativeLayerNormBackward0",
)


def _both(input, normalized_shape, weight, bias):
    """Return weight and bias. MindSpore's operator for an NPU takes no absent ones, so there they are ones and zeros."""
    if (weight is None or bias is None) and _C.in_device_memory(input):
        weight = t.ones(normalized_shape, dtype=input.dtype) if weight is None else weight
        bias = t.zeros(normalized_shape, dtype=input.dtype) if bias is None else bias
    return weight, bias


@composite(
    "nn.functional.layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5)"
    " -> Tensor",
    forms="f",
    autocast={"accelerator": "float32"},
)
def layer_norm(input, normalized_shape, weight, bias, eps):
    """Normalise to mean 0 and variance 1 over the last dims, then scale and shift."""
    return t._layer_norm(input, normalized_shape, *_both(input, normalized_shape, weight, bias), eps)[0]


@composite(
    "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1e-5, "
    "bool cudnn_enable=True) -> Tensor",
    forms="f",
    autocast={"accelerator": "float32"},
    short=False,
)
def torch_layer_norm(input, normalized_shape, weight, bias, eps, cudnn_enable):
    """torch.layer_norm, which is nn.functional.layer_norm."""
    return t._layer_norm(input, normalized_shape, *_both(input, normalized_shape, weight, bias), eps)[0]


@composite(
    "native_layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    forms="f",
    autocast={"accelerator": "float32"},
)
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """Return the result, the mean and 1 / standard deviation."""
    out, mean, rstd = t._layer_norm(
        input, normalized_shape, *_both(input, normalized_shape, weight, bias), eps
    )
    return out, mean.detach(), rstd.detach()


# ---- rms_norm
def _rms_norm_reference(x, weight, normalized_shape, eps):
    y = _computed(x)
    y = y * t.rsqrt((y * y).mean(_normalized_dims(x, normalized_shape), keepdim=True) + eps)
    return (y if weight is None else y * _computed(weight)).to(x.dtype)


def _rms_norm_grad(gs, input, weight, eps, result1, needs):
    g = gs[0]
    if g is None:
        return None, None
    if recording():
        return gradients_of(
            lambda x, w: _rms_norm_reference(x, w, list(weight.shape), eps), (input, weight), needs, g
        )
    return raw.RmsNormGrad(g, input, result1, weight)


op(
    "_rms_norm(Tensor input, Tensor weight, float eps) -> (Tensor, Tensor)",
    ms="RmsNorm",
    forms="f",
    grad={("input", "weight"): _rms_norm_grad},
)


@composite(
    "nn.functional.rms_norm(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
    forms="f",
    aliases=("rms_norm",),
    autocast={"accelerator": "float32"},
)
def rms_norm(input, normalized_shape, weight, eps):
    """Divide by the root of the mean square over the last dims, then scale."""
    normalized_shape = list(normalized_shape)
    if list(input.shape[input.dim() - len(normalized_shape) :]) != normalized_shape:
        raise RuntimeError(
            f"Given normalized_shape={normalized_shape}, expected input with shape "
            f"[*{', '.join(map(str, normalized_shape))}], but got input of size{list(input.shape)}"
        )
    if eps is None:
        eps = _epsilon(input)
    if input.is_complex() or (weight is not None and weight.dtype != input.dtype):
        return _rms_norm_reference(input, weight, normalized_shape, eps)
    if weight is None:
        weight = t.ones(normalized_shape, dtype=input.dtype, device=input.device)
    return t._rms_norm(input, weight, eps)[0]


def _epsilon(x):
    return {2: 2.0**-10 if x.dtype.storage_name == "HalfStorage" else 2.0**-7, 4: 2.0**-23}.get(
        x.element_size(), 2.0**-52
    )


# ---- group_norm
def _group_norm_reference(x, weight, bias, num_groups, eps):
    """Return the result, the mean and 1 / standard deviation."""
    rows = _computed(x).reshape(x.shape[0], num_groups, math.prod(x.shape[1:]) // num_groups)
    mean = rows.mean(2, keepdim=True)
    rstd = t.rsqrt((rows - mean).square().mean(2, keepdim=True) + eps)
    y = ((rows - mean) * rstd).reshape(x.shape)
    shape = [1, -1] + [1] * (x.dim() - 2)
    if weight is not None:
        y = y * _computed(weight).reshape(shape)
    if bias is not None:
        y = y + _computed(bias).reshape(shape)
    return y.to(x.dtype), mean.squeeze(2), rstd.squeeze(2)


def _group_norm_formula(gs, input, num_groups, weight, mean, rstd, needs):
    """Return gradients for the case that mean and rstd also have gradients.

    Each step is computed in the dtype of the input, as in PyTorch.
    """
    n, channels = input.shape[:2]
    per = channels // num_groups
    x = input.reshape(n, num_groups, per, math.prod(input.shape[2:]))  # -1 says nothing of an empty batch
    count = per * x.shape[3]
    mean, rstd = (v.reshape(n, num_groups, 1, 1) for v in (mean, rstd))
    scale = None if weight is None else weight.reshape(1, num_groups, per, 1)
    dx, dweight, dbias = t.zeros_like(x), None, None
    if gs[0] is not None:
        g = gs[0].reshape(x.shape)
        along, total = (g * x).sum(3, keepdim=True), g.sum(3, keepdim=True)
        b, c = ((v if scale is None else v * scale).sum(2, keepdim=True) for v in (along, total))
        b = (c * mean - b) * (rstd * rstd * rstd) * (1.0 / count)
        c = -b * mean - c * rstd * (1.0 / count)
        dx = (rstd if scale is None else rstd * scale) * g + b * x + c
        if needs[1]:
            dweight = ((along - total * mean) * rstd).sum(0).reshape(weight.shape)
        if needs[2]:
            dbias = total.sum(0).reshape(-1)
    extra = t.zeros_like(x)
    if gs[2] is not None:
        slope = -0.5 * (rstd * rstd * rstd) * gs[2].reshape(rstd.shape)
        extra = (2.0 / count) * slope * (x - x.mean([2, 3], keepdim=True))
    if gs[1] is not None:
        extra = extra + gs[1].reshape(mean.shape) / count
    dx = dx + extra
    return dx.reshape(input.shape) if needs[0] else None, dweight, dbias


def _group_norm_grad(gs, input, num_groups, weight, bias, eps, result1, result2, needs):
    if recording():
        return gradients_of(
            lambda x, w, b: _group_norm_reference(x, w, b, num_groups, eps), (input, weight, bias), needs, gs
        )
    if gs[1] is not None or gs[2] is not None:
        return _group_norm_formula(gs, input, num_groups, weight, result1, result2, needs)
    if gs[0] is None:
        return None, None, None
    return outputs(
        raw.GroupNormGrad(gs[0], input, result1, result2, weight, num_groups, needs[0], needs[1], needs[2]), 3
    )


op(
    "_group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
    node="NativeGroupNormBackward0",
    ms="GroupNorm",
    forms="f",
    grad={("input", "weight", "bias"): _group_norm_grad},
    whole=True,
)


def _check_groups(input, num_groups, weight, bias):
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    if num_groups <= 0:
        raise RuntimeError(f"Expected num groups to be greater than 0, got {num_groups}")
    channels = input.shape[1]
    if channels % num_groups:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but got input of shape "
            f"{list(input.shape)} and num_groups={num_groups}"
        )
    for name, p in (("weight", weight), ("bias", bias)):
        if p is not None and (p.dim() != 1 or p.numel() != channels):
            raise RuntimeError(
                f"Expected {name} to be a vector of size equal to the number of channels in input, but got {name} of "
                f"shape {list(p.shape)} and input of shape {list(input.shape)}"
            )


@composite(
    "nn.functional.group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-5) -> Tensor",
    forms="f",
    autocast={"accelerator": "float32"},
)
def group_norm(input, num_groups, weight, bias, eps):
    """Normalise groups of channels of each sample to mean 0 and variance 1, then scale and shift each
    channel.
    """
    _check_groups(input, num_groups, weight, bias)
    _verify_batch_size([input.shape[0] * input.shape[1] // num_groups, num_groups, *input.shape[2:]])
    return t._group_norm(input, num_groups, weight, bias, eps)[0]


@composite(
    "group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-5, bool cudnn_enabled=True)"
    " -> Tensor",
    forms="f",
    autocast={"accelerator": "float32"},
    short=False,
)
def torch_group_norm(input, num_groups, weight, bias, eps, cudnn_enabled):
    """torch.group_norm, which is nn.functional.group_norm."""
    return group_norm(input, num_groups, weight, bias, eps)


@composite(
    "native_group_norm(Tensor input, Tensor? weight, Tensor? bias, int N, int C, int HxW, int group, float eps)"
    " -> (Tensor, Tensor, Tensor)",
    forms="f",
)
def native_group_norm(input, weight, bias, N, C, HxW, group, eps):  # noqa: N803
    """Return the result, the mean and 1 / standard deviation."""
    if input.numel() != N * C * HxW or group <= 0 or C % group:
        raise RuntimeError(
            f"Expected an input of {N} x {C} x {HxW} elements in {group} groups, but got one of size {list(input.shape)}"
        )
    out, mean, rstd = t._group_norm(input, group, weight, bias, eps)
    return out, mean, rstd


# ---- batch_norm
def _batch_norm_reference(x, weight, bias, mean, var, training, eps):
    dims = [0, *range(2, x.dim())]
    shape = [1, -1] + [1] * (x.dim() - 2)
    y = _computed(x)
    if training:
        y = _standardized(y, dims, eps)
    else:
        y = (y - _computed(mean).reshape(shape)) * t.rsqrt(_computed(var).reshape(shape) + eps)
    if weight is not None:
        y = y * _computed(weight).reshape(shape)
    if bias is not None:
        y = y + _computed(bias).reshape(shape)
    return y.to(x.dtype)


def _batch_norm_grad(
    gs, input, weight, bias, running_mean, running_var, training, eps, result1, result2, needs
):
    g = gs[0]
    if g is None:
        return None, None, None
    if recording():
        return gradients_of(
            lambda x, w, b: _batch_norm_reference(x, w, b, running_mean, running_var, training, eps),
            (input, weight, bias),
            needs,
            g,
        )
    mask = [int(needs[0]), int(needs[1]), int(needs[2])]
    mean, var = (None, None) if training else (running_mean, running_var)
    return outputs(
        raw.BatchNormGradExt(g, input, weight, mean, var, result1, result2, training, eps, mask), 3
    )


@op(
    "_batch_norm(Tensor input, Tensor? weight, Tensor? bias, any running_mean, any running_var, bool training, float momentum, "
    "float eps) -> (Tensor, Tensor, Tensor)",
    forms="f",
    grad={("input", "weight", "bias"): _batch_norm_grad},
    whole=True,
    node="NativeBatchNormBackward0",
)
def _batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    # The running statistics change in place. They have the type `any`, so that they are not saved as
    # operands.
    return raw.BatchNormExt(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _batch_norm_checked(input, weight, bias, running_mean, running_var, training, momentum, eps):
    channels = input.shape[1] if input.dim() > 1 else 0
    for name, p in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        if p is not None and p.numel() != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {p.numel()}")
        if p is None and name.startswith("running") and not training:
            raise RuntimeError(f"running_{name[8:]} must be defined in evaluation mode")
    if training and not input.numel():  # an empty batch does not change the running statistics
        running_mean = running_var = None
    out = t._batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if training:
        for p in (running_mean, running_var):
            if p is not None:
                _C.bump_version(p)
    return out


@composite(
    "nn.functional.batch_norm(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, Tensor? bias=None, "
    "bool training=False, float momentum=0.1, float eps=1e-5) -> Tensor",
    forms="f",
)
def batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps):
    """Normalise each channel with the statistics of the batch (training) or the running ones; scale and
    shift.
    """
    if training and math.prod([n for d, n in enumerate(input.shape) if d != 1]) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size {Size(input.shape)}"
        )
    return _batch_norm_checked(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@composite(
    "batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    forms="f",
    short=False,
)
def torch_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """torch.batch_norm. It takes weight and bias before the running statistics."""
    return _batch_norm_checked(input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _native(input, weight, bias, running_mean, running_var, training, momentum, eps):
    out, mean, rstd = _batch_norm_checked(
        input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    return out, mean.detach(), rstd.detach()


@composite(
    "native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, "
    "float momentum, float eps) -> (Tensor, Tensor, Tensor)",
    forms="fo",
)
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Return the result, the batch mean and 1 / standard deviation (both are empty outside training)."""
    return _native(input, weight, bias, running_mean, running_var, training, momentum, eps)


@composite(
    "_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, any running_mean, any running_var, any training, "
    "any momentum=None, any eps=None) -> (Tensor, Tensor, Tensor)",
    forms="f",
)
def _native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """Like native_batch_norm, but the running statistics may be left out.

    The arguments are then (input, weight, bias, training, momentum, eps).
    """
    if eps is None:
        running_mean, running_var, training, momentum, eps = None, None, running_mean, running_var, training
    return _native(input, weight, bias, running_mean, running_var, training, momentum, eps)
