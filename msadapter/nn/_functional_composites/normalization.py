"""Normalisations that are compositions."""

from ... import ops
from ...autograd import no_grad
from ._table import table

__all__ = ["_verify_batch_size", "_verify_spatial_size", "instance_norm", "local_response_norm", "normalize"]


def _verify_batch_size(size):
    """ValueError when a channel would have one value only."""
    values = 1
    for i, n in enumerate(size):
        if i != 1:
            values *= n
    if values == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(size)}")


def _verify_spatial_size(size):
    """ValueError when a channel of a sample would have one value only."""
    values = 1
    for n in size[2:]:
        values *= n
    if values == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {list(size)}")


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """input / max(p-norm along ``dim``, eps)."""
    denominator = ops.linalg_vector_norm(input, p, dim, True).clamp_min(eps).expand_as(input)
    return input / denominator if out is None else ops.div(input, denominator, out=out)


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Normalise each channel of each sample (or by the running statistics), then scale and shift."""
    if use_input_stats:
        _verify_spatial_size(input.size())
    n, c = input.shape[:2]

    def repeated(t):
        return None if t is None else t.repeat(n)

    mean, var = repeated(running_mean), repeated(running_var)
    out = table.batch_norm(
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
        with no_grad():
            for running, all_samples in ((running_mean, mean), (running_var, var)):
                if running is not None:
                    running.copy_(all_samples.view(n, c).mean(0))
    return out.view(input.shape)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """input / (k + alpha * mean of squares over ``size`` neighbouring channels) ** beta."""
    if input.dim() < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {input.dim()} dimensions)")
    if input.numel() == 0:
        return input
    channels = input.size(1)
    squares = input * input
    border = [0, 0] * (input.dim() - 2) + [size // 2, (size - 1) // 2]
    padded = table.pad(squares, border)
    window = padded.narrow(1, 0, channels)
    for shift in range(1, size):
        window = window + padded.narrow(1, shift, channels)
    mean = (
        window / size if input.is_floating_point() or input.is_complex() else window // size
    )  # of integers: whole
    return input / (mean * alpha + k).pow(beta)
