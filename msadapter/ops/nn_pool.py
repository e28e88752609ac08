"""Pooling and resizing."""

from __future__ import annotations

import inspect

from ._declare import composite, op, raw, t
from ._linalg_tools import needs_graph
from .nn_conv import _spread


def _flat_gather(g, indices, dims):
    """Return the elements of g at `indices`, which count within the last `dims` dims together."""
    lead = list(g.shape[: g.dim() - dims])
    return t.gather(g.reshape([*lead, -1]), -1, indices.reshape([*lead, -1])).reshape(indices.shape)


# ---- max pooling
def _policy(n):
    """Pooling in three dims has a place on torch's list of autocast on the CPU."""
    return {"cpu": "float32"} if n == 3 else None


def _max_pool_grad(gs, self, kernel_size, stride, padding, dilation, ceil_mode, result1):
    return (
        None
        if gs[0] is None
        else t._max_pool_backward(gs[0], self, result1, kernel_size, stride, padding, dilation, ceil_mode),
    )


_POOL = "int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode"


@op(f"_max_pool(Tensor self, {_POOL}) -> (Tensor, Tensor)", forms="f", grad={("self",): _max_pool_grad})
def _max_pool(self, kernel_size, stride, padding, dilation, ceil_mode):
    return raw.MaxPoolWithIndices(
        self, list(kernel_size), list(stride), list(padding), list(dilation), ceil_mode, 4
    )


def _max_pool_values_grad(g, self, kernel_size, stride, padding, dilation, ceil_mode):
    options = kernel_size, stride, padding, dilation, ceil_mode
    return (t._max_pool_backward(g, self, t._max_pool(self, *options)[1], *options),)


@op(
    f"_max_pool_values(Tensor self, {_POOL}) -> Tensor",
    forms="f",
    npu=lambda self, *options: t._max_pool(self, *options)[0],
    grad={("self",): _max_pool_values_grad},
)
def _max_pool_values(self, kernel_size, stride, padding, dilation, ceil_mode):
    """Return the values of `_max_pool` alone, which is faster where no gradient needs the positions."""
    return raw.MaxPoolValues(self, list(kernel_size), list(stride), list(padding), list(dilation), ceil_mode)


@op(
    f"_max_pool_backward(Tensor grad, Tensor self, Tensor indices, {_POOL}) -> Tensor",
    forms="f",
    grad={"grad": lambda g, indices, kernel_size: _flat_gather(g, indices, len(kernel_size))},
)
def _max_pool_backward(grad, self, indices, kernel_size, stride, padding, dilation, ceil_mode):
    return raw.MaxPoolGradWithIndices(
        self, grad, indices, list(kernel_size), list(stride), list(padding), list(dilation), ceil_mode, 4
    )


def _is_empty_inside(input, n) -> bool:
    """Return whether a dim other than the batch has no elements. Pooling over ``n`` dims refuses that."""
    return 0 in input.shape[input.dim() - n - 1 :]


def _check_steps(steps, message) -> None:
    if any(s == 0 for s in steps):
        raise RuntimeError(message)


def _check_filled(input, n, name) -> None:
    """RuntimeError if a dim other than the batch has no elements."""
    if not _is_empty_inside(input, n):
        return
    if name == "max_pool" and n == 3:
        dim = next(d for d in range(input.dim() - n - 1, input.dim()) if not input.shape[d])
        raise RuntimeError(
            "max_pool3d_with_indices_out_cpu_template(): Expected input's non-batch dimensions to have positive length, "
            f"but input has a shape of {list(input.shape)} and non-batch dimension {dim - input.dim() + n + 1} has length "
            "zero!"
        )
    lead = "max_pool1d: " if name == "max_pool" and n == 1 else ""
    raise RuntimeError(
        f"{lead}Expected {n + 1}D or {n + 2}D (batch mode) tensor with optional 0 dim batch size for input, but got:"
        f"{list(input.shape)}"
    )


def _declare_max(n):
    text = (
        "(Tensor input, int[] kernel_size, any stride=None, int[] padding=0, int[] dilation=1, bool ceil_mode=False, "
        "any return_indices=False) -> any"
    )

    def run(input, kernel_size, stride, padding, dilation, ceil_mode, values_alone):
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"max_pool{n}d: Expected {n + 1}D or {n + 2}D input tensor, but got {list(input.shape)}"
            )
        _check_filled(input, n, "max_pool")
        kernel = _spread(kernel_size, n, "kernel_size")
        steps = kernel if stride is None or stride == [] or stride == () else _spread(stride, n)
        zero = (
            "max_pool1d() stride must be greater than zero, but got 0"
            if n == 1
            else "stride should not be zero"
        )
        _check_steps(steps, zero)
        options = _spread(padding, n, "padding"), _spread(dilation, n, "dilation"), ceil_mode
        if n == 3 and input.dim() == 4:  # PyTorch keeps the memory format of a single volume, too
            values, indices = t._max_pool(input.unsqueeze(0), kernel, steps, *options)
            return values.squeeze(0), indices.squeeze(0)
        if values_alone and n < 3 and not needs_graph(input):
            return t._max_pool_values(input, kernel, steps, *options), None
        return t._max_pool(input, kernel, steps, *options)

    @composite(f"nn.functional.max_pool{n}d{text}", forms="f", sample_rank=n + 1)
    def max_pool(input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
        if (
            n == 3 and not return_indices
        ):  # autocast has a policy for this function and none for the one with indices
            return torch_max_pool(input, kernel_size, stride, padding, dilation, ceil_mode)
        out = run(input, kernel_size, stride, padding, dilation, ceil_mode, not return_indices)
        return (out[0], out[1].long()) if return_indices else out[0]  # an NPU gives positions in int32

    plain = (
        text.replace(", any return_indices=False", "")
        .replace("-> any", "-> Tensor")
        .replace("Tensor input", "Tensor self")
    )

    @composite(f"max_pool{n}d{plain}", forms="f", short=False, autocast=_policy(n), sample_rank=n + 1)
    def torch_max_pool(self, kernel_size, stride, padding, dilation, ceil_mode):
        return run(self, kernel_size, stride, padding, dilation, ceil_mode, True)[0]

    # torch has this name for one dim alone
    @composite(
        f"{'' if n == 1 else 'aten.'}max_pool{n}d_with_indices{plain.replace('-> Tensor', '-> (Tensor, Tensor)')}",
        forms="f",
    )
    def with_indices(self, kernel_size, stride, padding, dilation, ceil_mode):
        out = run(self, kernel_size, stride, padding, dilation, ceil_mode, False)
        return out[0], out[1].long()


# ---- average pooling
_AVERAGE = "int[] kernel_size, int[] stride, int[] padding, bool ceil_mode, bool count_include_pad, int? divisor_override"


@op(
    f"_avg_pool(Tensor self, {_AVERAGE}) -> Tensor",
    forms="f",
    grad={
        "self": lambda g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            t._avg_pool_backward(
                g, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
            )
        )
    },
)
def _avg_pool(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    kernel = raw.AvgPool3DExt if len(kernel_size) == 3 else raw.AvgPool2D
    return kernel(
        self, list(kernel_size), list(stride), list(padding), ceil_mode, count_include_pad, divisor_override
    )


@op(
    f"_avg_pool_backward(Tensor grad, Tensor self, {_AVERAGE}) -> Tensor",
    forms="f",
    grad={
        "grad": lambda g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override: (
            t._avg_pool(g, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)
        )
    },
)
def _avg_pool_backward(
    grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    kernel = raw.AvgPool3DGradExt if len(kernel_size) == 3 else raw.AvgPool2DGrad
    return kernel(
        grad,
        self,
        list(kernel_size),
        list(stride),
        list(padding),
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


def _declare_average(n):
    divisor = "" if n == 1 else ", int? divisor_override=None"
    alias = ("avg_pool1d",) if n == 1 else ()

    def run(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override=None):
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D or {n + 2}D (batch mode) tensor for input, but got {list(input.shape)}"
            )
        _check_filled(input, n, "avg_pool")
        kernel = _spread(kernel_size, n, "kernel_size")
        steps = kernel if stride is None or stride == [] or stride == () else _spread(stride, n)
        _check_steps(steps, "stride should not be zero")
        return t._avg_pool(
            input,
            kernel,
            steps,
            _spread(padding, n, "padding"),
            ceil_mode,
            count_include_pad,
            divisor_override,
        )

    schema = (
        f"nn.functional.avg_pool{n}d(Tensor input, int[] kernel_size, any stride=None, int[] padding=0, bool ceil_mode=False, "
        f"bool count_include_pad=True{divisor}) -> Tensor"
    )
    if n == 1:

        @composite(schema, forms="f", aliases=alias, sample_rank=n + 1)
        def avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad):
            return run(input, kernel_size, stride, padding, ceil_mode, count_include_pad)
    else:

        @composite(schema, forms="fo", autocast=_policy(n), sample_rank=n + 1, backward="plain")
        def avg_pool(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
            return run(input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


# ---- adaptive pooling
@op(
    "_adaptive_avg(Tensor self, int[] output_size) -> Tensor",
    forms="f",
    grad={"self": lambda g, self, output_size: t._adaptive_avg_backward(g, self, output_size)},
)
def _adaptive_avg(self, output_size):
    return (raw.AdaptiveAvgPool3DExt if len(output_size) == 3 else raw.AdaptiveAvgPool2DExt)(
        self, list(output_size)
    )


@op(
    "_adaptive_avg_backward(Tensor grad, Tensor self, int[] output_size) -> Tensor",
    forms="f",
    grad={"grad": lambda g, output_size: t._adaptive_avg(g, output_size)},
)
def _adaptive_avg_backward(grad, self, output_size):
    _check_gradient("avg", grad, len(output_size))
    return (raw.AdaptiveAvgPool3DGradExt if len(output_size) == 3 else raw.AdaptiveAvgPool2DGradExt)(
        grad, self
    )


def _check_gradient(kind: str, grad, n: int) -> None:
    """RuntimeError if the gradient of an adaptive pooling with ``n`` spatial dims is empty in a dim after the first."""
    empty = next((d for d in range(1, grad.dim()) if not grad.shape[d]), None)
    if empty is not None:
        raise RuntimeError(
            f"adaptive_{kind}_pool{n}d_backward(): Expected grad_output to have non-zero size for non-batch dimensions, "
            f"but grad_output has sizes {list(grad.shape)} with dimension {empty} being empty"
        )


def _adaptive_max_grad(gs, self, output_size, result1):
    if gs[0] is None:
        return (None,)
    _check_gradient("max", gs[0], len(output_size))
    return (t._max_pool_backward(gs[0], self, result1, output_size, [1], [0], [1], False),)


@op(
    "_adaptive_max(Tensor self, int[] output_size) -> (Tensor, Tensor)",
    forms="f",
    grad={("self",): _adaptive_max_grad},
)
def _adaptive_max(self, output_size):
    return raw.AdaptiveMaxPool2D(self, list(output_size))


def _adaptive_size(name, input, output_size, n):
    """Replace None in the sizes by the size of the input, and check the rank of the input."""
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"{name}{n}d(): Expected {n + 1}D or {n + 2}D tensor, but got {list(input.shape)}")
    if name == "adaptive_max_pool" and _is_empty_inside(input, n):
        dim = next(d for d in range(input.dim() - n - 1, input.dim()) if not input.shape[d])
        raise RuntimeError(
            f"{name}{n}d(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
            f"{list(input.shape)} with dimension {dim} being empty"
        )
    sizes = [output_size] * n if output_size is None or isinstance(output_size, int) else list(output_size)
    if len(sizes) != n:
        if n == 1:
            raise RuntimeError(f"{name}1d() argument 'output_size' should contain one int (got {len(sizes)})")
        if name == "adaptive_max_pool":
            raise RuntimeError(f"{name}{n}d(): internal error: output_size.size() must be {n}")
        raise RuntimeError(f"{name}{n}d: output_size must be {n}")
    return [input.shape[input.dim() - n + i] if s is None else s for i, s in enumerate(sizes)]


def _one_more(function, x, sizes):
    """Compute a 1-dimensional pooling as a 2-dimensional one."""
    return function(x.unsqueeze(-2), [1, *sizes])


def _declare_adaptive(n):
    alias = ("adaptive_avg_pool1d",) if n == 1 else ()

    @composite(
        f"nn.functional.adaptive_avg_pool{n}d(Tensor input, any output_size) -> Tensor",
        forms="f",
        aliases=alias,
        autocast=_policy(n),
        sample_rank=n + 1,
    )
    def adaptive_avg(input, output_size):
        sizes = _adaptive_size("adaptive_avg_pool", input, output_size, n)
        return (
            _one_more(t._adaptive_avg, input, sizes).squeeze(-2) if n == 1 else t._adaptive_avg(input, sizes)
        )

    @composite(
        f"nn.functional.adaptive_max_pool{n}d(Tensor input, any output_size, any return_indices=False) -> any",
        forms="f",
        autocast=_policy(n),
    )
    def adaptive_max(input, output_size, return_indices):
        sizes = _adaptive_size("adaptive_max_pool", input, output_size, n)
        values, indices = (
            _one_more(t._adaptive_max, input, sizes) if n == 1 else t._adaptive_max(input, sizes)
        )
        if n == 1:
            values, indices = values.squeeze(-2), indices.squeeze(-2)
        return (values, indices) if return_indices else values


for _n in (1, 2, 3):
    _declare_max(_n)
    _declare_average(_n)
    _declare_adaptive(_n)


@composite(
    "adaptive_max_pool1d(Tensor self, int[] output_size) -> (Tensor, Tensor)",
    forms="f",
    short=False,
)
def torch_adaptive_max_pool1d(self, output_size):
    """Return the values and the indices."""
    return t.adaptive_max_pool1d(self, output_size, True)


# ---- resizing
def _resize(mindspore, name, n, corners):
    """Declare `name(self, output_size, [align_corners], scales...)` and its gradient, which is linear in
    grad.
    """
    corner = "bool align_corners, " if corners else ""
    tail = [True] if corners else []
    scales = ", ".join(f"float? scales_{'dhw'[3 - n + i]}=None" for i in range(n))

    def numbers(values):
        return None if any(v is None for v in values) else [float(v) for v in values]

    def forward_grad(g, self, output_size, *rest):
        return getattr(t, f"_{name}_backward")(g, output_size, list(self.shape), *rest)

    def split(rest):
        return (rest[:1], rest[1:]) if corners else ((), rest)

    def forward(self, output_size, *rest):
        flags, factors = split(rest)
        return getattr(raw, mindspore)(self, list(output_size), numbers(factors), *flags)

    def backward(grad, output_size, input_size, *rest):
        flags, factors = split(rest)
        return getattr(raw, mindspore + "Grad")(
            grad, list(input_size), list(output_size), numbers(factors), *flags
        )

    names = (["align_corners"] if tail else []) + [f"scales_{'dhw'[3 - n + i]}" for i in range(n)]
    ahead = _with_names(forward_grad, ["g", "self", "output_size", *names])
    again = _with_names(
        lambda g, output_size, *rest: getattr(t, name)(g, output_size, *rest), ["g", "output_size", *names]
    )
    op(
        f"aten.{name}(Tensor self, int[] output_size, {corner}{scales}) -> Tensor",
        forms="f",
        grad={"self": ahead},
        backward="sizes",
    )(_with_names(forward, ["self", "output_size", *names]))
    op(
        f"_{name}_backward(Tensor grad, int[] output_size, int[] input_size, {corner}{scales}) -> Tensor",
        forms="f",
        grad={"grad": again},
    )(_with_names(backward, ["grad", "output_size", "input_size", *names]))


def _with_names(function, names):
    """Return `function` with a signature in which the parameters have names, because the table reads them."""
    wrapped = lambda *args: function(*args)  # noqa: E731
    wrapped.__signature__ = inspect.Signature(
        [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in names]
    )
    wrapped.__module__ = __name__
    return wrapped


for _n in (1, 2, 3):
    _resize(f"UpsampleNearest{_n}D", f"upsample_nearest{_n}d", _n, False)
    _resize("UpsampleNearestExact", f"_upsample_nearest_exact{_n}d", _n, False)
_resize("UpsampleLinear1D", "upsample_linear1d", 1, True)
_resize("UpsampleBilinear2D", "upsample_bilinear2d", 2, True)
_resize("UpsampleTrilinear3D", "upsample_trilinear3d", 3, True)
_resize("UpsampleBicubic2D", "upsample_bicubic2d", 2, True)
