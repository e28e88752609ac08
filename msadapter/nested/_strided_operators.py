"""The operators of nested tensors with the strided layout. All others are refused by name."""

from __future__ import annotations

import math

from ..autograd._over_values import declare
from ..ops._declare import t
from ..ops._geometry import wrap_dim
from ..tensor import Tensor
from ._base import FILLED, declare_common, refusal, shape_of
from ._strided import Part, StridedNestedTensor, from_parts, packed

operator = declare(StridedNestedTensor.operators)
declare_common(operator)


def is_strided(value) -> bool:
    return isinstance(value, StridedNestedTensor)


def _by_part(function, *operands):
    """Return the nested tensor of ``function(part, ...)``. What is not nested is the same for all parts."""
    columns = [x.unbind() if is_strided(x) else [x] * _count(operands) for x in operands]
    return from_parts([function(*row) for row in zip(*columns, strict=True)])


def _count(operands) -> int:
    counts = {len(x) for x in operands if is_strided(x)}
    if len(counts) > 1:
        raise RuntimeError(
            f"nested tensors of {' and '.join(map(str, sorted(counts)))} parts do not fit together"
        )
    return counts.pop()


# ---- element by element
def element_by_element(cls, function, name: str, args, kwargs):
    """Call ``function``, which works element by element, with the buffers of nested operands."""
    if "out" in kwargs:
        raise refusal(name, "nested tensors with out=")
    tensors = [a for a in args if isinstance(a, Tensor)]
    if len(tensors) > 2 or any(isinstance(a, Tensor) for a in kwargs.values()):
        raise refusal(name, "three tensors of which one is nested")
    first = next(a for a in tensors if is_strided(a))
    dense = next((a for a in tensors if not is_strided(a) and a.numel() != 1), None)
    if name.endswith("_"):
        _check_target(name, args[0], dense)
    elif dense is not None:
        raise RuntimeError(f"Expected both self and other to be nested, but got a {_sides(*args[:2])}")
    _check_sizes(name, tensors)
    found = function(*(a._packed()._values if is_strided(a) else a for a in args), **kwargs)
    if name.endswith("_"):
        return args[0]
    whole = first._packed()
    return tuple(whole._with(x) for x in found) if isinstance(found, tuple) else whole._with(found)


StridedNestedTensor._element_by_element = classmethod(element_by_element)


def _check_target(name: str, target, dense) -> None:
    """NotImplementedError unless ``target`` can be written in place."""
    if not is_strided(target):
        raise refusal(f"Tensor.{name}", "writing a nested tensor to a dense one")
    if not target.is_contiguous():
        raise refusal(f"Tensor.{name}", "writes to nested tensors that are not contiguous")
    if dense is not None:
        raise refusal(f"Tensor.{name}", "a nested tensor and a dense one")


def _sides(a, b) -> str:
    return f"{_kind(a)} self and {_kind(b)} other"


def _kind(x) -> str:
    return "nested" if is_strided(x) else "non-nested"


def _check_sizes(name: str, tensors) -> None:
    nested = [x for x in tensors if is_strided(x)]
    if any(not nested[0].is_same_size(x) for x in nested):
        raise RuntimeError(
            f"{name} does not support broadcasting when given a NestedTensor: the parts have different sizes"
        )


# ---- copies, and tensors of the same shape
@operator("clone")
def _clone(self, *, memory_format=None):
    if memory_format is not None and memory_format._name == "contiguous_format":
        return from_parts(self.unbind())
    return self._with(self._values.clone())


@operator("contiguous")
def _contiguous(self, memory_format=None):
    return self._packed()


def _filled(name: str) -> None:
    function = getattr(t, name)

    @operator(name)
    def run(self, *args, **kwargs):
        flag = kwargs.pop("requires_grad", False)
        whole = self._packed()
        return whole._with(function(whole._values, *args, **kwargs)).requires_grad_(flag)


for _name in FILLED:
    _filled(_name)


@operator("copy_")
def _copy(self, source, non_blocking=False):
    if not is_strided(self) or not is_strided(source):
        raise refusal("Tensor.copy_", "copies between nested and dense tensors")
    if not self.is_same_size(source):
        raise RuntimeError("copy_ only supports tensors that are the same size for Nested implementations")
    for part, given in zip(self._parts, source.unbind(), strict=True):
        self._viewed(part).copy_(given)
    return self


@operator("zero_")
def _zero(self):
    return _fill(self, 0)


@operator("fill_")
def _fill(self, value):
    for part in self._parts:
        self._viewed(part).fill_(value)
    return self


# ---- layers
def _last_dims(self, count: int, name: str) -> tuple:
    """Return the sizes of the last dims, which must be the same in all parts."""
    found = self._size[self.ndim - count :]
    if count >= self.ndim or None in found:
        raise refusal(f"nn.functional.{name}", "nested tensors whose last dims differ between the parts")
    return found


@operator("linear")
def _linear(input, weight, bias=None):
    if not is_strided(input) or is_strided(weight) or is_strided(bias):
        raise refusal("nn.functional.linear", "nested weights")
    whole = input._packed()
    rows = whole._values.view(-1, *_last_dims(whole, 1, "linear"))
    found = t.linear(rows, weight, bias)
    sizes = [(*size[:-1], found.shape[-1]) for size in whole._sizes()]
    return StridedNestedTensor.of(found.reshape(-1), packed(sizes))


@operator("layer_norm")
def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    whole = input._packed()
    wanted = tuple(normalized_shape)
    rows = whole._values.view(-1, *_last_dims(whole, len(wanted), "layer_norm"))
    return whole._with(t.layer_norm(rows, wanted, weight, bias, eps).reshape(-1))


@operator("embedding")
def _embedding(*args, **kwargs):
    """Two orders are in use: F.embedding(input, weight), and torch.embedding(weight, indices)."""
    if len(args) < 2 or is_strided(args[0]) == is_strided(args[1]):
        raise refusal("nn.functional.embedding", "nested weights")
    function = t.embedding if is_strided(args[0]) else t.torch_embedding
    return _by_part(lambda a, b: function(a, b, *args[2:], **kwargs), *args[:2])


@operator("dropout")
def _dropout(input, *args, **kwargs):
    whole = input._packed()
    function = t.torch_dropout if "train" in kwargs else t.dropout
    return whole._with(function(whole._values, *args, **kwargs))


def _softmax(name: str) -> None:
    function = getattr(t, name)

    @operator(name)
    def run(input, dim=None, dtype=None, _stacklevel=3):
        if not isinstance(dim, int):
            raise RuntimeError(f"{name}(): nested tensors need a dim")
        place = wrap_dim(dim, input.ndim)
        if place == 0:
            raise RuntimeError(f"Cannot apply {name} across nested dimension 0")
        return _by_part(lambda part: function(part, place - 1, dtype=dtype), input)


_softmax("softmax")
_softmax("log_softmax")


@operator("scaled_dot_product_attention")
def _attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """Return the attention of each part by itself. Query, key and value are (B, heads, *, D)."""
    if not all(is_strided(x) for x in (query, key, value)) or attn_mask is not None:
        raise refusal(
            "nn.functional.scaled_dot_product_attention", "nested tensors beside dense ones, and masks,"
        )
    options = {"dropout_p": dropout_p, "is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}

    def one(q, k, v):
        compute = t.scaled_dot_product_attention
        return compute(q.unsqueeze(0), k.unsqueeze(0), v.unsqueeze(0), **options).squeeze(0)

    return _by_part(one, query, key, value)


@operator("_native_multi_head_attention")
def _multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None,
                          need_weights=True, average_attn_weights=True, mask_type=None):  # fmt: skip
    """Return the self attention of each part (L, E), and the weights, filled up with zeros to the longest part."""
    if mask is not None or query is not key or key is not value:
        raise refusal(
            "_native_multi_head_attention", "masks of nested tensors, and keys that are not the queries,"
        )
    found = [
        t.multi_head_attention_forward(
            part, part, part, embed_dim, num_head, qkv_weight, qkv_bias, None, None, False, 0.0, proj_weight,
            proj_bias, training=False, need_weights=need_weights, average_attn_weights=average_attn_weights,
        )
        for part in query.unbind()
    ]  # fmt: skip
    output = from_parts([one for one, _ in found])
    if not need_weights:
        return output, None
    return output, to_padded_tensor(from_parts([weights for _, weights in found]), 0.0)


# ---- products
@operator("matmul", "__rmatmul__", "__matmul__")
def _matmul(input, other):
    if not (is_strided(input) and is_strided(other)):
        raise RuntimeError(f"Expected both to be nested, but got a {_sides(input, other)}")
    return _by_part(lambda a, b: a @ b, input, other)


@operator("bmm")
def _bmm(input, mat2):
    for x in (input, mat2):
        if is_strided(x) and x.ndim != 3:
            raise RuntimeError("batch1 must be a 3D tensor")
    if is_strided(input) and is_strided(mat2):
        return _by_part(lambda a, b: a @ b, input, mat2)
    dense = mat2 if is_strided(input) else input
    nested = input if is_strided(input) else mat2
    if len(dense) != len(nested):
        raise RuntimeError(
            f"Expected size for the 1st dimension of batch2 to be {len(nested)} but got {len(dense)}."
        )
    pairs = zip(input.unbind(), mat2.unbind(), strict=True)
    return from_parts([a @ b for a, b in pairs])


# ---- reductions
@operator("sum")
def _sum(input, dim=None, keepdim=False, *, dtype=None):
    if dim is None:
        return t.sum(input._packed()._values, dtype=dtype)
    dims = dim if isinstance(dim, (list, tuple)) else [dim]
    if len(dims) != 1:
        raise RuntimeError(
            f"NestedTensor only allows reduction of a single dimension for now, got {len(dims)} dimensions."
        )
    if wrap_dim(dims[0], input.ndim) != input.ndim - 1:
        raise RuntimeError(
            f"NestedTensor can only be reduced across the last dimension for now got dimension {dims[0]} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    return _by_part(lambda part: t.sum(part, -1, True, dtype=dtype), input)


# ---- views
@operator("select", "_slice_one")
def _select(self, dim, index):
    dim = wrap_dim(dim, self.ndim)
    if dim == 0:
        return self.unbind()[wrap_dim(index, len(self))]

    def one(part):
        length = part.size[dim - 1]
        if not -length <= index < length:
            raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {length}")
        start = part.offset + (index % length) * part.stride[dim - 1]
        return Part(_without(part.size, dim - 1), _without(part.stride, dim - 1), start)

    return self.of(self._values, [one(part) for part in self._parts])


def _without(values: tuple, place: int) -> tuple:
    return values[:place] + values[place + 1 :]


@operator("transpose", "swapaxes", "swapdims")
def _transpose(self, dim0, dim1):
    dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    if dim0 == dim1:
        return self
    if 0 in (dim0, dim1):
        raise RuntimeError("Nested tensor dimension 0 cannot be transposed")
    order = list(range(self.ndim - 1))
    order[dim0 - 1], order[dim1 - 1] = dim1 - 1, dim0 - 1
    parts = [
        Part(tuple(p.size[d] for d in order), tuple(p.stride[d] for d in order), p.offset)
        for p in self._parts
    ]
    return self.of(self._values, parts)


@operator("narrow")
def _narrow(self, dim, start, length):
    dim = wrap_dim(dim, self.ndim)
    if dim == 0:
        raise refusal("narrow", "nested tensors along dim 0")
    parts = []
    for part in self._parts:
        have = part.size[dim - 1]
        if min(start, length) < 0 or start + length > have:
            raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({have}).")
        size = (*part.size[: dim - 1], length, *part.size[dim:])
        parts.append(Part(size, part.stride, part.offset + start * part.stride[dim - 1]))
    return self.of(self._values, parts)


@operator("chunk")
def _chunk(self, chunks, dim=0):
    dim = wrap_dim(dim, self.ndim)
    if dim != self.ndim - 1:
        raise RuntimeError("Chunk for nested tensors is currently only supported for the last dimension.")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    length = _last_dims(self, 1, "chunk")[0]
    if length % chunks:
        raise RuntimeError(
            f"Chunk for nested tensors is only supported for nested tensors with trailing dimension divisible by chunks, got: "
            f"{length} % {chunks} != 0"
        )
    per = length // chunks
    return tuple(_narrow(self, dim, i * per, per) for i in range(chunks))


@operator("split", "split_with_sizes")
def _split(self, sizes, dim=0):
    dim = wrap_dim(dim, self.ndim)
    if dim != self.ndim - 1:
        raise refusal("split", "nested tensors along another dim than the last")
    length = _last_dims(self, 1, "split")[0]
    if isinstance(sizes, int):
        sizes = [min(sizes, length - at) for at in range(0, length, sizes)]
    if sum(sizes) != length:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension {dim}), but got "
            f"split_sizes={list(sizes)}"
        )
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return tuple(_narrow(self, dim, start, n) for start, n in zip(starts, sizes, strict=True))


@operator("view", "reshape")
def _view(self, *sizes):
    """Return the parts with other sizes. -1 stands for the size that the part has at this dim."""
    size = shape_of(sizes)
    if not size or size[0] not in (-1, len(self)):
        raise RuntimeError(
            f"view: For now nested view cannot change or infer the implicit batch dimension, got {size}"
        )
    if size[0] == -1:
        raise RuntimeError("view: For now nested view cannot infer the implicit batch dimension")
    whole = self._packed()
    found = [_one_view(part, size[1:]) for part in whole._sizes()]
    return StridedNestedTensor.of(whole._values, packed(found))


def _one_view(size: tuple, wanted) -> tuple:
    if any(n == -1 and d >= len(size) for d, n in enumerate(wanted)):
        raise RuntimeError("-1 is not a valid size of a dim that the parts do not have yet")
    found = tuple(size[d] if n == -1 else n for d, n in enumerate(wanted))
    if math.prod(found) != math.prod(size):
        raise RuntimeError(f"shape '{list(wanted)}' is invalid for a part of size {list(size)}")
    return found


@operator("unflatten")
def _unflatten(self, dim, sizes):
    dim = wrap_dim(dim, self.ndim)
    return _by_part(lambda part: t.unflatten(part, dim - 1, sizes), self)


@operator("squeeze")
def _squeeze(self, dim=None):
    if dim is None:
        raise RuntimeError("For nested tensors, squeeze without the dim argument is not supported.")
    dim = wrap_dim(dim, self.ndim)
    if dim == 0:
        raise RuntimeError("For nested tensors, squeezing dimension 0 is not supported at the moment.")
    if self._size[dim] != 1:
        return self
    parts = [Part(_without(p.size, dim - 1), _without(p.stride, dim - 1), p.offset) for p in self._parts]
    return self.of(self._values, parts)


@operator("unsqueeze")
def _unsqueeze(self, dim):
    dim = wrap_dim(dim, self.ndim + 1)
    if dim == 0:
        raise RuntimeError("For nested tensors, unsqueezing dimension 0 is not supported at the moment.")
    at = dim - 1
    parts = [
        Part(
            (*p.size[:at], 1, *p.size[at:]),
            (*p.stride[:at], p.size[at] * p.stride[at] if at < len(p.size) else 1, *p.stride[at:]),
            p.offset,
        )
        for p in self._parts
    ]
    return self.of(self._values, parts)


@operator("cat", "concat", "concatenate")
def _cat(tensors, dim=0):
    if not all(is_strided(x) for x in tensors):
        raise RuntimeError("cat(): expected each tensor in given list to be nested.")
    if wrap_dim(dim, tensors[0].ndim) != 0:
        raise RuntimeError("cat(): only dim=0 is supported for nested tensors with the strided layout")
    return from_parts([part for x in tensors for part in x.unbind()])


# ---- to padded tensors
@operator("to_padded_tensor", "nested_to_padded_tensor")
def to_padded_tensor(self, padding, output_size=None):
    """Return a dense tensor in which every part has the largest size of each dim, filled up with ``padding``."""
    sizes = self._sizes()
    if not sizes:
        raise RuntimeError("to_padded_tensor: at least one constituent tensor should have non-zero numel")
    largest = [max(column) for column in zip(*sizes, strict=True)]
    if output_size is not None:
        if len(output_size) != self.ndim:
            raise RuntimeError(
                "Length of output_size does not match NestedTensor dims. Broadcasting is not supported."
            )
        if output_size[0] != len(self) or any(a < b for a, b in zip(output_size[1:], largest, strict=True)):
            raise RuntimeError(
                "Value in output_size is less than NestedTensor padded size. Truncation is not supported."
            )
        largest = list(output_size[1:])
    rows = []
    for part in self.unbind():
        missing = [n for d in reversed(range(part.ndim)) for n in (0, largest[d] - part.shape[d])]
        rows.append(t.pad(part, missing, value=padding))
    return t.stack(rows)
