"""The gradients that torch.ops.aten has as operators (silu_backward, native_layer_norm_backward, ...).

Each one calls autograd on the operator of the table, so that a gradient is defined only once, in the table.
The result can be differentiated again if the operator's gradient can.
"""

from __future__ import annotations

import functools

from .._errors import unsupported
from .._values.base import as_leaf
from ..autograd import enable_grad, grad, is_grad_enabled
from ..ops._declare import declarations, t
from ..tensor import Tensor
from .only import slice as cut

OPERATORS: dict = {}
_REDUCTIONS = ("none", "mean", "sum")


def _vjp(forward, grad_output, *inputs):
    """Return the gradients of ``inputs`` through ``forward``, or None for inputs that it does not depend on."""
    again = is_grad_enabled() and any(x.requires_grad for x in (grad_output, *inputs))
    with enable_grad():
        leaves = [x if again and x.requires_grad else as_leaf(x.detach()) for x in inputs]
        found = grad(forward(*leaves), leaves, grad_output, create_graph=again, allow_unused=True)
    return tuple(found)


def _declare(function):
    OPERATORS[function.__name__] = function
    return function


def _of(name: str, forward):
    """Declare the operator ``name(grad_output, self, ...)``, the gradient of ``forward(self, ...)``."""

    @functools.wraps(forward)
    def backward(grad_output, self, *args, **kwargs):
        return _vjp(lambda x: forward(x, *args, **kwargs), grad_output, self)[0]

    backward.__name__ = backward.__qualname__ = name
    OPERATORS[name] = backward


def _some(forward, grad_output, inputs, output_mask):
    """Return a gradient or None for each input. Inputs that are None or not in the mask get None."""
    places = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and output_mask[i]]

    def run(*given):
        full = list(inputs)
        for i, x in zip(places, given, strict=True):
            full[i] = x
        return forward(*full)

    found: list = [None] * len(inputs)
    for i, g in zip(places, _vjp(run, grad_output, *(inputs[i] for i in places)), strict=True):
        found[i] = g
    return tuple(found)


# ---- activations
_of("log_sigmoid_backward", lambda self, buffer: t.logsigmoid(self))
_of("threshold_backward", lambda self, threshold: t.threshold(self, threshold, 0))
_of("infinitely_differentiable_gelu_backward", lambda self: t.gelu(self))


@_declare
def sigmoid_backward(grad_output, output):
    return t._sigmoid_backward(grad_output, output)


@_declare
def tanh_backward(grad_output, output):
    return t._tanh_backward(grad_output, output)


@_declare
def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    """The input and the result have the same sign, so the formula also holds if ``self`` is the result."""
    if self_is_result and negative_slope < 0:
        raise RuntimeError("In-place leakyReLu backward calculation is triggered with a negative slope")
    return t.where(self > 0, grad_output, grad_output * negative_slope)


@_declare
def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    if is_result:
        negative = (self_or_result + alpha * scale) * input_scale
    else:
        negative = t.exp(self_or_result * input_scale) * (alpha * scale * input_scale)
    return grad_output * t.where(self_or_result <= 0, negative, scale)


@_declare
def _prelu_kernel_backward(grad_output, self, weight):
    zero = t.zeros_like(grad_output)
    return (
        t.where(self > 0, grad_output, weight * grad_output),
        t.where(self > 0, zero, self * grad_output),
    )


# ---- layers
@_declare
def native_dropout_backward(grad_output, mask, scale):
    return grad_output * mask * scale


@_declare
def native_layer_norm_backward(grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask):
    return _some(
        lambda x, w, b: _normalized(x, mean, rstd, len(normalized_shape), w, b),
        grad_out,
        (input, weight, bias),
        output_mask,
    )


def _normalized(x, mean, rstd, dims: int, weight, bias):
    """Return the layer norm of x.

    Epsilon is not an argument, so it is computed from ``rstd`` of the forward.
    """
    axes = tuple(range(-dims, 0))
    wide = x.to(mean.dtype)
    centred = wide - wide.mean(axes, keepdim=True)
    variance = (centred * centred).mean(axes, keepdim=True)
    small = (rstd**-2 - variance).detach()
    out = centred * t.rsqrt(variance + small)
    out = out if weight is None else out * weight
    return (out if bias is None else out + bias).to(x.dtype)


@_declare
def native_group_norm_backward(grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask):
    bias = None if weight is None else t.zeros_like(weight)

    def forward(x, w, b):
        rows = _normalized(
            x.reshape(N, group, -1), mean.reshape(N, group, 1), rstd.reshape(N, group, 1), 1, None, None
        )
        rows = rows.reshape(x.shape)
        shape = (1, C) + (1,) * (x.ndim - 2)
        return rows if w is None else rows * w.reshape(shape) + b.reshape(shape)

    return _some(forward, grad_out, (input, weight, bias), output_mask)


@_declare
def convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed,
        output_padding, groups, output_mask):  # fmt: skip
    bias = weight.new_zeros(list(bias_sizes)) if bias_sizes is not None and output_mask[2] else None
    return _some(
        lambda x, w, b: t.convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups),
        grad_output,
        (input, weight, bias),
        output_mask,
    )


@_declare
def _convolution_double_backward(ggI, ggW, ggb, gO, weight, self, stride, padding, dilation, transposed,
        output_padding, groups, output_mask):  # fmt: skip
    """Return the gradients of (gO, self, weight), given gradients of the convolution's three gradients."""

    def first(g, x, w):
        bias = None if ggb is None else w.new_zeros(ggb.shape)
        options = (stride, padding, dilation, transposed, output_padding, groups)
        with enable_grad():
            leaves = [y if y.requires_grad else as_leaf(y.detach()) for y in (x, w)]
            leaves += [] if bias is None else [as_leaf(bias)]
            out = t.convolution(*leaves[:2], leaves[2] if bias is not None else None, *options)
            return grad(out, leaves, g, create_graph=True)

    wanted = (ggI, ggW) if ggb is None else (ggI, ggW, ggb)
    with enable_grad():
        inputs = [as_leaf(x.detach()) for x in (gO, self, weight)]
        pairs = [(g, v) for g, v in zip(first(*inputs), wanted, strict=True) if v is not None]
        outs, vectors = zip(*pairs, strict=True) if pairs else ((), ())
        found = grad(outs, inputs, vectors, allow_unused=True) if pairs else (None,) * 3
    return tuple(g if asked else None for g, asked in zip(found, output_mask, strict=True))


@_declare
def linear_backward(self, grad_output, weight, output_mask):
    bias = weight.new_zeros(weight.shape[0])
    return _some(t.linear, grad_output, (self, weight, bias), output_mask)


@_declare
def matmul_backward(grad, self, other, mask):
    return _some(t.matmul, grad, (self, other), mask)


@_declare
def embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq, sparse):
    if sparse:
        raise unsupported("torch.ops.aten.embedding_backward", "sparse is not supported")
    return t.embedding_dense_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)


for _n in ("2", "3"):
    for _name in (f"adaptive_avg_pool{_n}d_backward", f"_adaptive_avg_pool{_n}d_backward"):
        OPERATORS[_name] = functools.partial(
            lambda pool, grad_output, self: _vjp(
                lambda x: getattr(t, pool)(x, list(grad_output.shape[-int(pool[-2]) :])), grad_output, self
            )[0],
            f"adaptive_avg_pool{_n}d",
        )


def _scattered(grad_output, self, indices, dims: int):
    """Return a gradient that is nonzero at the maxima.

    ``indices`` count within the last ``dims`` dimensions.
    """
    flat = t.zeros_like(self).flatten(-dims)
    return flat.scatter_add(-1, indices.flatten(-dims), grad_output.flatten(-dims)).reshape(self.shape)


@_declare
def max_pool2d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
):
    return _scattered(grad_output, self, indices, 2)


@_declare
def max_pool3d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
):
    return _scattered(grad_output, self, indices, 3)


@_declare
def adaptive_max_pool2d_backward(grad_output, self, indices):
    return _scattered(grad_output, self, indices, 2)


@_declare
def adaptive_max_pool3d_backward(grad_output, self, indices):
    return _scattered(grad_output, self, indices, 3)


def _pad(mode: str):
    return lambda self, padding: t.pad(self, list(padding), mode=mode)


for _n in ("1", "2", "3"):
    _of(f"reflection_pad{_n}d_backward", _pad("reflect"))
    _of(f"replication_pad{_n}d_backward", _pad("replicate"))


# ---- losses: the reduction is a number
def _loss(name: str):
    def forward(self, target, reduction, **kwargs):
        return getattr(t, name)(self, target, reduction=_REDUCTIONS[reduction], **kwargs)

    return forward


_of("mse_loss_backward", _loss("mse_loss"))
_of("soft_margin_loss_backward", _loss("soft_margin_loss"))
_of(
    "smooth_l1_loss_backward",
    lambda self, target, reduction, beta: _loss("smooth_l1_loss")(self, target, reduction, beta=beta),
)
_of(
    "huber_loss_backward",
    lambda self, target, reduction, delta: _loss("huber_loss")(self, target, reduction, delta=delta),
)
_of(
    "binary_cross_entropy_backward",
    lambda self, target, weight=None, reduction=1: t.binary_cross_entropy(
        self, target, weight, reduction=_REDUCTIONS[reduction]
    ),
)


def _nll(self, target, weight, reduction, ignore_index, total_weight):
    return t.nll_loss(self, target, weight, ignore_index=ignore_index, reduction=_REDUCTIONS[reduction])


_of("nll_loss_backward", _nll)
_of("nll_loss2d_backward", _nll)


# ---- views: the gradient in a tensor of zeros
def _embedded(grad, input_sizes, place):
    """Return zeros of ``input_sizes`` with ``grad`` written into the view ``place(zeros)``."""
    return _vjp(place, grad, grad.new_zeros(list(input_sizes)))[0]


@_declare
def select_backward(grad_output, input_sizes, dim, index):
    return _embedded(grad_output, input_sizes, lambda x: x.select(dim, index))


@_declare
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    return _embedded(grad_output, input_sizes, lambda x: cut(x, dim, start, end, step))


@_declare
def diagonal_backward(grad_output, input_sizes, offset, dim1, dim2):
    return _embedded(grad_output, input_sizes, lambda x: t.diagonal(x, offset, dim1, dim2))


@_declare
def trace_backward(grad, sizes):
    return _embedded(grad, sizes, t.trace)


@_declare
def unfold_backward(grad_in, input_sizes, dim, size, step):
    return _embedded(grad_in, input_sizes, lambda x: x.unfold(dim, size, step))


@_declare
def index_select_backward(grad, self_sizes, dim, index):
    return _embedded(grad, self_sizes, lambda x: t.index_select(x, dim, index))


@_declare
def gather_backward(grad, self, dim, index, sparse_grad):
    return _embedded(grad, self.shape, lambda x: t.gather(x, dim, index))


@_declare
def masked_select_backward(grad, input, mask):
    return _embedded(grad, input.shape, lambda x: t.masked_select(x, mask))


@_declare
def value_selecting_reduction_backward(grad, dim, indices, sizes, keepdim):
    if not keepdim and len(sizes):
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return grad.new_zeros(list(sizes)).scatter(dim, indices, grad) if len(sizes) else grad


@_declare
def cumprod_backward(grad, input, dim, output):
    return _vjp(lambda x: t.cumprod(x, dim), grad, input)[0]


@_declare
def matrix_exp_backward(self, grad):
    return _vjp(t.matrix_exp, grad, self)[0]


# ---- the gradients that declarations name
def _plain(name: str):
    forward = getattr(t, name)
    return lambda self, *args, **kwargs: forward(self, *args, **kwargs)


def _with_sizes(name: str):
    forward = getattr(t, name)

    def backward(grad_output, output_size, input_size, *args, **kwargs):
        return _embedded(grad_output, input_size, lambda x: forward(x, list(output_size), *args, **kwargs))

    backward.__name__ = backward.__qualname__ = f"{name}_backward"
    return backward


for _declaration in declarations.values():
    _name = _declaration.schema.name.rpartition(".")[2]
    if _declaration.facts.backward == "plain":
        _of(f"{_name}_backward", _plain(_name))
    elif _declaration.facts.backward == "sizes":
        _declare(_with_sizes(_name))
