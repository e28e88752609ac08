"""Embedding, one-hot, dropout, padding and grid sampling."""

from __future__ import annotations

from .._host import extensions
from .._values.dtype import STORED_WIDE
from .._values.layout import FORMATS
from . import _on_npu
from . import dropout as _  # noqa: F401  (declares the fused `_dropout`)
from ._declare import _C, composite, op, raw, t
from ._grid import grid_sampler_reference, warn_of_corners
from .nn_norm import gradients_of, outputs, recording


# ---- embedding
@op(
    "_embedding(Tensor weight, Tensor indices, int padding_idx, bool scale_grad_by_freq) -> Tensor",
    forms="f",
    grad={
        "weight": lambda g, weight, indices, padding_idx, scale_grad_by_freq: t._embedding_backward(
            g, indices, weight.shape[0], padding_idx, scale_grad_by_freq
        )
    },
    native=("body", "gradient"),
)
def _embedding(weight, indices, padding_idx, scale_grad_by_freq):
    return raw.Embedding(indices, weight, padding_idx, None, 2.0, scale_grad_by_freq)


@op(
    "_embedding_backward(Tensor grad, Tensor indices, int num_weights, int padding_idx, bool scale_grad_by_freq) -> Tensor",
    forms="f",
    aliases=("aten.embedding_dense_backward",),
    grad={
        "grad": lambda g, indices, padding_idx, scale_grad_by_freq: _embedding_second(
            g, indices, padding_idx, scale_grad_by_freq
        )
    },
)
def _embedding_backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq):
    return raw.EmbeddingDenseBackward(
        grad, indices, num_weights, None if padding_idx < 0 else padding_idx, scale_grad_by_freq
    )


def _embedding_second(g, indices, padding_idx, scale_grad_by_freq):
    rows = t._embedding(g, indices, -1, False)
    if scale_grad_by_freq:
        counts = t.bincount(indices.reshape(-1), minlength=g.shape[0])
        rows = rows / counts[indices].unsqueeze(-1).to(rows.dtype)
    if padding_idx >= 0:
        rows = rows.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    return rows


@composite(
    "nn.functional.embedding(Tensor input, Tensor weight, int? padding_idx=None, float? max_norm=None, float norm_type=2.0, "
    "bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    forms="f",
    native="call",
)
def embedding(input, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse):
    """Return rows of `weight` by index.

    The row `padding_idx` gets no gradient. Rows longer than `max_norm` are scaled down in place.
    """
    rows = weight.shape[0]
    if padding_idx is not None:
        if padding_idx >= rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        if padding_idx < -rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        embedding_renorm_(weight, input, max_norm, norm_type)
    return _rows(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse)


def _rows(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    if sparse and weight.requires_grad and _C.is_grad_enabled():
        return extensions.sparse_gradient.value(weight, indices, padding_idx, scale_grad_by_freq)
    return t._embedding(weight, indices, padding_idx, scale_grad_by_freq)


@composite(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
    forms="f",
    short=False,
)
def torch_embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    """torch.embedding. The table is the first argument, and padding_idx is -1 if there is none."""
    return _rows(weight, indices, padding_idx, scale_grad_by_freq, sparse)


@composite(
    "embedding_renorm_(Tensor self, Tensor indices, float max_norm, float norm_type) -> Tensor", forms="f"
)
def embedding_renorm_(self, indices, max_norm, norm_type):
    """Scale down, in place, those rows in `indices` that are longer than `max_norm`."""
    if _C.in_device_memory(self):
        _on_npu.embedding_renorm(self, indices, max_norm, norm_type)
        return self
    raw.EmbeddingRenorm(self, indices, max_norm, norm_type)
    _C.bump_version(self)
    return self


@op("nn.functional.one_hot(Tensor input, int num_classes=-1) -> Tensor", forms="f", grad=None, whole=True)
def one_hot(input, num_classes):
    """Return 1 at the class of each element and 0 elsewhere, along a new last dim."""
    return raw.OneHotExt(input, num_classes, 1, 0, -1)


# ---- dropout: torch's draws, one bernoulli(1 - p) an element in the type of the input
def _dropout(input, p, training, inplace, error=RuntimeError):
    if not 0.0 <= p <= 1.0:
        raise error(f"dropout probability has to be between 0 and 1, but got {p}")
    if p == 0 or not training or input.numel() == 0:
        return input
    if p == 1:
        return input.mul_(0.0) if inplace else input * t.zeros((), dtype=input.dtype)
    result = t._dropout(input, p)[0]
    return t._inplace_from(input, result) if inplace else result


@composite(
    "nn.functional.dropout(Tensor input, float p=0.5, bool training=True, any inplace=False) -> Tensor",
    forms="f",
    random="each",
)
def dropout(input, p, training, inplace):
    """Set elements to zero with probability p and divide the others by 1 - p."""
    return _dropout(input, p, training, inplace, ValueError)


@composite(
    "dropout(Tensor input, float p, bool train) -> Tensor",
    forms="f",
    short=False,
    random="each",
)
def torch_dropout(input, p, train):
    """torch.dropout."""
    return _dropout(input, p, train, False)


@composite("dropout_(Tensor input, float p, bool train) -> Tensor", forms="f", random="other")
def torch_dropout_(input, p, train):
    """torch.dropout_: in place."""
    return _dropout(input, p, train, True)


@composite(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)", forms="f", random="other"
)
def native_dropout(input, p, train):
    """Return dropout and the mask of the elements that were kept."""
    if input.numel() == 0:
        return input, t.empty_like(input)
    if train is False:
        return input.clone(), t.ones_like(input, dtype=(input == input).dtype)
    if p == 1:
        return input * 0.0, t.zeros_like(input, dtype=(input == input).dtype)
    mask = t.empty_like(input, dtype=(input == input).dtype).bernoulli_(1 - p)
    return input * mask * (1 / (1 - p)), mask


# ---- padding
def _split_pads(x, pad):
    """Return [(before, after)] for every dim, the first dim first. `pad` starts with the last dim."""
    out = [(0, 0)] * x.dim()
    for i in range(len(pad) // 2):
        out[x.dim() - 1 - i] = (pad[2 * i], pad[2 * i + 1])
    return out


@op(
    "_constant_pad(Tensor self, int[] pad, Scalar value) -> Tensor",
    forms="f",
    grad={"self": lambda g, pad: t._constant_pad(g, [-p for p in pad], 0)},
    whole=True,
    node="ConstantPadNdBackward0",
)
def _constant_pad(self, pad, value):
    if self.dtype in STORED_WIDE:
        wide = t._to_dtype(self, STORED_WIDE[self.dtype])
        return t._to_dtype(raw.ConstantPadND(wide, list(pad), value), self.dtype)
    return raw.ConstantPadND(self, list(pad), value)


@composite("constant_pad_nd(Tensor self, any pad, Scalar value=0) -> Tensor", forms="f")
def constant_pad_nd(self, pad, value):
    """Add `value` around the last dims. `pad` holds (before, after) pairs, the last dim first.

    A negative number removes elements.
    """
    pad = list(pad)
    if len(pad) % 2:
        raise RuntimeError("Length of pad must be even but instead it equals " + str(len(pad)))
    if len(pad) > 2 * self.dim():
        raise RuntimeError(
            f"Length of pad should be no more than twice the number of dimensions of the input. Pad length is {len(pad)} "
            f"while the input has {self.dim()} dimensions."
        )
    for d, (before, after) in enumerate(_split_pads(self, pad)):
        if self.shape[d] + before + after < 0:
            raise RuntimeError(
                f"The input size {self.shape[d]}, plus negative padding {before} and {after} resulted in a negative output "
                f"size, which is invalid. Check dimension {d} of your input."
            )
    return t._constant_pad(self, pad, value)


def _border_index(n, before, after, mode):
    """Return the source position of each position of a padded dim with n elements, as an int64 tensor."""
    positions = t.arange(-before, n + after)
    if mode == "replicate":
        return t.clamp(positions, 0, n - 1)
    if mode == "circular":
        return t.remainder(positions, n)
    return (n - 1) - t.abs((n - 1) - t.abs(positions))


def _check_border(x, pad, mode):
    dims = len(pad) // 2
    if x.dim() not in (dims + 1, dims + 2) or not 1 <= dims <= 3:
        raise NotImplementedError(
            "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now"
        )
    if mode != "circular" and 0 in x.shape[x.dim() - dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions "
            f"for input, but got: {list(x.shape)}"
        )
    for i in range(dims):
        n, before, after = x.shape[x.dim() - 1 - i], pad[2 * i], pad[2 * i + 1]
        if mode == "reflect" and (before >= n or after >= n):
            raise RuntimeError(
                f"Argument #{2 * dims + 2}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {x.dim() - 1 - i} of input {list(x.shape)}"
            )
        if mode == "circular" and (before > n or after > n):
            raise RuntimeError("Padding value causes wrapping around more than once.")


@composite(
    "nn.functional.pad(Tensor input, int[] pad, str mode='constant', float? value=None) -> Tensor", forms="f"
)
def pad(input, pad, mode, value):
    """Extend the last dims by the given mode. `pad` holds (before, after) pairs, the last dim first."""
    pad = list(pad)
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * input.dim():
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.dim()}"
        )
    if mode == "constant":
        return t.constant_pad_nd(input, pad, 0 if value is None else value)
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    _check_border(input, pad, mode)
    # PyTorch's autocast on the CPU has policies for these modes, but none for reflection in three dims.
    cast = mode == "replicate" or (mode == "reflect" and len(pad) < 6)
    out = t._pad_in_float32(input, pad, mode) if cast else _extended(input, pad, mode)
    return out if mode == "circular" else _in_format_of(input, out)


def _in_format_of(input, out):
    """Return the result in the format channels_last if the operand has this format. PyTorch keeps it in these kernels."""
    last = FORMATS.get({4: "channels_last", 5: "channels_last_3d"}.get(input.dim(), ""))
    kept = last is not None and not input.is_contiguous() and input.is_contiguous(memory_format=last)
    return out.contiguous(memory_format=last) if kept else out


@composite(
    "_pad_in_float32(Tensor input, any pad, str mode) -> Tensor", forms="f", autocast={"cpu": "float32"}
)
def _pad_in_float32(input, pad, mode):
    """Extend the last dims; autocast on the CPU casts the input first."""
    return _extended(input, pad, mode)


def _extended(input, pad, mode):
    """Extend the last dims by their own elements, in the order of `mode`."""
    out = input
    pads = list(pad)
    for i in range(len(pad) // 2):
        before, after = pad[2 * i : 2 * i + 2]
        # elements that are cut off are not part of the circle
        if mode == "circular" and (before < 0 or after < 0):
            d = input.dim() - 1 - i
            out = t.narrow(out, d, max(0, -before), out.shape[d] + min(0, before) + min(0, after))
            pads[2 * i : 2 * i + 2] = max(0, before), max(0, after)
    return t._pad_border(out, pads, mode)


def _pad_border_of_operators(self, pad, mode):
    out = self
    for d, (before, after) in enumerate(_split_pads(self, pad)):
        if before or after:
            index = _border_index(self.shape[d], before, after, mode)
            out = t.index_select(out, d, index.to(self.device))
    return t.clone(out) if out is self else out


def _pad_border_backward_of_operators(grad, sizes, pad, mode):
    out = grad
    for d, (before, after) in reversed(list(enumerate(_split_pads(grad, pad)))):
        if before or after:
            index = _border_index(sizes[d], before, after, mode).to(grad.device)
            shape = list(out.shape)
            shape[d] = sizes[d]
            out = t.index_add(t.zeros(shape, dtype=grad.dtype, device=grad.device), d, index, out)
    return t.clone(out) if out is grad else out


def _pad_border_grad(g, self, pad, mode):
    # PyTorch adds the gradient of a circle dim by dim, and others element by element, which 16-bit sums show.
    back = _pad_border_backward_of_operators if mode == "circular" else t._pad_border_backward
    return back(g, list(self.shape), pad, mode)


op(
    "_pad_border(Tensor self, int[] pad, str mode) -> Tensor",
    ms="PadBorder",
    npu=_pad_border_of_operators,
    forms="f",
    grad={"self": _pad_border_grad},
    whole=True,
)
op(
    "_pad_border_backward(Tensor grad, int[] sizes, int[] pad, str mode) -> Tensor",
    ms="PadBorderGrad",
    npu=_pad_border_backward_of_operators,
    forms="f",
    grad={"grad": lambda g, pad, mode: t._pad_border(g, pad, mode)},
    whole=True,
)


# ---- sampling at the positions of a grid
INTERPOLATIONS = {"bilinear": 0, "nearest": 1, "bicubic": 2}
BORDERS = {"zeros": 0, "border": 1, "reflection": 2}


def _grid_grad(g, self, grid, interpolation_mode, padding_mode, align_corners, needs):
    if recording():
        nearest = interpolation_mode == INTERPOLATIONS["nearest"]  # does not depend on the grid
        found = gradients_of(
            lambda x, at: grid_sampler_reference(x, at, interpolation_mode, padding_mode, align_corners),
            (self, grid),
            (needs[0], needs[1] and not nearest),
            g,
        )
        return found[0], t.zeros_like(grid) if nearest and needs[1] else found[1]
    kernel = raw.GridSampler2DGrad if self.dim() == 4 else raw.GridSampler3DGrad
    out = kernel(
        g, self, grid, interpolation_mode, padding_mode, align_corners, [int(needs[0]), int(needs[1])]
    )
    out = outputs(out, 2)
    return out[0] if needs[0] else None, out[1] if needs[1] else None


@op(
    "grid_sampler(Tensor self, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    forms="f",
    aliases=("grid_sampler_2d", "grid_sampler_3d"),
    grad={("self", "grid"): _grid_grad},
    autocast={"cpu": "float32", "accelerator": "widest"},
)
def grid_sampler(self, grid, interpolation_mode, padding_mode, align_corners):
    kernel = raw.GridSampler2D if self.dim() == 4 else raw.GridSampler3D
    return kernel(self, grid, interpolation_mode, padding_mode, align_corners)


@composite(
    "nn.functional.grid_sample(Tensor input, Tensor grid, str mode='bilinear', str padding_mode='zeros', bool? align_corners=None)"
    " -> Tensor",
    forms="f",
    autocast={"cpu": "float32", "accelerator": "widest"},
)
def grid_sample(input, grid, mode, padding_mode, align_corners):
    """Return the values of (N, C, [D,] H, W) at the positions of a grid (N, ..., 2 or 3).

    The coordinates are in [-1, 1], with x (along W) first.
    """
    if mode not in INTERPOLATIONS:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in BORDERS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    n = input.dim() - 2
    if input.dim() and grid.dim() and input.size(0) == grid.size(0) and grid.size(-1) != n:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {n} in last dimension, but got grid with sizes {list(grid.shape)}"
        )
    if mode == "bicubic" and input.dim() == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    if align_corners is None:
        warn_of_corners()
    return t.grid_sampler(input, grid, INTERPOLATIONS[mode], BORDERS[padding_mode], bool(align_corners))
