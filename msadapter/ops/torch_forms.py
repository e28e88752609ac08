"""Functions of torch that have other arguments in torch.nn.functional.

Their reductions are numbers (0 none, 1 mean, 2 sum). The default is 0, although PyTorch's documentation gives 1, because
its parser reads the default `Mean` as 0. Recurrent networks take their weights as arguments.
Methods that torch also has as functions are here as well.
"""

from __future__ import annotations

from .._errors import unsupported
from ._declare import composite, t
from ._functional import functional
from ._recurrent import run_cell, run_stack

_REDUCTIONS = ("none", "mean", "sum")


# ---- losses
@composite(
    "kl_div(Tensor self, Tensor target, int reduction=0, *, bool log_target=False) -> Tensor",
    forms="f",
    short=False,
    autocast="float32",
)
def kl_div(self, target, reduction, *, log_target):
    """Return `nn.functional.kl_div`."""
    loss = functional.kl_div(self, target, reduction="none", log_target=log_target)
    return (loss, loss.mean, loss.sum)[reduction]() if reduction else loss


@composite(
    "hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=0) -> Tensor",
    forms="f",
    short=False,
    autocast="float32",
)
def hinge_embedding_loss(self, target, margin, reduction):
    """Return `nn.functional.hinge_embedding_loss`."""
    return functional.hinge_embedding_loss(self, target, margin, reduction=_REDUCTIONS[reduction])


@composite(
    "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor",
    forms="f",
    short=False,
    autocast="float32",
)
def cosine_embedding_loss(input1, input2, target, margin, reduction):
    """Return `nn.functional.cosine_embedding_loss`."""
    return functional.cosine_embedding_loss(input1, input2, target, margin, reduction=_REDUCTIONS[reduction])


@composite(
    "margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=0) -> Tensor",
    forms="f",
    short=False,
    autocast="float32",
)
def margin_ranking_loss(input1, input2, target, margin, reduction):
    """Return `nn.functional.margin_ranking_loss` of tensors that broadcast together."""
    loss = (margin - target * (input1 - input2)).clamp_min(0)
    return (loss, loss.mean, loss.sum)[reduction]() if reduction else loss


@composite(
    "triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float eps=1e-6, "
    "bool swap=False, int reduction=0) -> Tensor",
    forms="f",
    short=False,
    autocast="float32",
)
def triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction):
    """Return `nn.functional.triplet_margin_loss`."""
    return functional.triplet_margin_loss(
        anchor, positive, negative, margin, p, eps, swap, reduction=_REDUCTIONS[reduction]
    )


@composite(
    "poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor",
    forms="f",
    short=False,
    autocast="float32",
)
def poisson_nll_loss(input, target, log_input, full, eps, reduction):
    """Return `nn.functional.poisson_nll_loss`."""
    return functional.poisson_nll_loss(
        input, target, log_input, full, eps=eps, reduction=_REDUCTIONS[reduction]
    )


@composite(
    "ctc_loss(Tensor log_probs, Tensor targets, any input_lengths, any target_lengths, int blank=0, int reduction=0, "
    "bool zero_infinity=False) -> Tensor",
    forms="f",
    short=False,
    autocast={"cpu": "float32"},
)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """Return `nn.functional.ctc_loss`."""
    return functional.ctc_loss(
        log_probs, targets, input_lengths, target_lengths, blank, _REDUCTIONS[reduction], zero_infinity
    )


# ---- layers
@composite(
    "instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, "
    "float momentum, float eps, bool cudnn_enabled) -> Tensor",
    forms="f",
    short=False,
)
def instance_norm(
    input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled
):
    """Return `nn.functional.instance_norm`."""
    return functional.instance_norm(
        input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps
    )


_RRELU = "Tensor self, float lower=0.125, float upper=0.3333333333333333, bool training=False, Generator? generator=None"


@composite(
    f"rrelu({_RRELU}) -> Tensor",
    forms="f",
    short=False,
    random="other",
)
def rrelu(self, lower, upper, training, generator):
    """Return `nn.functional.rrelu`."""
    if generator is not None:
        raise unsupported("torch.rrelu", "generator is not supported")
    return functional.rrelu(self, lower, upper, training)


@composite(
    f"rrelu_({_RRELU}) -> Tensor",
    forms="f",
    short=False,
    random="other",
)
def rrelu_(self, lower, upper, training, generator):
    """Like `rrelu`, in place."""
    return self.copy_(rrelu(self, lower, upper, training, generator))


@composite(
    "affine_grid_generator(Tensor theta, any size, bool align_corners) -> Tensor",
    forms="f",
    autocast={"accelerator": "as given"},
)
def affine_grid_generator(theta, size, align_corners):
    """Return `nn.functional.affine_grid`."""
    return functional.affine_grid(theta, size, align_corners)


@composite("norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", forms="f")
def norm_except_dim(v, pow, dim):
    """Return the norm over all dims except one; the others get size 1. -1 gives the norm of the whole tensor."""
    if dim == -1:
        return v.norm(pow)
    dim %= v.dim()
    sizes = [1] * v.dim()
    sizes[dim] = v.size(dim)
    return v.transpose(0, dim).reshape(v.size(dim), -1).norm(pow, 1).view(sizes)


# ---- recurrent networks
_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"


@composite(f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", forms="f")
def rnn_tanh_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    """Return tanh(w_ih x + b_ih + w_hh h + b_hh)."""
    return run_cell("RNN_TANH", input, hx, w_ih, w_hh, b_ih, b_hh)


@composite(f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", forms="f")
def rnn_relu_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    """Return relu(w_ih x + b_ih + w_hh h + b_hh)."""
    return run_cell("RNN_RELU", input, hx, w_ih, w_hh, b_ih, b_hh)


@composite(f"gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", forms="f")
def gru_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    """Return one step of a GRU. The gates are in PyTorch's order (reset, update, new)."""
    return run_cell("GRU", input, hx, w_ih, w_hh, b_ih, b_hh)


@composite(f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)", forms="f")
def lstm_cell(input, hx, w_ih, w_hh, b_ih, b_hh):
    """Return the new hidden and cell states of an LSTM.

    The gates are in PyTorch's order (input, forget, cell, output).
    """
    return run_cell("LSTM", input, tuple(hx), w_ih, w_hh, b_ih, b_hh)


def _run(mode: str, args):
    """Handle both overloads: (input, hx, params, ..., batch_first) and, for packed rows, (data, batch_sizes,
    hx, params, ...).
    """
    packed = isinstance(args[3], (list, tuple))
    if packed:
        data, batch_sizes, hx, params, biases, layers, dropout, train, bidirectional = args
        batch_first, sizes = False, batch_sizes.tolist()
    else:
        data, hx, params, biases, layers, dropout, train, bidirectional, batch_first = args
        sizes = None
    rows = data.transpose(0, 1) if batch_first else data
    state = tuple(hx) if mode == "LSTM" else hx
    out, last = run_stack(
        mode,
        rows,
        state,
        list(params),
        bias=biases,
        num_layers=layers,
        dropout=dropout,
        training=train,
        bidirectional=bidirectional,
        batch_sizes=sizes,
    )
    out = out.transpose(0, 1) if batch_first else out
    return (out, *last) if mode == "LSTM" else (out, last)


# The second overload has other arguments at the same positions, so only the first argument has a type.
_NETWORK = (
    "Tensor input, any hx, any params, any has_biases, any num_layers, any dropout, any train, any bidirectional, "
    "any batch_first"
)


@composite(f"lstm({_NETWORK}) -> (Tensor, Tensor, Tensor)", forms="f")
def lstm(*args):
    """Return (output, h, c) of an LSTM. ``hx`` is (h, c).

    For packed rows the second argument is batch_sizes, and hx is the third.
    """
    return _run("LSTM", args)


@composite(f"gru({_NETWORK}) -> (Tensor, Tensor)", forms="f")
def gru(*args):
    """Return (output, h) of a GRU. The arguments are those of `lstm`, with one state."""
    return _run("GRU", args)


@composite(f"rnn_tanh({_NETWORK}) -> (Tensor, Tensor)", forms="f")
def rnn_tanh(*args):
    """Return (output, h) of a recurrent network with tanh. The arguments are those of `gru`."""
    return _run("RNN_TANH", args)


@composite(f"rnn_relu({_NETWORK}) -> (Tensor, Tensor)", forms="f")
def rnn_relu(*args):
    """Return (output, h) of a recurrent network with relu. The arguments are those of `gru`."""
    return _run("RNN_RELU", args)


# ---- methods as functions
@composite("detach(Tensor self) -> Tensor", forms="f")
def detach(self):
    """Return `self.detach()`."""
    return self.detach()


@composite("detach_(Tensor self) -> Tensor", forms="f")
def detach_(self):
    """Return `self.detach_()`."""
    return self.detach_()


@composite("detach_copy(Tensor self) -> Tensor", forms="fo", copied_to_out=True)
def detach_copy(self):
    """Return a copy without history."""
    return self.detach().clone()


@composite("view_as_real_copy(Tensor self) -> Tensor", forms="fo", copied_to_out=True)
def view_as_real_copy(self):
    """Return a copy of `view_as_real`."""
    return t.view_as_real(self).clone()


@composite(
    "view_as_complex_copy(Tensor self) -> Tensor", forms="fo", autocast={"cpu": "float32"}, copied_to_out=True
)
def view_as_complex_copy(self):
    """Return a copy of `view_as_complex`."""
    return t.view_as_complex(self).clone()


@composite(
    "slice_inverse(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    forms="f",
)
def slice_inverse(self, src, dim, start, end, step):
    """Return `self.slice_inverse(src, ...)`."""
    return self.slice_inverse(src, dim, start, end, step)


@composite(
    "resize_as_(Tensor self, Tensor the_template, *, MemoryFormat? memory_format=None) -> Tensor", forms="f"
)
def resize_as_(self, the_template, *, memory_format):
    """Give the tensor the sizes of another one."""
    return self.resize_as_(the_template, memory_format=memory_format)


@composite("get_device(Tensor self) -> int", forms="f")
def get_device(self):
    """Return the index of the device, -1 on the CPU."""
    return self.get_device()


@composite("is_signed(Tensor self) -> bool", forms="f")
def is_signed(self):
    """Return whether the dtype has negative numbers."""
    return self.dtype.is_signed


@composite("is_neg(Tensor self) -> bool", forms="f")
def is_neg(self):
    """Return False, because negation is never deferred."""
    return False


@composite("is_inference(Tensor self) -> bool", forms="f")
def is_inference(self):
    """Return whether the tensor was made in inference mode."""
    return self.is_inference()


@composite("is_distributed(Tensor self) -> bool", forms="f")
def is_distributed(self):
    """Return False."""
    return False


# ---- matrices
@composite(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool use_gelu=False) -> Tensor",
    forms="f",
    autocast="lower",
)
def _addmm_activation(self, mat1, mat2, *, beta, alpha, use_gelu):
    """Return relu of `addmm`, or gelu of it."""
    found = t.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
    return functional.gelu(found) if use_gelu else t.relu(found)
