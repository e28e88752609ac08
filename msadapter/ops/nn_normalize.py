"""Normalisations composed of operators."""

from __future__ import annotations

from .._values.size import Size
from ._declare import composite, t
from ._functional import functional, without_grad


def _verify_batch_size(size):
    """Raise ValueError if a channel has only one value."""
    values = 1
    for i, n in enumerate(size):
        if i != 1:
            values *= n
    if values == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(size)}")


def _verify_spatial_size(size):
    """Raise ValueError if a channel of a sample has only one value."""
    values = 1
    for n in size[2:]:
        values *= n
    if values == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {Size(size)}")


@composite(
    "nn.functional.normalize(Tensor input, float p=2.0, any dim=1, float eps=1e-12) -> Tensor",
    out_dtype="cast",
    forms="fo",
)
def normalize(input, p, dim, eps):
    """input / max(p-norm along ``dim``, eps)."""
    denominator = t.linalg_vector_norm(input, p, dim, True).clamp_min(eps).expand_as(input)
    return input / denominator


@composite(
    "nn.functional.instance_norm(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, "
    "Tensor? weight=None, Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, "
    "float eps=1e-05) -> Tensor",
    forms="f",
)
def instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps):
    """Normalise each channel of each sample (or use the running statistics), then scale and shift."""
    if use_input_stats:
        _verify_spatial_size(input.size())
    n, c = input.shape[:2]

    def repeated(x):
        return None if x is None else x.repeat(n)

    mean, var = repeated(running_mean), repeated(running_var)
    out = functional.batch_norm(
        input.reshape(1, n * c, *input.shape[2:]),
        mean,
        var,
        repeated(weight),
        repeated(bias),
        use_input_stats,
        momentum,
        eps,
    )
    if use_input_stats:
        with without_grad():
            for running, all_samples in ((running_mean, mean), (running_var, var)):
                if running is not None:
                    running.copy_(all_samples.view(n, c).mean(0))
    return out.view(input.shape)


@composite(
    "nn.functional.local_response_norm(Tensor input, int size, float alpha=0.0001, float beta=0.75, "
    "float k=1.0) -> Tensor",
    forms="f",
)
def local_response_norm(input, size, alpha, beta, k):
    """input / (k + alpha * mean of squares over ``size`` neighbouring channels) ** beta."""
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    channels = input.size(1)
    border = [0, 0] * (input.dim() - 2) + [size // 2, (size - 1) // 2]
    squares = functional.pad(input * input, border)
    window = squares.narrow(1, 0, channels).clone()
    for shift in range(1, size):
        window += squares.narrow(1, shift, channels)
    del squares
    if input.is_floating_point() or input.is_complex():
        window = window.div_(size).mul_(alpha).add_(k)
    else:  # integers use floor division
        window = window // size * alpha + k
    return input / window.pow(beta)
