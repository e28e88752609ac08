"""Operators that PyTorch keeps behind an underscore, and that programs and exported graphs call nevertheless."""

from __future__ import annotations

from .._values.dtype import int32
from ._declare import composite, namespaces, op, t

# What the mask of `_masked_softmax` hides, in PyTorch's numbers.
_SOURCE, _PADDING, _FULL = 0, 1, 2
_BAG_OPTIONS = (
    "bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, "
    "bool include_last_offset=False, int padding_idx=-1"
)


def _full_mask(mask, shape, kind):
    """Return the mask in the shape of the scores. RuntimeError for a mask whose shape does not suit its kind."""
    if mask.dtype.name != "bool":
        raise RuntimeError("Mask should be a boolean tensor")
    if mask.shape == shape:
        return mask
    if len(shape) == 4 and mask.dim() == 2 and kind is None:
        raise RuntimeError("Mask Type should be defined")
    if kind == _SOURCE and len(shape) == 4:
        if tuple(mask.shape) != (shape[2], shape[3]):
            raise RuntimeError("For mask_type == 0 mask shape should be (L, L)")
        return mask.expand(shape)
    if kind == _PADDING and len(shape) == 4:
        if tuple(mask.shape) != (shape[0], shape[2]):
            raise RuntimeError("For mask_type == 1 mask shape should be (B, L)")
        return mask.view(shape[0], 1, 1, shape[2]).expand(shape)
    if kind == _FULL:
        raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    raise RuntimeError(
        f"Mask shape {list(mask.shape)} should match input shape {list(shape)} for mask_type {kind}"
    )


@composite(
    "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor",
    forms="f",
)
def _masked_softmax(self, mask, dim, mask_type):
    """softmax over the elements that the mask does not hide. Where it hides all of them, the result is NaN.

    ``mask_type`` 0 hides places of the (L, L) scores, 1 hides the (B, L) keys, and 2 any element.
    """
    return t._softmax_of_shown(self, _full_mask(mask, self.shape, mask_type), -1 if dim is None else dim)


@op(
    "_softmax_of_shown(Tensor self, Tensor mask, int dim) -> Tensor",
    forms="f",
    grad={
        "self": lambda g, mask, dim, result: t._softmax_backward(g, result, dim).masked_fill(mask, 0.0),
    },
    node="MaskedSoftmaxBackward0",
)
def _softmax_of_shown(self, mask, dim):
    return t.softmax(self.masked_fill(mask, float("-inf")), dim)


def _without_conversion(half_to_float: bool) -> None:
    if half_to_float:
        raise RuntimeError("softmax with half to float conversion is not supported on CPU")


@composite("_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", forms="fo", along="dim")
def _softmax(self, dim, half_to_float):
    """`softmax`. Only CUDA computes it in float32 for a float16 tensor."""
    _without_conversion(half_to_float)
    return t.softmax(self, dim)


@composite("_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor", forms="fo", along="dim")
def _log_softmax(self, dim, half_to_float):
    """`log_softmax`. Only CUDA computes it in float32 for a float16 tensor."""
    _without_conversion(half_to_float)
    return t.log_softmax(self, dim)


@composite(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    forms="f",
)
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """Return the gradient of the input of a softmax, from that of its result ``output``."""
    return t._softmax_backward(grad_output, output, dim).to(input_dtype)


@composite(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    forms="f",
)
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """Return the gradient of the input of a log_softmax, from that of its result ``output``."""
    return t._log_softmax_backward(grad_output, output, dim).to(input_dtype)


@composite(
    "_add_relu(Tensor self, TensorOrScalar other, Scalar alpha=1) -> Tensor",
    forms="fo",
)
def _add_relu(self, other, alpha):
    """``relu(self + alpha * other)``."""
    total = t.add(self, other, alpha=alpha)
    if total.dtype.is_complex or total.dtype.name == "bool":
        raise RuntimeError(f"Unsupported datatype for add_relu:{total.dtype.name}")
    return total.relu()


@composite("_add_relu_(Tensor self, TensorOrScalar other, Scalar alpha=1) -> Tensor", forms="f")
def _add_relu_(self, other, alpha):
    """The same in place."""
    return t._inplace_from(self, t._add_relu(self, other, alpha))


@composite("_int_mm(Tensor self, Tensor mat2) -> Tensor", forms="fo")
def _int_mm(self, mat2):
    """Return the product of matrices of 8-bit integers, summed in int32."""
    if self.dtype.name not in ("int8", "uint8"):
        raise RuntimeError(
            f"int_mm: Expected self dtype to be int8 or uint8 but got {self.dtype.scalar_name.lower()}"
        )
    if mat2.dtype.name != "int8":
        raise RuntimeError(
            f"int_mm: Expected mat2 dtype to be of type int8 but got {mat2.dtype.scalar_name.lower()}"
        )
    if self.dim() != 2 or mat2.dim() != 2:
        raise RuntimeError(f"int_mm: Expected two matrices but got dimensions {self.dim()} and {mat2.dim()}")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"int_mm: self.size(1) needs to match mat2.size(0) but got {self.shape[1]} and {mat2.shape[0]}"
        )
    return t.mm(self.to(int32), mat2.to(int32))


@composite(
    "_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) "
    "-> Tensor",
    forms="f",
)
def _grid_sampler_2d_cpu_fallback(input, grid, interpolation_mode, padding_mode, align_corners):
    """`grid_sampler` of images under PyTorch's name for a slower way to compute it."""
    if input.dim() != 4 or grid.dim() != 4:
        raise RuntimeError(
            f"grid_sampler_2d(): expected 4D input and grid with same number of dimensions, but got input with sizes "
            f"{list(input.shape)} and grid with sizes {list(grid.shape)}"
        )
    return t.grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners)


def _bag(weight, indices, offsets, *options):
    *options, padding_idx = options
    whole = namespaces["torch"]["embedding_bag"]  # t.embedding_bag is that of torch.nn.functional
    return whole(weight, indices, offsets, *options, None if padding_idx < 0 else padding_idx)


@composite(
    f"_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, {_BAG_OPTIONS}) -> (Tensor, Tensor, Tensor, Tensor)",
    forms="f",
)
def _embedding_bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, padding_idx):  # fmt: skip
    """`torch.embedding_bag`, in which a negative ``padding_idx`` means none."""
    return _bag(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, padding_idx)  # fmt: skip


@composite(
    f"_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, {_BAG_OPTIONS}) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
    forms="f",
)
def _embedding_bag_forward_only(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, padding_idx):  # fmt: skip
    """The same without a gradient."""
    return _bag(weight.detach(), indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
        include_last_offset, padding_idx)  # fmt: skip


@composite(
    "_efficientzerotensor(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    forms="f",
)
def _efficientzerotensor(size, dtype, layout, device, pin_memory):
    """Zeros that all share one element, so that they need no memory and cannot be written."""
    return t.zeros((), dtype=dtype, device=device).expand(size)


@composite("_test_check_tensor(Tensor self) -> Tensor", forms="f")
def _test_check_tensor(self):
    """Return the tensor. RuntimeError unless all of its elements are true."""
    if self.dtype.name != "bool" or not bool(self.all()):
        raise RuntimeError("Test message for TORCH_CHECK_TENSOR_ALL")
    return self
