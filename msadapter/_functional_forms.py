"""Names of torch that are another face of torch.nn.functional or of a method: losses whose reduction is a number, cells of
recurrent networks, questions about a tensor. Loaded when one is asked for."""

from __future__ import annotations

import warnings

from . import autograd, ops
from ._host.native import load
from ._values.device import device as Device
from .nn import functional as F
from .tensor import Tensor, UntypedStorage

_REDUCTIONS = ("none", "mean", "sum")
_warned_always = False

cosine_similarity, pairwise_distance = F.cosine_similarity, F.pairwise_distance


def slice_inverse(self, src, dim=0, start=None, end=None, step=1) -> Tensor:
    """`Tensor.slice_inverse`."""
    return self.slice_inverse(src, dim, start, end, step)


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """`autograd.set_detect_anomaly`, for good."""
    autograd.set_detect_anomaly(enabled, check_nan)


def from_file(filename, shared=None, size=0, *, dtype=None, device=None, requires_grad=False) -> Tensor:
    """``size`` elements on the bytes of a file; with ``shared`` what is written goes into it."""
    dtype = dtype or load().default_dtype()
    untyped = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    found = Tensor._from_storage(untyped, dtype, 0, (size,), (1,))
    return found.requires_grad_() if requires_grad else found


# ---- losses
def kl_div(self, target, reduction=1, *, log_target=False) -> Tensor:
    """`nn.functional.kl_div` with a reduction of 0 (none), 1 (mean) or 2 (sum)."""
    loss = F.kl_div(self, target, reduction="none", log_target=log_target)
    return (loss, loss.mean, loss.sum)[reduction]() if reduction else loss


def hinge_embedding_loss(self, target, margin=1.0, reduction=1) -> Tensor:
    """`nn.functional.hinge_embedding_loss` with a reduction by number."""
    return F.hinge_embedding_loss(self, target, margin, reduction=_REDUCTIONS[reduction])


def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1) -> Tensor:
    """`nn.functional.cosine_embedding_loss` with a reduction by number."""
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_REDUCTIONS[reduction])


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1) -> Tensor:
    """`nn.functional.margin_ranking_loss` with a reduction by number."""
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_REDUCTIONS[reduction])


def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2.0, eps=1e-6, swap=False, reduction=1
) -> Tensor:
    """`nn.functional.triplet_margin_loss` with a reduction by number."""
    return F.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_REDUCTIONS[reduction]
    )


def poisson_nll_loss(input, target, log_input, full, eps, reduction) -> Tensor:
    """`nn.functional.poisson_nll_loss` with a reduction by number."""
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=_REDUCTIONS[reduction])


def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction=0, zero_infinity=False
) -> Tensor:
    """`nn.functional.ctc_loss` with a reduction by number, none by default."""
    return F.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _REDUCTIONS[reduction], zero_infinity
    )


# ---- layers
def instance_norm(
    input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled
) -> Tensor:
    """`nn.functional.instance_norm`."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, generator=None) -> Tensor:
    """`nn.functional.rrelu`."""
    if generator is not None:
        raise NotImplementedError("torch.rrelu: generator is not supported (docs/coverage.md)")
    return F.rrelu(input, lower, upper, training)


def rrelu_(input, lower=1 / 8, upper=1 / 3, training=False, generator=None) -> Tensor:
    """`rrelu`, in place."""
    return input.copy_(rrelu(input, lower, upper, training, generator))


def affine_grid_generator(theta, size, align_corners) -> Tensor:
    """`nn.functional.affine_grid`."""
    return F.affine_grid(theta, size, align_corners)


def conv_tbc(self, weight, bias, pad=0) -> Tensor:
    """1-d convolution of (time, batch, channel) by (width, in, out)."""
    return F.conv1d(self.permute(1, 2, 0), weight.permute(2, 1, 0), bias, padding=pad).permute(2, 0, 1)


def norm_except_dim(v, pow=2, dim=0) -> Tensor:
    """The norm over all dims but one, which are kept as 1; over all of them for -1."""
    if dim == -1:
        return v.norm(pow)
    dim %= v.dim()
    sizes = [1] * v.dim()
    sizes[dim] = v.size(dim)
    return v.transpose(0, dim).reshape(v.size(dim), -1).norm(pow, 1).view(sizes)


# ---- one step of a recurrent network
def _gates(x, h, w_ih, w_hh, b_ih, b_hh) -> tuple[Tensor, Tensor]:
    return F.linear(x, w_ih, b_ih), F.linear(h, w_hh, b_hh)


def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> Tensor:
    """tanh(w_ih x + b_ih + w_hh h + b_hh)."""
    return ops.tanh(sum(_gates(input, hx, w_ih, w_hh, b_ih, b_hh)))


def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> Tensor:
    """relu(w_ih x + b_ih + w_hh h + b_hh)."""
    return F.relu(sum(_gates(input, hx, w_ih, w_hh, b_ih, b_hh)))


def gru_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> Tensor:
    """One step of a GRU; gates in torch's order (reset, update, new)."""
    x, h = _gates(input, hx, w_ih, w_hh, b_ih, b_hh)
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, -1), h.chunk(3, -1)
    reset, update = (xr + hr).sigmoid(), (xz + hz).sigmoid()
    new = (xn + reset * hn).tanh()
    return (hx - new) * update + new


def lstm_cell(input, hx, w_ih, w_hh, b_ih=None, b_hh=None) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: the new hidden and cell states; gates in torch's order (input, forget, cell, output)."""
    h, c = hx
    i, f, g, o = sum(_gates(input, h, w_ih, w_hh, b_ih, b_hh)).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


# ---- of a tensor
def detach(input) -> Tensor:
    """`input.detach()`."""
    return input.detach()


def detach_(input) -> Tensor:
    """`input.detach_()`."""
    return input.detach_()


def detach_copy(input) -> Tensor:
    """A copy without history."""
    return input.detach().clone()


def view_as_real_copy(input) -> Tensor:
    """A copy of `view_as_real`."""
    return ops.view_as_real(input).clone()


def view_as_complex_copy(input) -> Tensor:
    """A copy of `view_as_complex`."""
    return ops.view_as_complex(input).clone()


def resize_as_(input, the_template, *, memory_format=None) -> Tensor:
    """`input` with the sizes of another tensor, in place."""
    return input.resize_as_(the_template)


def get_device(input) -> int:
    """Index of the device; -1 on the CPU."""
    return input.get_device()


def is_signed(input) -> bool:
    """Whether the type has negative numbers."""
    return input.dtype.is_signed


def is_neg(input) -> bool:
    """False: negation is never put off."""
    return False


def is_inference(input) -> bool:
    """Whether it was made in inference mode."""
    return input.is_inference()


def is_distributed(input) -> bool:
    """False."""
    return False


# ---- of the process
def set_warn_always(b: bool) -> None:
    """Whether warnings come every time rather than once."""
    global _warned_always
    _warned_always = bool(b)
    warnings.simplefilter("always" if b else "default", UserWarning)


def is_warn_always_enabled() -> bool:
    """What `set_warn_always` was given."""
    return _warned_always


def get_device_module(device=None):
    """The module of a device: torch.cuda, torch.npu or torch.cpu."""
    import importlib

    from ._host import accelerator as _accelerator

    kind = (_accelerator.kind() or "cpu") if device is None else Device(device).type
    try:
        return importlib.import_module(f".{kind}", __package__)
    except ModuleNotFoundError:
        raise RuntimeError(f"Invalid device module '{kind}' in your 'torch' installation") from None
