"""The operators of nested tensors with the jagged layout. All others are refused by name.

An operator works on the values. Dims are those of the nested tensor: 0 is the batch, and dim d of it is dim d - 1 of the values.
"""

from __future__ import annotations

import itertools
import math

from .._values.dtype import ALL
from .._values.size import SymInt
from ..autograd._over_values import declare
from ..ops._declare import t
from ..ops._geometry import wrap_dim
from ..tensor import Tensor
from ._base import FILLED, declare_common, refusal, shape_of
from ._internal.nested_tensor import NestedTensor, jagged_from_list, nested_from_padded

operator = declare(NestedTensor.operators)
declare_common(operator)
_TENSORS = (list, tuple)


def is_jagged(value) -> bool:
    return isinstance(value, NestedTensor)


def inner_dim(self, dim: int, name: str, extra: int = 0) -> int:
    """Return the values' dim for a dim that is neither the batch nor the ragged dim.

    Args:
        extra: how many dims the result has more than ``self``.
    """
    dim = wrap_dim(dim, self.ndim + extra)
    if dim == self._ragged_idx and not extra:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    if dim == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return dim - 1


def _same_raggedness(a, size) -> bool:
    """Return whether a shape agrees with that of ``a`` up to the ragged dim. -1 stands for any length."""
    end = a._ragged_idx + 1
    found = tuple(size)[:end]
    return len(found) == end and all(
        x == y or (isinstance(y, int) and y == -1) for x, y in zip(a._size[:end], found, strict=True)
    )


# ---- element by element
def _mismatch(name: str, a, b) -> RuntimeError:
    return RuntimeError(
        f"cannot call binary pointwise function {name} with inputs of shapes {tuple(a.shape)} and {tuple(b.shape)}"
    )


def _beside(name: str, nested, dense):
    """Return the values that a dense operand has beside those of a nested one: a tensor that broadcasts with them."""
    if dense.ndim > nested.ndim:
        raise refusal(name, "a nested tensor and a tensor of more dims")
    short = dense
    while short.ndim > 0 and short.shape[0] == 1:
        short = short.squeeze(0)
    if nested.ndim >= short.ndim + 2:
        return short
    if dense.ndim != nested.ndim or dense.shape[0] != nested._size[0]:
        raise _mismatch(name, nested, dense)
    ragged = nested._ragged_idx
    length = nested._values.shape[ragged - 1] if nested._known("max_seqlen") is None else nested._max_seqlen
    if dense.shape[ragged] not in (1, length):
        raise _mismatch(name, nested, dense)
    wide = dense.expand([length if d == ragged else n for d, n in enumerate(dense.shape)])
    return nested_from_padded(wide, nested._offsets, ragged)._values


def _operands(name: str, args, kwargs):
    """Return the nested operand that gives the result its shape, and the arguments with values in place of nested tensors."""
    if any(isinstance(a, SymInt) for a in (*args, *kwargs.values())):
        raise RuntimeError(f"NestedTensor {name}: a length of a ragged dim is not a number")
    tensors = [a for a in (*args, *kwargs.values()) if isinstance(a, Tensor)]
    first = next(a for a in tensors if is_jagged(a))
    if len(tensors) > 2:
        raise refusal(name, "three tensors of which one is nested")

    def values(a):
        if is_jagged(a):
            if a is not first and not _same_raggedness(first, a._size):
                raise _mismatch(name, first, a)
            return a._values
        return _beside(name, first, a) if isinstance(a, Tensor) else a

    return first, [values(a) for a in args], {k: values(a) for k, a in kwargs.items()}


def _wrapped_results(first, found):
    if isinstance(found, tuple):
        return type(found)(first._with(x) for x in found)
    return first._with(found)


def element_by_element(cls, function, name: str, args, kwargs):
    """Call ``function``, which works element by element, with the values of nested operands."""
    if "out" in kwargs:
        raise refusal(name, "nested tensors with out=")
    if name.endswith("_") and not is_jagged(args[0]):
        raise refusal(f"Tensor.{name}", "writing a nested tensor to a dense one")
    first, values, named = _operands(name, args, kwargs)
    found = function(*values, **named)
    return args[0] if name.endswith("_") else _wrapped_results(first, found)


NestedTensor._element_by_element = classmethod(element_by_element)


@operator("where")
def _where(condition, input=None, other=None):
    if input is None or not is_jagged(condition):
        raise refusal("where", "nested tensors but as the condition, with two values")

    def values(x):
        if is_jagged(x):
            if not _same_raggedness(condition, x._size):
                raise _mismatch("where", condition, x)
            return x._values
        return _beside("where", condition, x) if isinstance(x, Tensor) else x

    return condition._with(t.where(condition._values, values(input), values(other)))


# ---- copies, and tensors of the same shape
@operator("clone")
def _clone(self, *, memory_format=None):
    if self._lengths is not None and memory_format is not None and memory_format._name == "contiguous_format":
        if self._ragged_idx != 1:
            raise AssertionError("NJT with ragged_idx != 1 not supported for contiguous clone")
        return jagged_from_list(self.unbind(), None)[0]
    return self._with(
        self._values.clone(**({} if memory_format is None else {"memory_format": memory_format}))
    )


@operator("contiguous")
def _contiguous(self, memory_format=None):
    if self._lengths is not None:
        return jagged_from_list(self.unbind(), None)[0]
    return self if self.is_contiguous() else self._with(self._values.contiguous())


def _filled(name: str) -> None:
    function = getattr(t, name)

    @operator(name)
    def run(self, *args, layout=None, **kwargs):
        if layout is not None and layout is not self.layout:
            raise refusal(name, f"nested tensors as {layout}")
        flag = kwargs.pop("requires_grad", False)
        values = function(self._values, *args, **kwargs)
        return self._like(values, values.device).requires_grad_(flag)


for _name in FILLED:
    _filled(_name)


@operator("copy_")
def _copy(self, source, non_blocking=False):
    if not is_jagged(self) or not is_jagged(source):
        raise refusal("Tensor.copy_", "copies between nested and dense tensors")
    if self._size != source._size and [x.shape for x in self.unbind()] != [x.shape for x in source.unbind()]:
        raise RuntimeError(
            f"copy_(): expected compatible input and src shapes, but got: {self.shape} and {source.shape}"
        )
    self._values.copy_(source._values)
    return self


@operator("zero_")
def _zero(self):
    self._values.zero_()
    return self


@operator("fill_")
def _fill(self, value):
    self._values.fill_(value)
    return self


@operator("fill")
def _filled_copy(self, value):
    return self._with(t.fill(self._values, value))


# ---- layers
@operator("linear")
def _linear(input, weight, bias=None):
    if not is_jagged(input) or is_jagged(weight) or is_jagged(bias) or input._ragged_idx == input.ndim - 1:
        raise refusal("nn.functional.linear", "nested weights, and inputs whose last dim is ragged,")
    return input._with(t.linear(input._values, weight, bias))


@operator("embedding")
def _embedding(*args, **kwargs):
    """Two orders are in use: F.embedding(input, weight), and torch.embedding(weight, indices)."""
    names = {"input": 0, "indices": 0, "weight": 1}
    given = {name: kwargs.pop(name) for name in names if name in kwargs}
    first, second, *rest = *args, *sorted(given.values(), key=is_jagged, reverse=True)
    indices, weight = (first, second) if is_jagged(first) else (second, first)
    if is_jagged(weight):
        raise refusal("nn.functional.embedding", "nested weights")
    if not is_jagged(first):
        return indices._with(t.embedding(weight, indices._values, *rest, **kwargs))
    return indices._with(t.embedding(indices._values, weight, *rest, **kwargs))


@operator("dropout")
def _dropout(input, *args, **kwargs):
    function = t.torch_dropout if "train" in kwargs else t.dropout
    return input._with(function(input._values, *args, **kwargs))


@operator("layer_norm")
def _layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True):
    if input.ndim <= 2:
        raise RuntimeError("layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions")
    shape = tuple(normalized_shape)
    if len(shape) >= input.ndim:
        raise RuntimeError(
            "layer_norm(): not supported when normalizing over the batch dimension for NestedTensor"
        )
    if any(isinstance(n, SymInt) for n in shape) or len(shape) >= input.ndim - input._ragged_idx:
        raise refusal("nn.functional.layer_norm", "nested tensors, normalised over the ragged dim,")
    return input._with(t.layer_norm(input._values, shape, weight, bias, eps))


@operator("rms_norm")
def _rms_norm(input, normalized_shape, weight=None, eps=None):
    if len(normalized_shape) > input.ndim - input._ragged_idx - 1:
        raise ValueError("rms_norm(): Normalization over the ragged dim not supported for nested tensors")
    return input._with(t.rms_norm(input._values, normalized_shape, weight, eps))


# ---- softmax
def _softmax(name: str) -> None:
    function = getattr(t, name)

    @operator(name)
    def run(input, dim=None, dtype=None, _stacklevel=3):
        if not isinstance(dim, int):
            raise RuntimeError(
                f"{name}(): not supported for dimensions of type '{type(dim).__name__}' for NestedTensor"
            )
        dim = wrap_dim(dim, input.ndim)
        if dim == 0:
            raise RuntimeError(
                f"{name}(): not supported when reducing across the batch dimension for NestedTensor"
            )
        if dim != input._ragged_idx:
            return input._with(function(input._values, dim - 1, dtype=dtype))
        if name == "log_softmax":
            raise RuntimeError(
                "log_softmax(): not supported when reducing along the ragged dimension for NestedTensor"
            )
        if dim > 1:
            raise RuntimeError(
                "softmax(): not supported when reducing along the ragged dimension for ragged_idx > 1 for NestedTensor"
            )
        if input._lengths is not None:
            raise RuntimeError(
                "softmax(): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor"
            )
        parts = [function(part, 0, dtype=dtype) for part in input.unbind()]
        return input._with(t.cat(parts))


_softmax("softmax")
_softmax("log_softmax")


# ---- products
@operator("matmul", "__rmatmul__", "__matmul__")
def matmul(input, other):
    """Return the product of two tensors of which at least one is nested.

    (B, *, D) with (D, E) or (B, D, E) is (B, *, E), and (B, D, *) with (B, *, E) is (B, D, E), a dense tensor.
    """
    if is_jagged(input) and not is_jagged(other) and input._ragged_idx < input.ndim - 1:
        if input.ndim >= 3 and input.ndim == other.ndim:
            return _by_part(input, input, other)
        if other.ndim == 2 and input.ndim > 2:
            return input._with(t.matmul(input._values, other))
    elif is_jagged(other) and not is_jagged(input) and other._ragged_idx >= 2:
        if other.ndim >= 3 and other.ndim == input.ndim:
            return _by_part(other, input, other)
        if input.ndim == 2 and other.ndim > 2:
            return other._with(t.matmul(input, other._values))
    elif is_jagged(input) and is_jagged(other):
        if input.ndim > 3 and other.ndim > 3 and _same_raggedness(input, other._size):
            return input._with(t.matmul(input._values, other._values))
        if (
            input.ndim == other.ndim == 3
            and (input._ragged_idx, other._ragged_idx) == (2, 1)
            and input._size[2] == other._size[1]
        ):
            return t.stack([a @ b for a, b in zip(input.unbind(), other.unbind(), strict=True)])
    raise RuntimeError(
        f"matmul(): not supported between inputs of shapes {tuple(input.shape)} and {tuple(other.shape)}"
    )


def _by_part(nested, a, b):
    """Return the nested tensor of the products of the parts. Its ragged dim is that of ``nested``."""
    if len(a) != len(b):
        raise RuntimeError(f"matmul(): the batches have {len(a)} and {len(b)} parts")
    parts = [x @ y for x, y in zip(a.unbind(), b.unbind(), strict=True)]
    return nested._with(t.cat(parts, nested._ragged_idx - 1))


@operator("bmm")
def _bmm(input, mat2):
    for name, x in (("input", input), ("mat2", mat2)):
        if x.ndim != 3:
            raise ValueError(f"bmm(): {name} must be 3D")
    return matmul(input, mat2)


# ---- views
@operator("select", "_slice_one")
def _select(self, dim, index):
    dim = wrap_dim(dim, self.ndim)
    if dim == 0:
        return self.unbind()[index]
    inner = inner_dim(self, dim, "select")
    if self._lengths is not None:
        raise ValueError(
            "select(): not yet supported on dim != 0 for non-contiguous nested tensor with holes"
        )
    return self._with(
        t.select(self._values, inner, index), self._ragged_idx - (1 if dim < self._ragged_idx else 0)
    )


@operator("narrow")
def _narrow(self, dim, start, length):
    return self._with(t.narrow(self._values, inner_dim(self, dim, "narrow"), start, length))


def subscript(self, index):
    """Return ``self[index]`` for numbers, slices, None and an ellipsis. Dim 0 and the ragged dim take no slices but `:`."""
    given = list(index) if isinstance(index, tuple) else [index]
    if Ellipsis in [one for one in given if not isinstance(one, Tensor)]:
        place = next(i for i, one in enumerate(given) if one is Ellipsis)
        missing = self.ndim - sum(one is not None and one is not Ellipsis for one in given)
        given[place : place + 1] = [slice(None)] * missing
    found, dim = self, 0
    for one in given:
        if one is None:
            found = found.unsqueeze(dim)
            dim += 1
        elif isinstance(one, slice):
            found = found if one == slice(None) else _sliced(found, dim, one)
            dim += 1
        elif isinstance(one, int) and not isinstance(one, bool):
            found = found.select(dim, one)
        else:
            raise refusal("Tensor.__getitem__", f"nested tensors with an index of type {type(one).__name__}")
    return found


NestedTensor.__getitem__ = subscript


def _sliced(self, dim, one):
    if not is_jagged(self):
        return self[(slice(None),) * dim + (one,)]
    inner = inner_dim(self, dim, "slice")
    return self._with(self._values[(slice(None),) * inner + (one,)])


def _divided(name: str) -> None:
    function = getattr(t, name)

    @operator(name)
    def run(self, sizes, dim=0):
        inner = inner_dim(self, dim, name)
        return tuple(self._with(x) for x in function(self._values, sizes, inner))


_divided("split")
_divided("split_with_sizes")


@operator("chunk")
def _chunk(self, chunks, dim=0):
    if wrap_dim(dim, self.ndim) != 0:
        inner = inner_dim(self, dim, "chunk")
        return tuple(self._with(x) for x in t.chunk(self._values, chunks, inner))
    if self._ragged_idx != 1 or self._lengths is not None:
        raise refusal("chunk", "nested tensors with gaps, or with another ragged dim than 1, along dim 0")
    lengths = self._lengths_list()
    per = -(-len(lengths) // chunks)
    groups = [lengths[i : i + per] for i in range(0, len(lengths), per)]
    values = t.split(self._values, [sum(g) for g in groups])
    return tuple(_of_lengths(v, g, self.device) for v, g in zip(values, groups, strict=True))


def _of_lengths(values, lengths, device):
    offsets = t.tensor([0, *itertools.accumulate(lengths)], dtype=ALL["int64"], device=device)
    return NestedTensor(values, offsets)


@operator("transpose", "swapaxes", "swapdims")
def _transpose(self, dim0, dim1):
    dim0, dim1 = wrap_dim(dim0, self.ndim), wrap_dim(dim1, self.ndim)
    if dim0 == dim1:
        return self._with(self._values)
    if 0 in (dim0, dim1):
        if self._ragged_idx in (dim0, dim1):
            raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
        raise RuntimeError("transpose(): not supported for NestedTensor on dim=0")
    ragged = {dim0: dim1, dim1: dim0}.get(self._ragged_idx, self._ragged_idx)
    return self._with(t.transpose(self._values, dim0 - 1, dim1 - 1), ragged)


@operator("permute")
def _permute(self, *dims):
    dims = dims[0] if len(dims) == 1 and isinstance(dims[0], _TENSORS) else dims
    if len(dims) != self.ndim:
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({self.ndim}) does not match the length of the desired "
            f"ordering of dimensions ({len(dims)})."
        )
    order = [wrap_dim(d, self.ndim) for d in dims]
    if len(set(order)) != len(order):
        raise ValueError("permute(): duplicate dims are not allowed.")
    if self._lengths is not None:
        raise ValueError("permute(): not supported on jagged layout nested tensor with holes")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    return self._with(t.permute(self._values, [d - 1 for d in order[1:]]), order.index(self._ragged_idx))


@operator("view", "reshape", "_unsafe_view")
def _view(self, *sizes):
    size = shape_of(sizes)
    if self._ragged_idx != 1 and self._size != tuple(size):
        raise RuntimeError(
            f"view(): does not support ragged_idx != 1 except when inp._size == size. inp._size is ({self._size}) and size is "
            f"({tuple(size)})."
        )
    if len(size) < 3 or not _same_raggedness(self, size):
        raise RuntimeError(f"view(): cannot view shape {self._size} as {tuple(size)}")
    along = self._ragged_idx - 1
    inner = [self._values.shape[d] if d == along else n for d, n in enumerate(size[1:])]
    return self._with(t.reshape(self._values, inner))


@operator("view_as", "reshape_as")
def _view_as(self, other):
    return _view(self, other.shape)


@operator("flatten")
def _flatten(input, start_dim=0, end_dim=-1):
    first, last = wrap_dim(start_dim, input.ndim), wrap_dim(end_dim, input.ndim)
    for dim in (first, last):
        inner_dim(input, dim, "flatten")
    if first < input._ragged_idx < last:
        raise RuntimeError("flatten(): not supported for NestedTensor on ragged dim")
    if first == last:
        return input
    sizes = input._size
    return _view(input, [*sizes[:first], math.prod(sizes[first : last + 1]), *sizes[last + 1 :]])


@operator("unflatten")
def _unflatten(self, dim, sizes):
    dim = inner_dim(self, dim, "unflatten")
    ragged = self._ragged_idx
    return self._with(
        t.unflatten(self._values, dim, sizes), ragged + (len(sizes) - 1 if dim < ragged - 1 else 0)
    )


@operator("squeeze")
def _squeeze(self, dim=None):
    if dim is None:
        raise refusal("squeeze", "nested tensors without a dim")
    inner = inner_dim(self, dim, "squeeze")
    found = t.squeeze(self._values, inner)
    gone = found.ndim < self._values.ndim and inner < self._ragged_idx - 1
    return self._with(found, self._ragged_idx - gone)


@operator("unsqueeze")
def _unsqueeze(self, dim):
    inner = inner_dim(self, dim, "unsqueeze", extra=1)
    return self._with(t.unsqueeze(self._values, inner), self._ragged_idx + (inner <= self._ragged_idx - 1))


@operator("expand")
def _expand(self, *sizes, implicit=False):
    size = shape_of(sizes)
    if not _same_raggedness(self, size):
        raise RuntimeError(f"expand(): cannot expand shape {self._size} -> {tuple(size)}")
    inner = [-1 if d == self._ragged_idx else size[d] for d in range(1, self.ndim)]
    return self._with(t.expand(self._values, inner))


@operator("expand_as")
def _expand_as(self, other):
    if not is_jagged(other):
        raise refusal("Tensor.expand_as", "nested tensors, expanded to a dense one,")
    if is_jagged(self):
        return _expand(self, other._size)
    return other._with(t.expand_as(self, other._values))


def _joined(name: str, extra: int) -> None:
    function = getattr(t, name)

    @operator(name, *(("concat", "concatenate") if name == "cat" else ()))
    def run(tensors, dim=0):
        first = next(x for x in tensors if is_jagged(x))
        if name == "stack" and not all(is_jagged(x) for x in tensors):
            raise RuntimeError("stack(): expected all nested tensors inputs")
        every = [x if is_jagged(x) else _expand_as(x, first) for x in tensors]
        if any(x.ndim != first.ndim or not _same_raggedness(x, first._size) for x in every):
            raise RuntimeError(f"{name}(): expected all nested tensors to have the same nested structure")
        inner = wrap_dim(dim, first.ndim + extra) - 1
        if inner < 0 or (not extra and inner == first._ragged_idx - 1):
            inner_dim(first, dim, name)
        ragged = first._ragged_idx + (extra and inner <= first._ragged_idx - 1)
        return first._with(function([x._values for x in every], inner), ragged)


_joined("cat", 0)
_joined("stack", 1)


# ---- to and from padded tensors
@operator("to_padded_tensor", "nested_to_padded_tensor")
def to_padded_tensor(self, padding, output_size=None):
    """Return a dense tensor in which every part has the length of the longest one, filled up with ``padding``.

    Without ``output_size``, and if the largest length is not known, the dim is as long as all parts together. PyTorch does
    the same, because it does not read the offsets here.
    """
    if self._lengths is not None:
        raise RuntimeError("to_padded_tensor(): not supported for nested tensors with holes")
    along = self._ragged_idx - 1
    if output_size is not None:
        length = output_size[self._ragged_idx]
    elif self._known("max_seqlen") is None:
        length = self._values.shape[0]
    else:
        length = self._max_seqlen
    parts = [_padded(part, along, length, padding) for part in self.unbind()]
    return t.stack(parts)


def _padded(part, dim: int, length: int, padding):
    missing = length - part.shape[dim]
    if missing <= 0:  # as in PyTorch's kernel, what is longer is cut off
        return t.narrow(part, dim, 0, length)
    shape = [missing if d == dim else n for d, n in enumerate(part.shape)]
    return t.cat([part, t.full(shape, padding, dtype=part.dtype, device=part.device)], dim)


@operator("masked_select")
def _masked_select(input, mask):
    if not is_jagged(input) or not is_jagged(mask):
        raise refusal("masked_select", "a nested tensor and a dense one")
    if input.ndim > 2:
        raise RuntimeError("masked_select only support 2-D selections currently")
    if input._size != mask._size:
        raise RuntimeError(f"Mask with shape {mask.shape} is not compatible with input's shape {input.shape}")
    kept = t.cat([t.zeros(1, dtype=ALL["int64"], device=input.device), t.cumsum(mask._values, 0)])
    return NestedTensor(t.masked_select(input._values, mask._values), kept[input._offsets])
